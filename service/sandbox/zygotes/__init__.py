"""Zygotes: processes that sandboxes are forked from."""
