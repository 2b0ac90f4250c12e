"""The packages of a call: which ones it asks for, and which were installed for its program."""
