"""House templates: a DOCX or PPTX of the conversation whose looks a document takes."""
