"""Downloads the wheels of a lock from the operator's index, each checked by its hash.

The index itself may be anywhere. Where it points to, by a link or a redirect, has to be its own host and port, or
on the public internet or in a network that the operator opens.
"""

import asyncio
import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpcore

from proofbox.contracts.codes import ContractCode, WebCode
from proofbox.service.errors import DISK_FULL, PackageIndexError, StoreFullError
from proofbox.service.packages.limits import InstallLimits
from proofbox.service.packages.lock import LockedWheel
from proofbox.service.packages.refusal import PackageRefusedError, broken_wheel
from proofbox.service.packages.resolver import Index
from proofbox.service.web.client.address_policy import Network
from proofbox.service.web.client.pinned_network import CheckedNetwork
from proofbox.service.web.client.resolver import Resolver
from proofbox.service.web.client.tls import Tls
from proofbox.service.web.port import WebFailedError
from proofbox.service.web.urls import WebUrl

_AT_A_TIME = 4
_IDLE_S = 20.0
_REDIRECTS_MAX = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_OK = 200
_SERVER_ERROR = 500
_RETRIED = frozenset({401, 403, 407, 408, 429})
_WRITTEN_BYTES = 1024 * 1024


class IndexNetwork(httpcore.AsyncNetworkBackend):
    """Connects to the host and port of the index wherever that is, and to checked addresses of others.

    Args:
        own: connects to the index.
        others: connects to what the index names.
        index: its host and port.
    """

    def __init__(self, own: CheckedNetwork, others: CheckedNetwork, index: tuple[str, int]) -> None:
        self._own = own
        self._others = others
        self._index = index

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature of the library
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """See `CheckedNetwork.connect_tcp`."""
        network = self._own if (host, port) == self._index else self._others
        return await network.connect_tcp(host, port, timeout, local_address, socket_options)

    async def sleep(self, seconds: float) -> None:
        """Waits."""
        await self._own.sleep(seconds)


