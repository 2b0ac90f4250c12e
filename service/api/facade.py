"""The interface of a facade: an API of another product beside the one of this service."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.routing import BaseRoute

from proofbox.service.access.authenticator import Caller


class Facade(Protocol):
    """Routes below one prefix, with credentials and errors of their own."""

    @property
    def prefix(self) -> str:
        """The path above all routes, such as ``/librechat/v1``."""

    @property
    def routes(self) -> Sequence[BaseRoute]:
        """The routes; the last one takes every path below the prefix."""

    @property
    def open_paths(self) -> frozenset[str]:
        """The paths that need no credentials: their responses are the same for everyone."""

    @property
    def upload_bytes_max(self) -> Mapping[str, int]:
        """The largest body of paths whose bodies go to the disk, in bytes."""

    async def authenticate(self, headers: Headers) -> Caller:
        """Return the caller of a request.

        Raises:
            ServiceError: it has no credentials, or they are not valid.
        """

    def is_call(self, method: str, path: str) -> bool:
        """Whether a request runs something, and counts as a call."""

    def error_response(
        self, exc: Exception, request_id: str, *, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Build the response to an error."""


def facade_of(facades: Sequence[Facade], path: str) -> Facade | None:
    """Return the facade that serves a path; None: it is a path of this service's own API."""
    return next((facade for facade in facades if path.startswith(f"{facade.prefix}/")), None)
