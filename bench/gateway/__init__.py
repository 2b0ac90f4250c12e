"""Waiting calls across a restart, and the event streams of spaces."""
