"""The client of MCP servers: the official SDK over the checked network."""
