"""An engine without a daemon: an OCI runtime that the service starts itself, on an unpacked image."""
