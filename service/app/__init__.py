"""Settings, wiring of the parts, and the command line."""
