"""The stores of agents, runs, spaces and waits."""
