"""Files of conversations: the port of their store, attachments, logical paths, links."""
