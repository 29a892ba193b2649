"""How to word counts, durations, differences, unknown names and small tables for a person."""

import difflib
import html
from collections.abc import Iterable, Mapping, Sequence


def counted(number: int, what: str) -> str:
    """A number and its noun, in the plural unless the number is 1.

    >>> counted(1, "seed"), counted(20, "seed"), counted(0, "run"), counted(1797, "node")
    ('1 seed', '20 seeds', '0 runs', '1,797 nodes')
    """
    return f"{number} {what}" if number == 1 else f"{number:,} {what}s"


def duration(seconds: float) -> str:
    """A time in the unit that reads best.

    >>> duration(2.46), duration(40), duration(170), duration(9000)
    ('2.5 s', '40 s', '3 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def html_table(heading: str, rows: Iterable[Sequence[str]]) -> str:
    """A table for a notebook: a heading, then lines whose first cell names them.

    >>> html_table("a < b", [("accuracy", "81.0 %")])
    '<table><caption>a &lt; b</caption><tr><th>accuracy</th><td>81.0 %</td></tr></table>'
    """
    lines = (
        f"<tr><th>{html.escape(name)}</th>{''.join(f'<td>{html.escape(cell)}</td>' for cell in cells)}</tr>"
        for name, *cells in rows
    )
    return f"<table><caption>{html.escape(heading)}</caption>{''.join(lines)}</table>"


def signed(difference: float) -> str:
    """Two decimals and a sign; zero has no sign.

    >>> signed(0.412), signed(-1.5), signed(-0.004)
    ('+0.41', '−1.50', '0.00')
    """
    text = f"{difference:+.2f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")


def did_you_mean(given: str, names: Iterable[str] | Mapping[str, str]) -> str:
    """A question in brackets with the most similar name; empty if no name is similar.

    If names have several spellings, give a mapping from spelling to name.

    >>> did_you_mean("Coraa", ["cora"]), did_you_mean("paris", {"cora": "cora"})
    (" (did you mean 'cora'?)", '')
    """
    spellings = names if isinstance(names, Mapping) else {name: name for name in names}
    similar = difflib.get_close_matches(given.lower(), spellings, n=1)
    return f" (did you mean {spellings[similar[0]]!r}?)" if similar else ""
