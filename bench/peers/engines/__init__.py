"""The renderers as the driver calls them, one module each: ``warm`` and ``render``, or ``render_together``."""
