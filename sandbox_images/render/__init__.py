"""Renders Markdown and HTML to PDF, PNG, DOCX, PPTX and XLSX, inside the sandbox and without network.

One way for every document: ``source`` (Markdown or HTML) → one sanitised element tree (`render.model.Document`) →
for PDF and PNG laid out on pages (``paged``), for DOCX read into the intermediate representation (`render.ir`), for PPTX
laid out slide by slide (``slides``) and turned from boxes into native shapes (``pptx``), for XLSX its tables and charts
made sheets (``xlsx``).
"""
