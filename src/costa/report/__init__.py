"""The report page: ``costa report RUN`` writes ``RUN/report.html``, one file that needs no network.

``facts`` gathers the numbers; ``layout``, ``nodes`` and ``columns`` make the map, and ``packing`` its data;
``sections`` and ``charts`` write the HTML, and ``page`` puts it together; ``seeds`` makes the page of several runs. In
the browser ``decode.js`` reads the data, ``colours.js`` and ``painter.js`` draw the points, ``search.js`` finds and
saves nodes, ``card.js`` describes one, and ``map.js`` joins them.
"""

from costa.report.page import PAGE, write_report
from costa.report.seeds import runs_in, write_seeds

__all__ = ["PAGE", "runs_in", "write_report", "write_seeds"]
