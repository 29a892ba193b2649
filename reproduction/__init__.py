"""The paper's evidence: every table, figure and page, made from the store of results.

This package uses ``costa`` as any user would, and ``costa`` never imports it. Run it from a checkout:

    python -m reproduction TARGET…
"""
