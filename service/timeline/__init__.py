"""Timelines: their blocks, what a model reads of them, versions of files."""
