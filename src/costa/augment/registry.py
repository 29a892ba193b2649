"""The sketches by name."""

from __future__ import annotations

import inspect
from typing import Any

from costa.augment.other_sketches import NoiseInjection, RowSelection, SVDSketch
from costa.augment.sketches import (
    CountSketch,
    RademacherProjection,
    RandomProjection,
    Sketch,
    SketchSettings,
    SparseProjection,
)
from costa.errors import InputError

SKETCHES: dict[str, type[Sketch]] = {
    sketch.name: sketch
    for sketch in (
        RandomProjection,
        RademacherProjection,
        SparseProjection,
        CountSketch,
        RowSelection,
        SVDSketch,
        NoiseInjection,
    )
}


def make_sketch(name: str, **settings: Any) -> Sketch:
    """The sketch called `name` with these settings.

    Args:
        name: A key of `SKETCHES`.
        settings: Those of `Sketch`, and `density` for ``sparse`` or `scaling` for ``selection``.

    Raises:
        InputError: No such sketch or setting, or a value out of range.

    Example:
        >>> make_sketch("sparse", density=0.02, k=64)
        SparseProjection(density=0.02, k=64)
    """
    if name not in SKETCHES:
        raise InputError(f"there is no sketch {name!r}: choose one of {', '.join(SKETCHES)}.")
    cls = SKETCHES[name]
    keywords = [p.name for p in inspect.signature(cls).parameters.values() if p.kind is p.KEYWORD_ONLY]
    known = [*keywords, *(s for s in SketchSettings.__annotations__ if s not in keywords)]
    unknown = [setting for setting in settings if setting not in known]
    if unknown:
        raise InputError(
            f"the sketch {name!r} has no setting {', '.join(map(repr, unknown))}: it takes {', '.join(known)}."
        )
    return cls(**settings)
