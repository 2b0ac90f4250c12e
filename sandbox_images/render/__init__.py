"""Renders Markdown and HTML to PDF, PNG, DOCX and PPTX, inside the sandbox and without network.

One way for every document: ``source`` (Markdown or HTML) → one sanitised element tree (`render.document.Document`) →
for PDF and PNG laid out by WeasyPrint, for DOCX and PPTX read into one intermediate representation (`render.ir`)
that the writers turn into native paragraphs, tables, notes and shapes.
"""
