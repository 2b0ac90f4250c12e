"""PDF and PNG: the laid-out tree on pages, and a picture of it."""
