"""Where a number comes from: commit, versions, peak memory."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import torch

from costa.version import __version__


def reset_peak_memory(device: torch.device) -> None:
    """Reset the CUDA peak-memory counter. A CPU process's peak cannot be reset."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def peak_memory(device: torch.device) -> int | None:
    """Peak memory in bytes: the CUDA allocator's, or on a CPU the process's peak resident size."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    try:
        import resource
    except ImportError:  # not on Windows
        return None

    # Linux counts kilobytes here, macOS bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def commit() -> str | None:
    """The commit of the running source tree, with ``-dirty`` if its code was changed; None for an installed package.

    Results and pages are not code: a store that grows while its runs are made leaves the tree clean. If the tree was
    copied without its history, for example to a machine with a GPU, set ``COSTA_COMMIT``.
    """
    named = os.environ.get("COSTA_COMMIT")
    if named:
        return named
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        subprocess.run([*git, "ls-files", "--error-unmatch", __file__], capture_output=True, check=True)
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        code = (":(top)*.py", ":(top)*.toml")
        changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", *code], capture_output=True).returncode != 0
        return head + "-dirty" * changed
    except (OSError, subprocess.CalledProcessError):
        return None


def versions() -> dict[str, str]:
    """The versions of what affects results: costa, Python, PyTorch and the packages it works with."""
    packages = ("torch", "torch-geometric", "numpy", "scikit-learn")
    return {"costa": __version__, "python": platform.python_version()} | {
        name: metadata.version(name) for name in packages
    }
