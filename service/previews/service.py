"""Makes previews of stored files and differences of their versions, in sandboxes.

The service itself never opens a file. Pictures and tables stay in memory for the next request.
"""

import json
import struct
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import ValidationError
from typing_extensions import TypeIs

from proofbox.contracts.previews import TABLE_COLUMNS_MAX, TABLE_ROWS_MAX, FileDifference, TablePreview
from proofbox.service.artifacts.port import ArtifactStore, StoredArtifact
from proofbox.service.concurrency import run_in_thread
from proofbox.service.errors import NoPreviewError
from proofbox.service.file_content import FileContent
from proofbox.service.identity import ConversationKey
from proofbox.service.jobs.one_shot import OneShotFile, OneShotJobs
from proofbox.service.previews.kinds import PreviewKind, require_preview_kind, text_kind
from proofbox.service.previews.sandboxed import run_preview_program, sandbox_path
from proofbox.service.previews.turns import Turns
from proofbox.service.visible_text import visible_text

SOURCE_BYTES_MAX = 64 * 1024 * 1024
"""The largest file that has a preview."""
TEXT_BYTES_MAX = 16 * 1024 * 1024
"""The largest file whose versions are compared."""
PAGE_MAX = 10_000
"""The last page that has a picture."""
PAGE_WIDTH_PX = 1_100
_PAGES_AT_ONCE = 4
_PAGES_BYTES_MAX = 32 * 1024 * 1024
_SIDE_PX_MAX = 4_000
_TABLE_BYTES_MAX = 8 * 1024 * 1024
_DIFF_BYTES_MAX = 1024 * 1024
_CACHE_BYTES_MAX = 64 * 1024 * 1024
_ENTRY_BYTES = 1_000  # of an entry without content: its key and objects
_COUNT_MAX = 2**53  # the largest integer that every JSON parser reads exactly
_SHEETS_MAX = 1_000
_SHEET_CHARS_MAX = 300
_PNG_HEAD = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"
_PNG_SIZE = struct.Struct(">II")


@dataclass(frozen=True, slots=True)
class PagePicture:
    """The picture of one page.

    Attributes:
        png: a PNG.
        number: 1 for the first page.
        total: how many pages there are.
        exact: whether the page looks like this; else the layout only resembles it.
    """

    png: bytes
    number: int
    total: int
    exact: bool


_CacheKey = tuple[str, str, str, str, int]


