"""Where artifacts, sources and calls are kept."""
