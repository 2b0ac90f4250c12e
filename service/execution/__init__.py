"""The tools that run a program."""
