"""PPTX: laid-out slides (`render.slides`) as native shapes; ``writer.write_pptx`` is the entry point."""
