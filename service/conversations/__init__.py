"""Conversations as a whole: their list, their files, their deletion."""
