"""The protocol with the runner in a container."""
