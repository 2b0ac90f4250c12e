"""The routes of agents, runs, spaces and waits: one module each."""