class Previews:
    """Previews and differences of stored files.

    Args:
        jobs: runs programs in sandboxes.
        artifacts: the files.
        cache_bytes_max: how much of pictures and tables stays in memory.
        turns: the turns of callers.
    """

    def __init__(
        self,
        jobs: OneShotJobs,
        artifacts: ArtifactStore,
        cache_bytes_max: int = _CACHE_BYTES_MAX,
        turns: Turns | None = None,
    ) -> None:
        self._jobs = jobs
        self._artifacts = artifacts
        self._cache: OrderedDict[_CacheKey, PagePicture | TablePreview] = OrderedDict()
        self._cached_bytes = 0
        self._cache_bytes_max = cache_bytes_max
        self._turns = turns or Turns()

    async def preview(
        self, scope: ConversationKey, artifact: StoredArtifact, page: int, request_id: str
    ) -> PagePicture | TablePreview:
        """The preview of a page, slide or sheet of a version of a file.

        Args:
            scope: whose file.
            artifact: the version.
            page: 1 for the first.
            request_id: the HTTP request.

        Raises:
            NoPreviewError: the format has none, the file is too large or cannot be opened, there is no such page.
            ServiceError: the service cannot do it now.
        """
        kind = require_preview_kind(artifact.mime)
        _refuse_large(artifact, SOURCE_BYTES_MAX)
        key = _key(scope, artifact, kind, page)
        if (known := self._known(key)) is not None:
            return known
        async with self._turns.take(scope.principal.caller):
            if (known := self._known(key)) is not None:
                return known
            if kind.shape == "table":
                return self._remember(key, await self._make_table(scope, artifact, kind, page, request_id))
            pages = await self._make_pages(scope, artifact, kind, page, request_id)
            for made in pages:
                self._remember(_key(scope, artifact, kind, made.number), made)
            return pages[0]

    async def difference(
        self, scope: ConversationKey, old: StoredArtifact, new: StoredArtifact, request_id: str
    ) -> FileDifference:
        """The difference of the texts of two versions of a file.

        Raises:
            NoPreviewError: a version has no text, is too large, or cannot be read.
            ServiceError: the service cannot do it now.
        """
        found = {
            "logical_path": new.path.logical,
            "from_version": old.version,
            "to_version": new.version,
            "identical": old.sha256 == new.sha256,
        }
        if old.sha256 == new.sha256:
            return FileDifference(**found, added=0, removed=0, text="", truncated=False)
        kinds = [text_kind(each.mime) for each in (old, new)]
        for each, kind in zip((old, new), kinds, strict=True):
            if kind is None:
                raise NoPreviewError(f"difference: {each.mime} has no text to compare; download both versions")
            _refuse_large(each, TEXT_BYTES_MAX)
        labels = [f"version {each.version}" for each in (old, new)]
        async with (
            self._turns.take(scope.principal.caller),
            self._jobs.open(scope.principal, scope.conversation_id, request_id) as run,
        ):
            paths = await self._artifacts.fetch_all(scope, [old, new], run.folder)
            files = [OneShotFile(f"v{place}", FileContent(path)) for place, path in enumerate(paths)]
            request = {
                "old": sandbox_path("v0"),
                "new": sandbox_path("v1"),
                "old_kind": kinds[0],
                "new_kind": kinds[1],
                "labels": labels,
            }
            answer = await run_preview_program(run, "difference", request, files, _DIFF_BYTES_MAX)
        added, removed = (answer.fields.get(name) for name in ("added", "removed"))
        if not _is_count(added) or not _is_count(removed):
            raise NoPreviewError("difference: the program gave no counts; download both versions")
        return FileDifference(
            **found,
            added=added,
            removed=removed,
            text=await run_in_thread(None, partial(_visible_text_of, answer.content)),
            truncated=answer.fields.get("truncated") is True,
        )

    async def _make_pages(
        self, scope: ConversationKey, artifact: StoredArtifact, kind: PreviewKind, page: int, request_id: str
    ) -> list[PagePicture]:
        """Pictures of a page and the ones behind it."""
        request = {"first": page, "count": _PAGES_AT_ONCE, "width_px": PAGE_WIDTH_PX}
        answer = await self._run(scope, artifact, kind, request, request_id)
        return await run_in_thread(None, partial(_cut_pages, answer[0], answer[1], page))

    async def _make_table(
        self, scope: ConversationKey, artifact: StoredArtifact, kind: PreviewKind, page: int, request_id: str
    ) -> TablePreview:
        request = {"first": page, "rows_max": TABLE_ROWS_MAX, "columns_max": TABLE_COLUMNS_MAX}
        _, content = await self._run(scope, artifact, kind, request, request_id)
        return await run_in_thread(None, partial(_parse_table, content, page))

    async def _run(
        self,
        scope: ConversationKey,
        artifact: StoredArtifact,
        kind: PreviewKind,
        request: dict[str, Any],
        request_id: str,
    ) -> tuple[dict[str, Any], bytes]:
        # The program does not get the name of the file, so a hostile one has no effect.
        name = f"source.{kind.name}"
        bytes_max = _TABLE_BYTES_MAX if kind.shape == "table" else _PAGES_BYTES_MAX
        async with self._jobs.open(scope.principal, scope.conversation_id, request_id) as run:
            [local] = await self._artifacts.fetch_all(scope, [artifact], run.folder)
            files = [OneShotFile(name, FileContent(local))]
            whole = {**request, "input": sandbox_path(name), "kind": kind.name}
            answer = await run_preview_program(run, kind.program, whole, files, bytes_max)
        return answer.fields, answer.content

    def _known(self, key: _CacheKey) -> PagePicture | TablePreview | None:
        if key in self._cache:
            self._cache.move_to_end(key)
        return self._cache.get(key)

    def _remember(self, key: _CacheKey, made: PagePicture | TablePreview) -> PagePicture | TablePreview:
        if key not in self._cache:
            self._cached_bytes += _size_bytes(made)
        self._cache[key] = made
        while self._cached_bytes > self._cache_bytes_max and len(self._cache) > 1:
            self._cached_bytes -= _size_bytes(self._cache.popitem(last=False)[1])
        return made


