"""The only modules that know WeasyPrint's layout: its pages, its boxes, which are private to it, and their looks."""
