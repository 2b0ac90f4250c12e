"""Facades: HTTP APIs of other products, served by the core of this service."""
