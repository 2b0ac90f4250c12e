"""The artifact store, on disk or S3."""
