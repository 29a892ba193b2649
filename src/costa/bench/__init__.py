"""Speed and memory: the package's methods beside plain twins, in one process, on the same graphs.

``twins`` are the yardsticks, ``contestants`` puts them and the package's own methods under one interface, ``measure``
says how one of them is measured, and ``suites`` which graphs it is done on and what is written down.
"""
