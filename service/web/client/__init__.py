"""The client of the web: addresses, connections, search."""
