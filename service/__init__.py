"""The service: HTTP interface, life cycle of calls, engines and stores. Importing it has no side effect."""
