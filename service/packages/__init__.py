"""Packages for the programs of calls: resolved and unpacked by the service, run only in sandboxes."""
