"""From Markdown or HTML to one sanitised element tree, `render.document.Document`; ``front.open_document`` is the door."""
