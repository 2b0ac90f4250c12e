"""Proofbox: sandboxed code execution and document rendering for AI agents.

Folders of the repository are linked here, so that a module has the same name in a checkout and when installed.
`Client` and `AsyncClient` are imported on first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proofbox.client import AsyncClient, Client

__all__ = ["AsyncClient", "Client"]


def __getattr__(name: str) -> Any:
    """Import a client on first use (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module 'proofbox' has no attribute {name!r}")
    from proofbox import client  # noqa: PLC0415 - only for programs that use it

    return getattr(client, name)


def __dir__() -> list[str]:
    """The names of the package, and its clients."""
    return sorted({*globals(), *__all__})
