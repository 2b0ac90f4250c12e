"""The Model Context Protocol: the tools at ``/mcp``. Only `endpoint` is imported before the first request."""
