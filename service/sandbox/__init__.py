"""Single-use sandboxes: the port, the warm pool and its engines."""