def _key(scope: ConversationKey, artifact: StoredArtifact, kind: PreviewKind, page: int) -> _CacheKey:
    # By content: the rights to the file were checked, and the same bytes look the same. Tenants do not share.
    return scope.principal.tenant, scope.principal.project, artifact.sha256, kind.name, page


def _size_bytes(made: PagePicture | TablePreview) -> int:
    if isinstance(made, PagePicture):
        return _ENTRY_BYTES + len(made.png)
    texts = sum(100 + 4 * len(name) for name in made.sheets)
    return _ENTRY_BYTES + texts + sum(100 + sum(100 + 4 * len(cell) for cell in row) for row in made.rows)


def _visible_text_of(content: bytes) -> str:
    return visible_text(content.decode("utf-8", errors="replace"))


def _is_count(value: object) -> TypeIs[int]:
    """Whether a value that a program printed is a count; True and False are not."""
    return type(value) is int and 0 <= value <= _COUNT_MAX


def _refuse_large(artifact: StoredArtifact, bytes_max: int) -> None:
    if artifact.size_bytes > bytes_max:
        raise NoPreviewError(
            f"preview: the file is too large (limit {bytes_max} bytes, got {artifact.size_bytes}); download it"
        )


def _cut_pages(fields: dict[str, Any], content: bytes, page: int) -> list[PagePicture]:
    """The pictures of an answer.

    Raises:
        NoPreviewError: the answer is not what the program writes.
    """
    total = fields.get("total")
    pages: list[PagePicture] = []
    at = 0
    if not _is_count(total) or total < page:
        raise NoPreviewError("preview: the program gave no number of pages; download the file")
    for size in _sizes(fields, content):
        png = content[at : at + size]
        at += size
        if not _is_small_png(png):
            break
        pages.append(PagePicture(png, page + len(pages), total, exact=fields.get("exact") is True))
    if not pages:
        raise NoPreviewError("preview: the program gave no picture; download the file")
    return pages


def _sizes(fields: dict[str, Any], content: bytes) -> list[int]:
    """The sizes of the pictures of an answer; none if they are not those of its content."""
    sizes = fields.get("sizes")
    if not isinstance(sizes, list) or not 1 <= len(sizes) <= _PAGES_AT_ONCE:
        return []
    if not all(_is_count(size) and size > 0 for size in sizes) or sum(sizes) != len(content):
        return []
    return sizes


def _is_small_png(png: bytes) -> bool:
    if not png.startswith(_PNG_HEAD) or len(png) < len(_PNG_HEAD) + _PNG_SIZE.size:
        return False
    width, height = _PNG_SIZE.unpack_from(png, len(_PNG_HEAD))
    return bool(max(width, height) <= _SIDE_PX_MAX)


def _parse_table(content: bytes, page: int) -> TablePreview:
    """The table of an answer.

    Raises:
        NoPreviewError: the answer is not what the program writes.
    """
    try:
        fields = json.loads(content)
        table = TablePreview(**fields, page=page)
    except (ValueError, TypeError, RecursionError, ValidationError) as exc:
        raise NoPreviewError("preview: the program gave no table; download the file") from exc
    if not all(_is_count(fields[name]) for name in ("rows_total", "columns_total")):
        raise NoPreviewError("preview: the program gave no table with its totals; download the file")
    rows = [[visible_text(cell) for cell in row[:TABLE_COLUMNS_MAX]] for row in table.rows[:TABLE_ROWS_MAX]]
    sheets = [visible_text(name[:_SHEET_CHARS_MAX]) for name in table.sheets[:_SHEETS_MAX]]
    return table.model_copy(update={"rows": rows, "sheets": sheets})
