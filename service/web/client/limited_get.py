"""One GET of a page or of a search, with a largest size."""

from collections.abc import Callable

import httpcore

from proofbox.contracts.codes import WebCode
from proofbox.service.web.client.outgoing import (
    BodyLimit,
    OutgoingClient,
    OutgoingRequest,
    OutgoingResponse,
    ResponseHead,
)
from proofbox.service.web.client.tls import Tls
from proofbox.service.web.port import WebFailedError
from proofbox.service.web.urls import WebUrl

_OK = 200


class LimitedGet:
    """Makes GET requests; see `OutgoingClient`.

    Args:
        network: what makes connections.
        tls: how certificates are checked.
        bytes_max: the largest body, compressed and decompressed.
    """

    def __init__(self, network: httpcore.AsyncNetworkBackend, tls: Tls, bytes_max: int) -> None:
        self._client = OutgoingClient(network, tls)
        self._limit = BodyLimit(bytes_max)

    async def get(
        self, url: WebUrl, accept: str, takes: Callable[[ResponseHead], None], seconds: float
    ) -> OutgoingResponse:
        """One answer; a redirect is given back, not followed.

        Args:
            url: what to ask for.
            accept: the media types to ask for.
            takes: checks the head of a response that is not a redirect; raises if the body is not wanted.
            seconds: how long all of it may take.

        Raises:
            WebFailedError: it cannot be had; the code is the reason.
        """

        def limit_body(head: ResponseHead) -> BodyLimit:
            takes(head)
            return self._limit

        return await self._client.send(
            OutgoingRequest("GET", url, [("Accept", accept)]), limit_body, max(seconds, 0.0)
        )


def wants_status_200(head: ResponseHead, host: str) -> None:
    """Refuses every answer but a page that is there.

    Raises:
        WebFailedError: ``http_status``.
    """
    if head.status != _OK:
        raise WebFailedError(WebCode.HTTP_STATUS, f"{host} answered with HTTP status {head.status}")
