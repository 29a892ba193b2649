"""One file a method. Each is build → prepare(graph) → loss(graph) → embed(graph), see :mod:`costa.methods.base`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from costa.errors import InputError

if TYPE_CHECKING:
    from costa.methods.base import Method

METHODS = {
    "costa-sv": "costa.methods.costa:CostaSV",
    "costa-mv": "costa.methods.costa:CostaMV",
    "grace": "costa.methods.grace:GRACE",
    "gca": "costa.methods.gca:GCA",
    "dgi": "costa.methods.dgi:DGI",
    "gbt": "costa.methods.gbt:GraphBarlowTwins",
    "gae": "costa.methods.gae:GAE",
    "vgae": "costa.methods.gae:VGAE",
    "bgrl": "costa.methods.bgrl:BGRL",
    "cca-ssg": "costa.methods.cca_ssg:CCASSG",
    "raw": "costa.methods.floors:Raw",
    "untrained": "costa.methods.floors:Untrained",
}
"""Where each method lives; its module is imported when it is asked for."""


def get_method(name: str) -> type[Method]:
    """The method of that name.

    >>> get_method("costa-sv").title
    'COSTA, one view'
    """
    if name not in METHODS:
        raise InputError(f"unknown method {name!r}; there are: {', '.join(METHODS)}.")
    module, _, attribute = METHODS[name].partition(":")
    method: type[Method] = getattr(importlib.import_module(module), attribute)
    return method
