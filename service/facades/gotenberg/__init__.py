"""Gotenberg's API: HTML and Markdown to PDF and pictures, and operations on PDFs."""
