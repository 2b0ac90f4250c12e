"""Lists what the image has: Python and its libraries, commands, languages."""
