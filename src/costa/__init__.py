"""COSTA: label-free node embeddings by contrasting sketches H̃ = PH + E of a GNN's hidden features.

from costa import COSTA, load_graph, linear_probe

graph = load_graph("digits")
z = COSTA(views=1).fit_transform(graph)
print(linear_probe(z, graph.y).accuracy)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from costa.version import __version__ as __version__

if TYPE_CHECKING:
    from costa.augment import (
        CountSketch,
        NoiseInjection,
        RademacherProjection,
        RandomProjection,
        RowSelection,
        SparseProjection,
        SVDSketch,
    )
    from costa.estimator import COSTA
    from costa.evaluate.probe import linear_probe
    from costa.graphs import load_graph

__all__ = [
    "COSTA",
    "CountSketch",
    "NoiseInjection",
    "RademacherProjection",
    "RandomProjection",
    "RowSelection",
    "SVDSketch",
    "SparseProjection",
    "linear_probe",
    "load_graph",
]

_HOME = {"COSTA": "costa.estimator", "load_graph": "costa.graphs", "linear_probe": "costa.evaluate.probe"}


def __getattr__(name: str) -> Any:
    # Imported on first use: `costa --help` should not wait for PyTorch.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME.get(name, "costa.augment")), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
