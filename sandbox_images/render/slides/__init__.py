"""Slides: from the element tree to slides that fit, as plain records (``model``) of text frames, tables and pictures."""
