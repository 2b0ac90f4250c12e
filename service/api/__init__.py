"""The HTTP doors: parse, call, return."""
