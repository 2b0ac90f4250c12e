"""Where sandboxes come from: one folder per kind of engine."""
