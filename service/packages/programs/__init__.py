"""Programs that run in sandboxes, on packages that were unpacked."""
