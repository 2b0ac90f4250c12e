"""What is shown of files without opening them here: pictures of pages, tables and differences, made in sandboxes."""
