"""The audit of calls: what is recorded of each, chained and signed."""
