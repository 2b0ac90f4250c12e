"""The react tools."""
