"""Descriptors that a process in a container and the service find by their number."""

LAID_OUT_FD = 99
"""Where a process of ours in a container has the end of a socket that the service takes from it (pidfd_getfd)."""
