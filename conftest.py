"""Doctests import every module; the GPU's kernels can be imported only where Triton is."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("triton") else ["src/costa/nn/kernels/*"]
