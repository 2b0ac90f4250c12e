"""DOCX: the intermediate representation as WordprocessingML; ``writer.write_docx`` is the entry point."""
