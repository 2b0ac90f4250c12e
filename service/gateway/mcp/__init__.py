"""The tools of MCP servers that agents have: chosen when a run begins, pinned to it, called through a port."""
