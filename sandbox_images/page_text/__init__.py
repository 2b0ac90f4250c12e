"""Reads web pages: the text that a person would read, its title, its language, its date."""
