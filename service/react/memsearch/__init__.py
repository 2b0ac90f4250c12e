"""Search in the memory of conversations."""
