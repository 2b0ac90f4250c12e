"""Parsers that several families share: packages, member names, text streams, JSON, XML, PDF."""
