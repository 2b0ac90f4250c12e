"""The tools that every run has: one module for each."""
