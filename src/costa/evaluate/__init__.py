"""How good are the vectors: protocols, the linear probe, clustering, baselines, and whether they collapsed."""
