"""Amounts of memory: as a person writes them, and as the machine has them."""

from __future__ import annotations

import os
import re

from costa.errors import InputError

_UNITS = {"": 1, "b": 1, **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", 1)}}
_UNITS |= {f"{letter}b": 1000**power for power, letter in enumerate("kmgt", 1)}

IMPORTS = 512 * 2**20
"""What Python and the imported packages take before there is any data."""
LEAST = 2**26
"""The least that is worked with, however small the limit."""


def parse_size(text: str) -> int:
    """A number of bytes.

    >>> parse_size("4GiB"), parse_size("1.5 GB"), parse_size("512MiB")
    (4294967296, 1500000000, 536870912)
    """
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*", text.lower())
    if found is None or found[2] not in _UNITS or float(found[1]) <= 0:
        raise InputError(f"{text!r} is not an amount of memory; write it as 4GiB or 500MB.")
    return int(float(found[1]) * _UNITS[found[2]])


def size(count: float) -> str:
    """A number of bytes in the unit that reads best.

    >>> size(512), size(3 * 2**20), size(2.5 * 2**30)
    ('512 B', '3.0 MiB', '2.5 GiB')
    """
    unit = 0
    while count >= 1024 and unit < 4:
        count, unit = count / 1024, unit + 1
    return f"{count:.0f} B" if unit == 0 else f"{count:.1f} {'KMGT'[unit - 1]}iB"


def available() -> int:
    """The bytes that this machine can give now, without swapping."""
    try:
        with open("/proc/meminfo") as file:
            lines = dict(line.split(":") for line in file)
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def whole() -> int:
    """The bytes that this process can have in all: those that it has, and those that are available."""
    try:
        with open("/proc/self/status") as file:
            lines = dict(line.split(":", 1) for line in file)
        return available() + int(lines["RssAnon"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return available()


def workspace(limit: int | None) -> int:
    """The bytes that arrays may take under a limit of the whole process, by default half of what is available."""
    return max(LEAST, (available() // 2 if limit is None else limit) - IMPORTS)


def share(memory: int, processes: int) -> int:
    """What each of several processes may take of a workspace, since each has imports of its own.

    >>> size(share(parse_size("7.5GiB"), 4)), share(2**30, 1) == 2**30
    ('1.5 GiB', True)
    """
    return max(LEAST, (memory + IMPORTS) // processes - IMPORTS)


def beside(memory: int, processes: int) -> int:
    """What one of several processes may take of a workspace while the others wait with their imports.

    >>> size(beside(parse_size("7.5GiB"), 4)), beside(2**30, 1) == 2**30
    ('6.0 GiB', True)
    """
    return max(LEAST, memory - (processes - 1) * IMPORTS)
