"""One small picture for a result: the stored one if it is small enough, else one that a sandbox scales down."""

import asyncio
import logging
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final
from weakref import WeakValueDictionary

from proofbox.contracts.paths import FilePath, Namespace
from proofbox.contracts.tools import Language
from proofbox.service.api.services import Services
from proofbox.service.artifacts.port import StoredArtifact
from proofbox.service.artifacts.staging import Staging, staging
from proofbox.service.errors import OurError
from proofbox.service.file_content import FileContent
from proofbox.service.identity import ConversationKey
from proofbox.service.mcp.options import TURN_ID
from proofbox.service.sandbox.limits import CallLimits
from proofbox.service.sandbox.port import (
    ExpectedFile,
    FileState,
    InputFile,
    Job,
    OutputSpec,
    SandboxLostError,
    SandboxSpec,
    StreamName,
)

PICTURE_BYTES_MAX = 256 * 1024
SIDE_PX_MAX = 1_500
"""Hosts fail on pictures of 2,000 pixels in long chats, and charge for each pixel."""
SOURCE_BYTES_MAX = 64 * 1024 * 1024
AT_ONCE = 2
"""How many sandboxes scale pictures at the same time, each for another caller."""
WAIT_S = 2.0
"""How long a result waits for one of them."""
PICTURE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_NAME: Final = "preview"
_WALL_S = 20.0
_LIFETIME_S = 60.0
_OPENED_BYTES = 64 * 1024
_PNG_HEAD = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"
_PNG_SIZE = struct.Struct(">II")
_GIF_HEADS = (b"GIF87a", b"GIF89a")
_GIF_SIZE = struct.Struct("<HH")
_JPEG_HEAD = b"\xff\xd8\xff"
_JPEG_MARK = 0xFF
_SEGMENT = struct.Struct(">BBH")
_FRAME_SIZE = struct.Struct(">HH")
# Start of a frame, of any coding: C4, C8 and CC are tables and extensions.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_PROGRAM = f"""
import sys
from PIL import Image
Image.MAX_IMAGE_PIXELS = 100_000_000
with Image.open(sys.argv[1]) as opened:
    opened.draft("RGB", ({SIDE_PX_MAX}, {SIDE_PX_MAX}))
    opened.thumbnail(({SIDE_PX_MAX}, {SIDE_PX_MAX}))
    picture = opened.convert("RGBA")
white = Image.new("RGBA", picture.size, "white")
white.alpha_composite(picture)
picture = white.convert("RGB")
target = sys.argv[2]
for side, quality in (({SIDE_PX_MAX}, 85), ({SIDE_PX_MAX}, 65), (1000, 65), (700, 55), (400, 50)):
    picture.thumbnail((side, side))
    picture.save(target, "JPEG", quality=quality, optimize=True)
    with open(target, "rb") as written:
        if len(written.read()) <= {PICTURE_BYTES_MAX}:
            break
"""
_LOGGER = logging.getLogger("proofbox.mcp")


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that fits into a result.

    Attributes:
        content: its bytes, at most `PICTURE_BYTES_MAX`.
        mime: its media type.
    """

    content: bytes
    mime: str


@dataclass(frozen=True, slots=True)
class Preview:
    """The picture of a result.

    Attributes:
        picture: the picture; None: the result has none.
        note: what the model should know of it.
    """

    picture: Picture | None = None
    note: str = ""


NO_PREVIEW = Preview()
_SMALLER = "The picture is shown smaller than the file is."
_BUSY = "The picture is not shown: other pictures are being scaled. Call read_file to see it."


