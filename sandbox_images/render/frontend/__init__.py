"""From Markdown or HTML to one sanitised element tree, `render.model.Document`; its entry is ``pipeline.open_document``."""
