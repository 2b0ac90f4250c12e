"""Spaces: their messages, their events, and who acts in them."""
