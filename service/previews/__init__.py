"""Previews of files: pictures of pages, tables and differences, which sandboxes make."""
