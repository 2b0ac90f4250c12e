"""Drawings of a document: charts, diagrams, formulas, emoji, SVG and coloured code."""
