"""The checks of ``proofbox doctor``."""
