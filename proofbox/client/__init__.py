"""The Python client of a Proofbox service: `Client`, and `AsyncClient` for asyncio.

Names are imported on first use, so that ``import proofbox.client`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proofbox.client.async_client import AsyncCallHandle, AsyncClient
    from proofbox.client.async_files import AsyncDownload, AsyncOutputFile
    from proofbox.client.async_gateway import AsyncGateway
    from proofbox.client.errors import (
        ArgumentError,
        AuthenticationError,
        CallCancelledError,
        CallFailedError,
        CallLostError,
        ConflictError,
        DamagedDownloadError,
        ForbiddenError,
        InvalidRequestError,
        NotFoundError,
        ProblemError,
        ProofboxError,
        RateLimitedError,
        ServiceFailedError,
        StillRunningError,
        UnavailableError,
        UnexpectedResponseError,
        UnreachableError,
    )
    from proofbox.client.event_stream import CallEvent
    from proofbox.client.gateway_events import GatewayEvent
    from proofbox.client.results import Health, RunResult
    from proofbox.client.sync_client import CallHandle, Client
    from proofbox.client.sync_files import Download, OutputFile
    from proofbox.client.sync_gateway import Gateway

__all__ = [
    "ArgumentError",
    "AsyncCallHandle",
    "AsyncClient",
    "AsyncDownload",
    "AsyncGateway",
    "AsyncOutputFile",
    "AuthenticationError",
    "CallCancelledError",
    "CallEvent",
    "CallFailedError",
    "CallHandle",
    "CallLostError",
    "Client",
    "ConflictError",
    "DamagedDownloadError",
    "Download",
    "ForbiddenError",
    "Gateway",
    "GatewayEvent",
    "Health",
    "InvalidRequestError",
    "NotFoundError",
    "OutputFile",
    "ProblemError",
    "ProofboxError",
    "RateLimitedError",
    "RunResult",
    "ServiceFailedError",
    "StillRunningError",
    "UnavailableError",
    "UnexpectedResponseError",
    "UnreachableError",
]
_MODULES = {
    "AsyncCallHandle": "async_client",
    "AsyncClient": "async_client",
    "AsyncDownload": "async_files",
    "AsyncGateway": "async_gateway",
    "AsyncOutputFile": "async_files",
    "CallEvent": "event_stream",
    "CallHandle": "sync_client",
    "Client": "sync_client",
    "Download": "sync_files",
    "Gateway": "sync_gateway",
    "GatewayEvent": "gateway_events",
    "Health": "results",
    "OutputFile": "sync_files",
    "RunResult": "results",
}


def __getattr__(name: str) -> Any:
    """Import an exported name from its module (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module 'proofbox.client' has no attribute {name!r}")
    return getattr(import_module(f"proofbox.client.{_MODULES.get(name, 'errors')}"), name)


def __dir__() -> list[str]:
    """The exported names."""
    return sorted(__all__)
