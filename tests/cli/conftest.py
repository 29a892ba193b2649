"""The installed command, for tests that start a process of their own."""

import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def command():
    return Path(sys.executable).parent / "costa"
