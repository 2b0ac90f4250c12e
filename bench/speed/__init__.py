"""Measures calls of Proofbox beside what a user would pick instead: one run, all sides in turn."""
