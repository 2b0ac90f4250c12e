"""The tools that render a document."""