class Previews:
    """Makes the pictures of results. The service itself never decodes a picture.

    Args:
        services: the services of the routes.
        limits: the limits of a call.
        wait_s: how long a result waits for a sandbox.
    """

    def __init__(self, services: Services, limits: CallLimits, wait_s: float = WAIT_S) -> None:
        self._services = services
        self._limits = replace(limits, wall_s=min(limits.wall_s, _WALL_S))
        self._wait_s = wait_s
        # These sandboxes are beside those of calls, which have slots.
        self._places = asyncio.Semaphore(AT_ONCE)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def find(self, scope: ConversationKey, artifact: StoredArtifact) -> Preview:
        """The picture of a stored file; none if it is not a picture, none can be made, or others take too long.

        Raises:
            StoreFailedError: the store failed.
        """
        if artifact.mime not in PICTURE_TYPES or artifact.size_bytes > SOURCE_BYTES_MAX:
            return NO_PREVIEW
        if artifact.size_bytes <= PICTURE_BYTES_MAX:
            [content] = await self._services.artifacts.contents(scope, [artifact])
            size_px = size_of(content)
            if size_px is not None and max(size_px) <= SIDE_PX_MAX:
                return Preview(Picture(content, artifact.mime))
        try:
            async with self._place(scope.principal.caller) as is_free:
                picture = await self._scale(scope, artifact) if is_free else None
        except (SandboxLostError, OurError):
            _LOGGER.warning("no preview of %s could be made", artifact.path.physical, exc_info=True)
            return NO_PREVIEW
        return Preview(picture, _SMALLER if picture is not None else "" if is_free else _BUSY)

    @asynccontextmanager
    async def _place(self, caller: str) -> AsyncIterator[bool]:
        """Hold one of the places, at most one for each caller; False: none became free in time."""
        turn = self._turns.setdefault(caller, asyncio.Lock())
        held: list[asyncio.Lock | asyncio.Semaphore] = []
        try:
            try:
                async with asyncio.timeout(self._wait_s):
                    for each in (turn, self._places):
                        await each.acquire()
                        held.append(each)
            except TimeoutError:
                is_free = False
            else:
                is_free = True
            yield is_free
        finally:
            for each in held:
                each.release()

    async def _scale(self, scope: ConversationKey, artifact: StoredArtifact) -> Picture | None:
        suffix = artifact.path.rel.rpartition(".")[2]
        source = FilePath(TURN_ID, Namespace.ATTACHMENTS, f"picture.{suffix}")
        target = FilePath(TURN_ID, Namespace.FILES, "preview.jpg")
        limits = self._limits
        async with staging(self._services.artifacts) as folder:
            [local] = await self._services.artifacts.fetch_all(scope, [artifact], await folder.folder())
            file = InputFile(source, FileContent(local), artifact.size_bytes, writable=False)
            job = Job(
                Language.PYTHON,
                _PROGRAM.encode(),
                _NAME,
                TURN_ID,
                limits,
                args=(source.physical, target.physical),
            )
            content = await self._run(job, file, target, folder, scope.principal.caller)
        if content is None or size_of(content) is None or len(content) > PICTURE_BYTES_MAX:
            return None
        return Picture(content, "image/jpeg")

    async def _run(self, job: Job, file: InputFile, target: FilePath, folder: Staging, owner: str) -> bytes | None:
        wanted = OutputSpec(
            TURN_ID, (ExpectedFile(target.rel, is_glob=False, matches_max=1, checks={}),), 0, self._limits
        )
        spec = SandboxSpec(_NAME, self._limits, _LIFETIME_S, owner=owner, is_only_call=False)
        async with self._services.engine.open(spec) as sandbox:
            await sandbox.put(TURN_ID, [file])
            outcome = await sandbox.run(job, on_output=_discard, wanted=wanted)
            if outcome.exit_code != 0:
                return None
            collected = await sandbox.collect(wanted, folder)
        for found in collected.found:
            if found.state is FileState.FILE and found.source is not None:
                return found.source.read(0, PICTURE_BYTES_MAX + 1)
        return None


def _discard(stream: StreamName, piece: bytes, truncated: bool) -> None:
    """Drops what the program prints."""


def size_of(content: bytes) -> tuple[int, int] | None:
    """Width and height of a PNG, GIF or JPEG in pixels, from its head; None if it is something else."""
    try:
        if content.startswith(_PNG_HEAD):
            return _PNG_SIZE.unpack_from(content, len(_PNG_HEAD))
        if content.startswith(_GIF_HEADS):
            return _GIF_SIZE.unpack_from(content, len(_GIF_HEADS[0]))
        return _jpeg_size(content) if content.startswith(_JPEG_HEAD) else None
    except struct.error:  # it ends too early
        return None


def _jpeg_size(content: bytes) -> tuple[int, int] | None:
    """Read the frame header of a JPEG: its segments have a marker and a length.

    Raises:
        struct.error: it ends before.
    """
    at = 2
    while at < _OPENED_BYTES:
        mark, kind, length = _SEGMENT.unpack_from(content, at)
        if mark != _JPEG_MARK:
            return None
        if kind in _FRAMES:
            height, width = _FRAME_SIZE.unpack_from(content, at + _SEGMENT.size + 1)
            return width, height
        at += 2 + length
    return None
