"""Programs that run in a sandbox, as files: the service reads their source and imports none of them."""
