"""What augmentations do to a graph's vectors: their bias, measured, and how it goes with the nodes' degree."""
