"""Measures the renderer beside its peers: corpora, scorers, speed, one table. See `make bench-render`."""
