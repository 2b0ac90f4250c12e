"""The web, for the web tools: fetching and searching behind address checks."""
