"""How numbers of things are said to a person."""


def counted(number: int, what: str) -> str:
    """The number and the noun, in its plural unless there is one.

    >>> counted(1, "seed"), counted(20, "seed"), counted(0, "run"), counted(1797, "node")
    ('1 seed', '20 seeds', '0 runs', '1,797 nodes')
    """
    return f"{number} {what}" if number == 1 else f"{number:,} {what}s"
