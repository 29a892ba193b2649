"""Settings: frozen dataclasses merged from layers; each value remembers where it came from.

A method's settings are groups of values (``encoder.width``, ``sketch.ratio``, ``train.lr``…). They are merged from
layers of rising precedence: the method's defaults < values chosen from the graph < a preset < a file < ``--set``.
``groups`` defines the groups, ``layers`` merges, ``presets`` finds the layers, ``explain`` says why a value was chosen.
"""

from costa.settings.groups import (
    AdaptiveAugment,
    Augment,
    BiasedWalks,
    Contrast,
    Decorrelation,
    Diffusion,
    Encoder,
    EqualLayers,
    Features,
    Head,
    HopsAlone,
    Information,
    Loss,
    OneLayer,
    Predictor,
    Sketch,
    StepsAlone,
    Target,
    Train,
    Walks,
)
from costa.settings.layers import Layer, flatten, merge, nested_to_flat, parse_assignments
