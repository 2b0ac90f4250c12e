"""What an operator sees of the service from outside: logs, metrics, traces."""
