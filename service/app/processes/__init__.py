"""A service of many processes: its settings, its wiring, and the jobs of the process that leads."""
