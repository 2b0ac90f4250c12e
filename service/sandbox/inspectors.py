"""The inspectors of one sandbox: one that waits while a program runs, and those that its runner calls for."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from contracts.media_types import MIME_BY_EXTENSION, is_text
from service.sandbox.containers import Forks, NotForkedError, WaitingInspector
from service.sandbox.port import OutputSpec

log = logging.getLogger("proofbox.engine")

_MOST = 2  # one, and another after a file has ended it
# On control groups of version 2 one that waits counts as one of the container's processes.
_MEMORY_BYTES_MIN = 512 * 1024 * 1024
_OF_PLAIN_FILES = b"\1"
_TEXTS_OF_LIBRARIES = frozenset({"text/html", "application/xml", "application/yaml"}) | {
    MIME_BY_EXTENSION[extension] for extension in ("gpx", "kml", "xhtml")
}
OF_LIBRARIES = frozenset(
    extension.rpartition(".")[2]
    for extension, mime in MIME_BY_EXTENSION.items()
    if not is_text(mime) or mime in _TEXTS_OF_LIBRARIES
)
"""The last part of extensions of files that a library opens. The runner has the same, and decides in the end."""


class Inspectors:
    """Forks them in where that can be done; where it cannot, the runner is told that none will come."""

    def __init__(
        self, forks: Callable[[], Forks | None], say_none_comes: Callable[[NotForkedError], Awaitable[None]]
    ) -> None:
        self._forks = forks
        self._say_none_comes = say_none_comes
        self._left = _MOST
        self._waiting: asyncio.Task[WaitingInspector] | None = None
        self._coming: asyncio.Task[None] | None = None

    @property
    def are_left(self) -> bool:
        """Whether the runner may call for one more."""
        return self._left > 0

    def have_one_wait(self, wanted: OutputSpec) -> None:
        """Has one forked, for later, if a program cannot keep its promises without a file to open."""
        forks = self._forks()
        extensions = {file.rel.rpartition(".")[2].lower() for file in wanted.files if file.required}
        has_room = wanted.limits.memory_bytes >= _MEMORY_BYTES_MIN
        if forks is None or not extensions or not has_room or self._waiting is not None:
            return
        known = sorted(extensions & MIME_BY_EXTENSION.keys())
        is_plain = extensions.isdisjoint(OF_LIBRARIES)
        self._waiting = asyncio.create_task(forks.waiting_inspector(known, of_plain_files=is_plain))

    def call(self, payload: bytes) -> None:
        """Lets in the one that waits, or has one forked, as the runner asks for; returns at once."""
        self._left -= 1
        self._coming = asyncio.create_task(self._come(of_plain_files=payload == _OF_PLAIN_FILES))

    def close(self) -> None:
        """Ends the one that waits, if nobody has called it."""
        if self._waiting is not None:
            self._waiting.add_done_callback(_end)
            self._waiting = None

    async def _come(self, *, of_plain_files: bool) -> None:
        forks = self._forks()
        if forks is None:
            return
        try:
            if not await self._has_let_in(of_plain_files=of_plain_files):
                await forks.inspector(of_plain_files=of_plain_files)
        except NotForkedError as exc:
            await self._say_none_comes(exc)

    async def _has_let_in(self, *, of_plain_files: bool) -> bool:
        """Whether the one that waits was of use."""
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            return False
        try:
            inspector = await waiting
            try:
                if inspector.of_plain_files and not of_plain_files:
                    return False
                await inspector.let_in()
            finally:
                inspector.close()
        except NotForkedError as exc:
            log.info("no inspector waits, one is forked: %s", exc)
            return False
        except Exception:
            log.exception("an inspector that waits is of no use, one is forked")
            return False
        return True


def _end(waiting: asyncio.Task[WaitingInspector]) -> None:
    if not waiting.cancelled() and waiting.exception() is None:
        waiting.result().close()
