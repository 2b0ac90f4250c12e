"""The code interpreter API of LibreChat: programs, files of sessions, tools called by programs."""
