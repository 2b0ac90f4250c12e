"""The variant ``compute``: Python expressions that sandboxes evaluate."""
