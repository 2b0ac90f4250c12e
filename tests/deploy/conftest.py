"""Fixtures of `make test-deploy`."""

from deploy_programs import short_folder

__all__ = ["short_folder"]
