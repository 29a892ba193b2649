"""Measurements on a graph or a run: how much augmentation distorts its vectors, how many sketch rows it needs."""
