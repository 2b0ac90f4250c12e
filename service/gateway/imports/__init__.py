"""The import of configurations of version 1."""
