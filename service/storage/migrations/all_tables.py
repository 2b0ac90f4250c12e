"""The metadata with the tables of all modules: importing one adds its tables."""

from proofbox.service.storage.dispatch import schema as _of_processes  # noqa: F401
from proofbox.service.storage.gateway import schema as _of_gateway  # noqa: F401
from proofbox.service.storage.schema import metadata

__all__ = ["metadata"]
