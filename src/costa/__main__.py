"""``python -m costa``."""

from costa.cli import main

main()
