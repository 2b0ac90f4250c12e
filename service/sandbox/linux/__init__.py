"""Kernel interfaces that both engines use: control groups and seccomp."""
