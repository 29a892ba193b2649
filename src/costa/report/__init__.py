"""The report page: ``costa report RUN`` writes ``RUN/report.html``, one file that needs no network.

``facts`` gathers the numbers, ``layout`` and ``nodes`` make the map, ``sections`` and ``charts`` write the HTML, and
``page`` puts it together.
"""

from costa.report.page import PAGE, write_report

__all__ = ["PAGE", "write_report"]
