"""The methods, one per file: build → prepare(graph) → loss(graph) → embed(graph), see :mod:`costa.methods.base`.

Other packages add methods with :func:`register` for one process, or with an entry point of the group :data:`GROUP` for
a whole environment; see ``docs/adding-a-method.md``.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, TypeVar

from costa.errors import InputError
from costa.wording import did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from costa.methods.base import Method

M = TypeVar("M", bound="Method")

METHODS = {
    "costa-sv": "costa.methods.costa:CostaSV",
    "costa-mv": "costa.methods.costa:CostaMV",
    "grace": "costa.methods.grace:GRACE",
    "gca": "costa.methods.gca:GCA",
    "dgi": "costa.methods.dgi:DGI",
    "gmi": "costa.methods.gmi:GMI",
    "mvgrl": "costa.methods.mvgrl:MVGRL",
    "gbt": "costa.methods.gbt:GraphBarlowTwins",
    "gae": "costa.methods.gae:GAE",
    "vgae": "costa.methods.gae:VGAE",
    "bgrl": "costa.methods.bgrl:BGRL",
    "cca-ssg": "costa.methods.cca_ssg:CCASSG",
    "node2vec": "costa.methods.walks:Node2Vec",
    "deepwalk": "costa.methods.walks:DeepWalk",
    "deepwalk-x": "costa.methods.walks:DeepWalkX",
    "raw": "costa.methods.baselines:Raw",
    "diffused": "costa.methods.baselines:Diffused",
    "hops": "costa.methods.baselines:HopsBaseline",
    "untrained": "costa.methods.baselines:Untrained",
}
"""The class of each built-in method; its module is imported on first use."""

GROUP = "costa.methods"
"""The group of entry points for methods of other packages."""

_registered: dict[str, type[Method]] = {}


def get_method(name: str) -> type[Method]:
    """The method called ``name``.

    >>> get_method("costa-sv").title
    'COSTA, one view'
    """
    for entry in _entry_points():
        if entry.name == name:
            register(_load(entry))
    if name in _registered:
        return _registered[name]
    if name not in METHODS:
        names = method_names()
        hint = did_you_mean(name, names)
        raise InputError(f"unknown method {name!r}{hint}; there are: {', '.join(names)}.")
    module, _, attribute = METHODS[name].partition(":")
    method: type[Method] = getattr(importlib.import_module(module), attribute)
    return method


def method_names() -> list[str]:
    """The built-in methods in their order, then those of other packages; no method is imported."""
    outside = {*_registered, *(entry.name for entry in _entry_points())}
    return [*METHODS, *sorted(outside - set(METHODS))]


def register(cls: type[M]) -> type[M]:
    """Register a method under its name in this process; a decorator.

    If a class is defined again in the same place, as when a notebook cell is run twice, the later class counts.

    Args:
        cls: A :class:`costa.methods.base.Method` with ``name``, ``title``, ``paper`` and ``Settings``.
    """
    from costa.methods.base import GradientMethod, Method

    if not (isinstance(cls, type) and issubclass(cls, Method)):
        raise InputError(f"{cls!r} is not a method; give a class that derives from costa.methods.base.Method.")
    missing = [each for each in ("name", "title", "paper", "Settings") if not hasattr(cls, each)]
    if missing:
        raise InputError(f"the method {_place(cls)} lacks the class attributes {', '.join(missing)}; add them.")
    if issubclass(cls, GradientMethod) and not hasattr(cls.Settings(), "train"):
        raise InputError(f"{_place(cls.Settings)} has no group train, which {cls.name} needs for training; add it.")
    other = METHODS.get(cls.name) or _place(_registered.get(cls.name, cls))
    if other != _place(cls):
        raise InputError(
            f"two methods are called {cls.name!r}, {other} and {_place(cls)}; rename or remove the second."
        )
    _registered[cls.name] = cls
    return cls


@functools.cache
def _entry_points() -> tuple[EntryPoint, ...]:
    """Looked up once, when a name is first needed, so that importing the package stays fast."""
    from importlib.metadata import entry_points

    return tuple(entry_points(group=GROUP))


def _load(entry: EntryPoint) -> type[Method]:
    source = f"the entry point {entry.name} = {entry.value} of {entry.dist.name if entry.dist else 'a package'}"
    try:
        cls: type[Method] = entry.load()
    except InputError:
        raise
    except Exception as problem:
        raise InputError(
            f"{source} cannot be imported ({type(problem).__name__}: {problem}); fix or uninstall it."
        ) from problem
    if getattr(cls, "name", entry.name) != entry.name:
        raise InputError(f"{source} leads to a method called {cls.name!r}; give both the same name.")
    return cls


def _place(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"
