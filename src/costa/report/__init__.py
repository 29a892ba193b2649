"""The report page: ``costa report RUN`` writes ``RUN/report.html``, one file that needs no network.

``facts`` gathers the numbers; ``layout``, ``nodes`` and ``columns`` make the map, and ``packing`` its data;
``sections`` and ``charts`` write the HTML, and ``page`` puts it together. In the browser ``decode.js`` reads the data,
``colours.js`` and ``painter.js`` draw the points, ``search.js`` finds and saves nodes, ``card.js`` describes one, and
``map.js`` joins them.
"""

from costa.report.page import PAGE, write_report

__all__ = ["PAGE", "write_report"]
