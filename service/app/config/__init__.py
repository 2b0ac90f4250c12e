"""The configuration: a file beside the environment, its check, and what is in effect."""
