"""Writes XLSX: each table and chart of a document becomes a sheet, other text a sheet of notes."""
