"""Measures how well the memory is searched."""
