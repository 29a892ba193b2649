"""What is perturbed: hidden features (`features`), the graph itself (`topology`), and what the paper proves (`bounds`).

The sketches are exported here; graph augmentation and the bounds are imported from their own modules.
"""

from costa.augment.features import (
    SKETCHES,
    CountSketch,
    Draw,
    NoiseInjection,
    RademacherProjection,
    RandomProjection,
    RowSelection,
    Sketch,
    SparseProjection,
    SVDSketch,
    make_sketch,
)

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
