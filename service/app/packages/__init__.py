"""The packages of calls: their settings, and what installs them."""
