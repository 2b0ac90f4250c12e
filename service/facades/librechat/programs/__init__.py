"""Programs that run in the sandbox around a program of LibreChat's. They use the standard library alone."""
