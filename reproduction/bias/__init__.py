"""The bias that augmentations give to a graph's vectors, and how it depends on the nodes' degree."""