class Downloads:
    """Downloads wheels. Stateless.

    Args:
        index: the operator's; its credentials go to its own host only.
        resolve: resolves host names.
        opened: networks beyond the public internet that the files of the index may be in.
        tls: how certificates are checked.
    """

    def __init__(self, index: Index, resolve: Resolver, opened: Sequence[Network], tls: Tls) -> None:
        self._index = index
        self._origin = _origin(index.url)
        url = WebUrl.parse(index.url)
        checked = CheckedNetwork(resolve, opened)
        self._network = IndexNetwork(CheckedNetwork(resolve, None), checked, (url.host, url.port))
        self._tls = tls

    async def fetch(
        self, wheels: Sequence[LockedWheel], folder: Path, limits: InstallLimits
    ) -> list[tuple[LockedWheel, Path]]:
        """Downloads wheels into a folder; each comes back with its hash and its size.

        None gets longer than the index has announced, nor all together than the limit: that much was reserved.

        Raises:
            PackageRefusedError: they are too large, or one is not what the index announced.
            PackageIndexError: the index does not answer in time.
            StoreFullError: the disk has no room for them.
        """
        limits.require_bytes(sum(wheel.size_bytes or 0 for wheel in wheels))
        left, time_s = _Left(limits), limits.time_s
        places = asyncio.Semaphore(_AT_A_TIME)
        tls = await asyncio.to_thread(self._tls)

        async def fetch_one(number: int, wheel: LockedWheel) -> tuple[LockedWheel, Path]:
            path = folder / f"{number}.whl"
            async with places:
                sha256 = await self._fetch(pool, wheel, path, left)
            return replace(wheel, sha256=sha256, size_bytes=path.stat().st_size), path

        try:
            async with (
                asyncio.timeout(time_s),
                httpcore.AsyncConnectionPool(
                    ssl_context=tls, max_connections=_AT_A_TIME, network_backend=self._network
                ) as pool,
                asyncio.TaskGroup() as group,
            ):
                tasks = [group.create_task(fetch_one(number, wheel)) for number, wheel in enumerate(wheels)]
        except TimeoutError as exc:
            message = f"packages: downloading took more than {time_s:g} s; call again later"
            raise PackageIndexError(message) from exc
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _fetch(
        self, pool: httpcore.AsyncConnectionPool, wheel: LockedWheel, path: Path, left: "_Left"
    ) -> str:
        url = wheel.url
        try:
            for _ in range(_REDIRECTS_MAX + 1):
                found = await self._fetch_once(pool, url, wheel, path, left)
                if not isinstance(found, _Moved):
                    break
                url = found.url
            else:
                raise PackageIndexError(
                    f"packages: the index leads {wheel.filename} around in a circle; call again later"
                )
        except WebFailedError as exc:
            if exc.code is WebCode.URL_NOT_ALLOWED:
                raise broken_wheel(wheel.filename, "is not on the public internet, and not at the index") from exc
            raise _not_downloaded(wheel.filename, str(exc.code)) from exc
        except (
            httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, ValueError, OSError
        ) as exc:  # fmt: skip
            if isinstance(exc, PackageRefusedError):
                raise
            if isinstance(exc, OSError) and exc.errno in DISK_FULL:
                raise StoreFullError("packages: the disk has no room for their wheels; call again later") from exc
            raise _not_downloaded(wheel.filename, type(exc).__name__) from exc
        if wheel.sha256 and found != wheel.sha256:
            raise broken_wheel(wheel.filename, f"has the SHA-256 {found} and was announced with {wheel.sha256}")
        return found

    async def _fetch_once(
        self, pool: httpcore.AsyncConnectionPool, address: str, wheel: LockedWheel, path: Path, left: "_Left"
    ) -> "str | _Moved":
        """The hash of what was downloaded, or where it is."""
        url = WebUrl.parse(address)
        wire_url = httpcore.URL(
            scheme=url.scheme.encode(), host=url.host.encode(), port=url.port, target=url.target.encode("ascii")
        )
        headers = [(b"Accept", b"*/*"), (b"Accept-Encoding", b"identity"), (b"User-Agent", b"proofbox")]
        if self._index.credentials and _origin(address) == self._origin:
            login = base64.b64encode(self._index.credentials.encode())
            headers.append((b"Authorization", b"Basic " + login))
        bounds = {"timeout": dict.fromkeys(("connect", "read", "write"), _IDLE_S)}
        digest = hashlib.sha256()
        async with pool.stream("GET", wire_url, headers=headers, extensions=bounds) as response:
            if response.status in _REDIRECTS:
                locations = [value for name, value in response.headers if name.lower() == b"location"]
                return _Moved(urljoin(address, locations[0].decode("ascii", "replace") if locations else ""))
            _check_status(response.status, wheel.filename)
            waiting, received = bytearray(), 0
            with path.open("wb") as file:
                async for piece in response.aiter_stream():
                    left.take(len(piece))
                    received += len(piece)
                    if received > (wheel.size_bytes or received):
                        raise broken_wheel(
                            wheel.filename, f"is longer than the {wheel.size_bytes} bytes that were announced"
                        )
                    digest.update(piece)
                    waiting += piece
                    if len(waiting) >= _WRITTEN_BYTES:
                        await asyncio.to_thread(file.write, bytes(waiting))
                        waiting.clear()
                await asyncio.to_thread(file.write, bytes(waiting))
        return digest.hexdigest()


class _Moved:
    def __init__(self, url: str) -> None:
        self.url = url


class _Left:
    def __init__(self, limits: InstallLimits) -> None:
        self._limits = limits
        self._taken = 0

    def take(self, size: int) -> None:
        self._taken += size
        self._limits.require_bytes(self._taken)


def _origin(url: str) -> tuple[str, str]:
    return urlsplit(url)[:2]


def _not_downloaded(filename: str, why: str) -> PackageIndexError:
    return PackageIndexError(f"packages: {filename} could not be downloaded ({why}); call again later")


def _check_status(status: int, filename: str) -> None:
    if status == _OK:
        return
    if status >= _SERVER_ERROR or status in _RETRIED:
        raise PackageIndexError(f"packages: the index answered {status} for {filename}; call again later")
    raise PackageRefusedError(
        ContractCode.PACKAGE_NOT_FOUND,
        f"the index lists {filename} and answers {status} for it; ask for another version",
    )
