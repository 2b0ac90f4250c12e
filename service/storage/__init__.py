"""Stores in a database and in files."""
