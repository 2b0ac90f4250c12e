"""Connections to checked addresses: a name is resolved once, here."""

from collections.abc import Iterable, Sequence

import httpcore

from proofbox.contracts.codes import WebCode
from proofbox.service.web.client.address_policy import Network, is_allowed
from proofbox.service.web.client.resolver import Resolver
from proofbox.service.web.port import WebFailedError

_TRIED_MAX = 4
CONNECT_S = 5.0
"""For each address: one that does not answer must not take the time of the next one."""


def refused_connection(host: str, port: int) -> WebFailedError:
    """Why there is no connection: no address of the host answers."""
    return WebFailedError(WebCode.CONNECT_FAILED, f"the host {host} takes no connection at port {port}")


async def find_addresses(
    resolve: Resolver, opened: Sequence[Network] | None, host: str, port: int
) -> Sequence[str]:
    """Returns the addresses that a host may be connected to at, the first of them.

    Args:
        resolve: how names become addresses.
        opened: networks beyond the public internet that are allowed; None allows all.
        host: a name or an address.
        port: the TCP port.

    Raises:
        WebFailedError: ``dns_failed``; ``url_not_allowed`` if any address is not allowed.
    """
    try:
        addresses = await resolve(host, port)
    except (OSError, UnicodeError) as exc:
        raise WebFailedError(WebCode.DNS_FAILED, f"the host {host} has no address") from exc
    if not addresses:
        raise WebFailedError(WebCode.DNS_FAILED, f"the host {host} has no address")
    if opened is not None and not all(is_allowed(address, opened) for address in addresses):
        # The address itself would show the model the network of the service.
        raise WebFailedError(
            WebCode.URL_NOT_ALLOWED,
            f"the host {host} is not on the public internet; nothing is fetched from it",
        )
    return addresses[:_TRIED_MAX]


class CheckedNetwork(httpcore.AsyncNetworkBackend):
    """Connects to public addresses only.

    The name is resolved here and the connection goes to the very address that was checked, so an answer of the
    name server that changes in between changes nothing. The layers above keep the name: for the header Host, for
    the name that TLS asks for, and for the certificate.

    Args:
        resolve: how names become addresses.
        opened: networks that the operator opens; None opens all.
    """

    def __init__(self, resolve: Resolver, opened: Sequence[Network] | None) -> None:
        self._resolve = resolve
        self._opened = opened
        self._plain = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature of the library
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connects to the first address that answers.

        Raises:
            WebFailedError: ``dns_failed``, ``url_not_allowed`` if any address is not allowed, ``connect_failed``.
        """
        del timeout
        for address in await self.find_addresses(host, port):
            try:
                return await self._plain.connect_tcp(address, port, CONNECT_S, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout, OSError):
                continue
        raise refused_connection(host, port)

    async def find_addresses(self, host: str, port: int) -> Sequence[str]:
        """Returns the addresses that a connection to a host may go to; see `find_addresses`."""
        return await find_addresses(self._resolve, self._opened, host, port)

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature of the library
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Never.

        Raises:
            WebFailedError: always.
        """
        del timeout, socket_options
        raise WebFailedError(WebCode.URL_NOT_ALLOWED, f"{path} is no host")

    async def sleep(self, seconds: float) -> None:
        """Waits."""
        await self._plain.sleep(seconds)
