"""Proofbox: sandboxed code execution and document rendering for AI agents.

Folders of the repository are linked here, so that a module has the same name in a checkout and when installed.
"""
