"""Middleware of the HTTP API."""
