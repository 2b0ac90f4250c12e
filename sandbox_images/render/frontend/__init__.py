"""From Markdown or HTML to one sanitised element tree, `render.model.Document`.

The entry is `pipeline.open_document`.
"""
