"""Calls that workers run, and the processes of a service, in the database."""
