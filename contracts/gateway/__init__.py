"""The wire of the tool gateway: configurations of agents, runs, spaces, messages and waits."""
