"""The web tools and the port of the web."""
