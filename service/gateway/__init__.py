"""Tools that are configured: templates, schemas, names, visibility and waits. No I/O."""
