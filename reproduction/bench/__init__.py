"""Speed and memory: the package's methods against plain twins, in one process, on the same graphs.

``twins`` has the plain implementations, ``contestants`` puts them and the package's methods under one interface,
``measure`` measures one of them, and ``suites`` chooses the graphs and writes the results.
"""
