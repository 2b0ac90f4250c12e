"""Office documents: Office Open XML, its binary predecessors, and OpenDocument."""
