"""The check of all records and files of a service, and what it can repair."""
