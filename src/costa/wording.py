"""How numbers of things, differences, and names that nothing has, are said to a person."""

import difflib
from collections.abc import Iterable, Mapping


def counted(number: int, what: str) -> str:
    """The number and the noun, in its plural unless there is one.

    >>> counted(1, "seed"), counted(20, "seed"), counted(0, "run"), counted(1797, "node")
    ('1 seed', '20 seeds', '0 runs', '1,797 nodes')
    """
    return f"{number} {what}" if number == 1 else f"{number:,} {what}s"


def signed(difference: float) -> str:
    """Two digits and a sign, unless they are zero.

    >>> signed(0.412), signed(-1.5), signed(-0.004)
    ('+0.41', '−1.50', '0.00')
    """
    text = f"{difference:+.2f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")


def did_you_mean(given: str, names: Iterable[str] | Mapping[str, str]) -> str:
    """A question in brackets, for the name whose spelling is near; nothing where none is.

    Names that are spelled in several ways come as a mapping from each spelling.

    >>> did_you_mean("Coraa", ["cora"]), did_you_mean("paris", {"cora": "cora"})
    (" (did you mean 'cora'?)", '')
    """
    spellings = names if isinstance(names, Mapping) else {name: name for name in names}
    near = difflib.get_close_matches(given.lower(), spellings, n=1)
    return f" (did you mean {spellings[near[0]]!r}?)" if near else ""
