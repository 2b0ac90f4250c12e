"""Downloads the wheels of a lock from the operator's index, each checked by its hash."""

import asyncio
import hashlib
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from proofbox.contracts.codes import ContractCode
from proofbox.service.errors import PackageIndexError
from proofbox.service.packages.lock import LockedWheel
from proofbox.service.packages.refusal import PackageRefusedError, broken_wheel, too_large
from proofbox.service.packages.resolver import Index

_AT_A_TIME = 4
_PIECE_BYTES = 256 * 1024
_IDLE_S = 20.0
_CONNECT_S = 10.0
_REDIRECTS_MAX = 5
_SERVER_ERROR = 500
_RETRIED = frozenset({401, 403, 407, 408, 429})


class Downloads:
    """Downloads wheels. Stateless.

    Args:
        index: the operator's; its credentials go to its own host only.
        bytes_max: of all wheels of one call together.
    """

    def __init__(self, index: Index, bytes_max: int) -> None:
        self._index = index
        self._bytes_max = bytes_max

    async def fetch(
        self, wheels: Sequence[LockedWheel], folder: Path, time_s: float
    ) -> list[tuple[LockedWheel, Path]]:
        """Downloads wheels into a folder; each comes back with its hash.

        Raises:
            PackageRefusedError: they are too large, or one is not what the index announced.
            PackageIndexError: the index does not answer in time.
        """
        if sum(wheel.size_bytes or 0 for wheel in wheels) > self._bytes_max:
            raise too_large()
        left = _Left(self._bytes_max)
        places = asyncio.Semaphore(_AT_A_TIME)
        limits = httpx2.Timeout(_IDLE_S, connect=_CONNECT_S)
        deadline = time.monotonic() + time_s

        async def fetch_one(number: int, wheel: LockedWheel) -> tuple[LockedWheel, Path]:
            async with places:
                path = folder / f"{number}.whl"
                return replace(wheel, sha256=await self._fetch(http, wheel, path, left)), path

        try:
            async with (
                asyncio.timeout_at(asyncio.get_running_loop().time() + max(0.0, deadline - time.monotonic())),
                httpx2.AsyncClient(timeout=limits, follow_redirects=True, max_redirects=_REDIRECTS_MAX) as http,
                asyncio.TaskGroup() as group,
            ):
                tasks = [group.create_task(fetch_one(number, wheel)) for number, wheel in enumerate(wheels)]
        except* (PackageRefusedError, PackageIndexError) as failed:
            raise failed.exceptions[0] from None
        except* TimeoutError:
            raise PackageIndexError(
                f"packages: downloading took more than {time_s:g} s; call again later"
            ) from None
        return [task.result() for task in tasks]

    async def _fetch(self, http: httpx2.AsyncClient, wheel: LockedWheel, path: Path, left: "_Left") -> str:
        digest = hashlib.sha256()
        try:
            async with http.stream("GET", wheel.url, auth=self._auth(wheel.url)) as response:
                _check_status(response.status_code, wheel.filename)
                with path.open("wb") as file:
                    async for piece in response.aiter_raw(_PIECE_BYTES):
                        left.take(len(piece))
                        digest.update(piece)
                        await asyncio.to_thread(file.write, piece)
        except (httpx2.HTTPError, httpx2.InvalidURL) as exc:
            raise PackageIndexError(
                f"packages: {wheel.filename} could not be downloaded ({type(exc).__name__}); call again later"
            ) from exc
        sha256 = digest.hexdigest()
        if wheel.sha256 and sha256 != wheel.sha256:
            raise broken_wheel(wheel.filename, f"has the SHA-256 {sha256} and was announced with {wheel.sha256}")
        return sha256

    def _auth(self, url: str) -> tuple[str, str] | None:
        if not self._index.credentials or urlsplit(url)[:2] != urlsplit(self._index.url)[:2]:
            return None
        user, _, password = self._index.credentials.partition(":")
        return user, password


class _Left:
    def __init__(self, bytes_left: int) -> None:
        self._bytes_left = bytes_left

    def take(self, size: int) -> None:
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise too_large()


def _check_status(status: int, filename: str) -> None:
    if httpx2.codes.is_success(status):
        return
    if status >= _SERVER_ERROR or status in _RETRIED:
        raise PackageIndexError(f"packages: the index answered {status} for {filename}; call again later")
    raise PackageRefusedError(
        ContractCode.PACKAGE_NOT_FOUND,
        f"the index lists {filename} and answers {status} for it; ask for another version",
    )
