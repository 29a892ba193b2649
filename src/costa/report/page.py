"""The facts of a run as one HTML file.

Style, script and data are inline, and a content security policy of hashes lets nothing else run or load: the page makes
no request, and a node whose id is markup stays text. The map is plain WebGL: Plotly's script alone is 4.8 MB, while the
whole page of a graph of 34,493 nodes, with their edges and nearest vectors, is 1.9 MB.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from costa.report import sections
from costa.report.facts import Facts, gather
from costa.writing import replacing

PAGE = "report.html"
SCRIPTS = ("charts.js", "decode.js", "colours.js", "painter.js", "search.js", "card.js", "map.js")


def write_report(
    folder: Path,
    data_dir: Path | None = None,
    announce: Callable[[str], None] = lambda text: None,
    memory: str | None = None,
    moved_to: str | None = None,
) -> Path:
    """Write ``report.html`` into a RUN folder and return its path.

    Args:
        folder: A RUN folder.
        data_dir: Folder that is searched first for benchmark graphs.
        announce: Called with a line before slow work.
        memory: What the graph may take, as for :func:`costa.graphs.load_graph`; by default what the run was given.
        moved_to: Where the graph is now, as for :func:`costa.runs.load_run_graph`.
    """
    return save(folder, render(gather(folder, data_dir, announce, memory, moved_to)))


def save(folder: Path, text: str) -> Path:
    """Write a page into a folder and return its path."""
    with replacing(folder / PAGE) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return folder / PAGE


def render(facts: Facts) -> str:
    """The HTML of the page."""
    content = [sections.map_of_nodes(facts)]
    content += [sections.clusters(facts.nodes)] if facts.nodes is not None else []
    content += [sections.quality(facts), sections.training(facts), sections.health(facts)]
    content += [sections.sketch(facts.sketched)] if facts.sketched is not None else []
    content += [sections.graph(facts), sections.settings(facts)]
    return fill(
        title=escape(sections.title(facts)),
        header=sections.header(facts),
        content="\n".join(content),
        data=None if facts.nodes is None else facts.nodes.packed(),
        script="".join(_file(name) for name in SCRIPTS),
    )


def fill(*, title: str, header: str, content: str, data: Any = None, script: str = "") -> str:
    """A page with this HTML, and what its script reads."""
    style = _file("page.css")
    return Template(_file("page.html")).substitute(
        policy=f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:",
        title=title,
        style=style,
        header=header,
        content=content,
        data=as_script(data),
        script=script,
    )


def as_script(value: Any) -> str:
    r"""JSON that cannot close the script element around it, whatever its strings contain.

    >>> as_script("</script><!--")
    '"\\u003c/script\\u003e\\u003c!--"'
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """The hash that a content security policy names an inline element by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
