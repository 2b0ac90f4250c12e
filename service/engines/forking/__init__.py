"""Processes that have imported once and are forked into containers."""
