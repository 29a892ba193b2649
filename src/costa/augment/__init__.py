"""Augmentation of hidden features (`sketches`) and of the graph (`topology`), and the paper's bounds (`bounds`).

The sketches are exported here; import graph augmentation and the bounds from their own modules.
"""

from costa.augment.other_sketches import NoiseInjection, RowSelection, SVDSketch
from costa.augment.registry import SKETCHES, make_sketch
from costa.augment.sketches import CountSketch, Draw, RademacherProjection, RandomProjection, Sketch, SparseProjection

__all__ = [
    "SKETCHES",
    "CountSketch",
    "Draw",
    "NoiseInjection",
    "RademacherProjection",
    "RandomProjection",
    "RowSelection",
    "SVDSketch",
    "Sketch",
    "SparseProjection",
    "make_sketch",
]
