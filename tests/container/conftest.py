"""One service for the whole session, in-process, on the real engine."""

from tests.docker.conftest import asset_root, service, settings

__all__ = ["asset_root", "service", "settings"]
