"""Agents: their configurations, what is refused in them, and their versions."""
