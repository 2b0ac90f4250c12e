"""Lists and deletes conversations and their files, for the user whose they are."""

import asyncio
import base64
import binascii
import json
import logging
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from proofbox.contracts.conversations import ConversationPage, FilePage, ListedConversation, ListedFile
from proofbox.contracts.deletions import DELETION_FORMAT, DeletionReason
from proofbox.contracts.paths import FilePath
from proofbox.contracts.problems import FieldError
from proofbox.contracts.provenance import AuditService
from proofbox.service.access.quotas import Quotas
from proofbox.service.artifacts.port import ArtifactStore, StoredArtifact
from proofbox.service.calls.audit.audit_record import log_audit_line
from proofbox.service.calls.port import AuditDraft
from proofbox.service.concurrency import wait_to_end
from proofbox.service.conversations.port import ConversationStore, ConversationSummary, DeletedCounts, Deletion
from proofbox.service.errors import ConversationBusyError, InvalidRequestError, OurError, UnknownConversationError
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.observability.metrics_port import DeletedData, Meter
from proofbox.service.timeline.block_writer import now_text

T = TypeVar("T")
_CURSOR = re.compile(r"([cf]):([0-9]{1,18})")
_CURSOR_CHARS_MAX = 64
_log = logging.getLogger("proofbox.conversations")


class RunningCalls(Protocol):
    """What a deletion has to know of the calls of this process."""

    async def is_busy(self, scope: ConversationKey) -> bool:
        """Whether a call of a conversation runs, waits, or is about to be accepted. Raises StoreFailedError."""

    def forget_conversation(self, scope: ConversationKey) -> None:
        """Forgets what is remembered of the ended calls of a conversation."""


@dataclass(frozen=True, slots=True)
class _Order:
    """Why something is deleted, for its audit line."""

    reason: DeletionReason
    request_id: str | None = None
    path: FilePath | None = None


class Conversations:
    """The conversations of all users; each method is asked for one user.

    Args:
        store: the conversations.
        artifacts: their files.
        calls: their calls.
        quotas: learns that stored bytes became fewer.
        meter: counts deletions.
        audited: this service, as audit lines name it.
    """

    def __init__(
        self,
        store: ConversationStore,
        artifacts: ArtifactStore,
        calls: RunningCalls,
        quotas: Quotas,
        meter: Meter,
        audited: AuditService,
    ) -> None:
        self._store = store
        self._artifacts = artifacts
        self._calls = calls
        self._quotas = quotas
        self._meter = meter
        self._audited = audited
        self._deleting: set[asyncio.Task[Any]] = set()

    async def close(self) -> None:
        """Waits for deletions; what is left of large ones is removed by the next process."""
        self._store.stop_purging()
        if self._deleting:
            await asyncio.wait(self._deleting)

    async def page(self, principal: Principal, after: str | None, limit: int) -> ConversationPage:
        """A page of the user's conversations, the newest first.

        Raises:
            InvalidRequestError: ``after`` is no cursor of this list.
            StoreFailedError: the store failed.
        """
        found = await self._store.page(principal, _parse_cursor("c", after), limit + 1)
        page = found[:limit]
        listed = [_listed(summary) for summary in page]
        return ConversationPage(
            conversations=listed, next=_cursor("c", page[-1].number) if len(found) > limit else None
        )

    async def files(self, scope: ConversationKey, after: str | None, limit: int) -> FilePage:
        """A page of the files of a conversation, by the time of their latest version; the oldest first.

        Raises:
            InvalidRequestError: ``after`` is no cursor of this list.
            StoreFailedError: the store failed.
        """
        found = await self._artifacts.listed(scope, _parse_cursor("f", after) or 0, limit + 1)
        page = found[:limit]
        listed = [_listed_file(artifact) for _, artifact in page]
        return FilePage(files=listed, next=_cursor("f", page[-1][0]) if len(found) > limit else None)

    async def delete(self, scope: ConversationKey, *, request_id: str | None = None) -> None:
        """Deletes a conversation with all that belongs to it; goes on if the caller is cancelled.

        Raises:
            UnknownConversationError: there is none.
            ConversationBusyError: a call of it runs or waits.
            StoreFailedError, StoreFullError: nothing was deleted.
        """
        await self._to_its_end(self._delete(scope, _Order("request", request_id)))

    async def delete_file(self, scope: ConversationKey, path: FilePath, *, request_id: str | None = None) -> None:
        """Deletes all versions of a file; goes on if the caller is cancelled.

        Raises:
            UnknownArtifactError: there is none.
            ConversationBusyError: a call of the conversation runs or waits.
            StoreFailedError, StoreFullError: nothing was deleted.
        """
        await self._to_its_end(self._delete_file(scope, _Order("request", request_id, path), path))

    async def delete_unused(
        self,
        since: str,
        conversations_max: int,
        may_go_on: Callable[[], Coroutine[Any, Any, bool]],
        prefix: str = "",
    ) -> int:
        """Deletes conversations of all users that were not used at ``since`` or later, those with calls excepted.

        Args:
            since: UTC, RFC 3339, ``Z``.
            conversations_max: so many at most.
            may_go_on: awaited before each of them; it pauses, and ends the deletions by False.
            prefix: with what their ids begin.

        Returns:
            How many were deleted.

        Raises:
            StoreFailedError, StoreFullError: the store failed.
        """
        deleted = 0
        for scope in await self._store.unused(since, conversations_max, prefix):
            if not await may_go_on():
                break
            try:
                await self._to_its_end(self._delete(scope, _Order("retention"), since))
            except (ConversationBusyError, UnknownConversationError):
                continue  # it is used after all, or somebody deleted it
            deleted += 1
        return deleted

    async def purge_interrupted(self) -> None:
        """Removes what is left of conversations whose deletion an earlier process began.

        Raises:
            StoreFailedError, StoreFullError: the store failed.
        """
        await self._to_its_end(self._store.purge_interrupted())

    async def _delete(self, scope: ConversationKey, order: _Order, unused_since: str | None = None) -> None:
        await self._refuse_busy(scope)
        draft_of = partial(self._draft, scope, order, now_text())
        deletion = await self._store.delete(scope, draft_of, unused_since)
        self._calls.forget_conversation(scope)
        self._record(scope, "conversation", order, deletion)
        try:
            await self._store.purge(deletion)
        except OurError:
            # Nobody can see it any more; what is left is removed by the next pass or start.
            _log.warning("the rest of a deleted conversation could not be removed yet", exc_info=True)

    async def _delete_file(self, scope: ConversationKey, order: _Order, path: FilePath) -> None:
        await self._refuse_busy(scope)
        now = now_text()
        deletion = await self._store.delete_file(scope, path, now, partial(self._draft, scope, order, now))
        self._record(scope, "file", order, deletion)

    async def _refuse_busy(self, scope: ConversationKey) -> None:
        if await self._calls.is_busy(scope):
            raise ConversationBusyError(
                f"conversation_id: calls of '{scope.conversation_id[:128]}' are running or queued; "
                "cancel them or wait for their answers"
            )

    def _record(self, scope: ConversationKey, kind: str, order: _Order, deletion: Deletion) -> None:
        log_audit_line(deletion.audited)
        self._quotas.forget_stored_bytes(scope.principal.tenant, scope.principal.project)
        counts = deletion.counts
        self._meter.data_deleted(DeletedData(kind, order.reason, counts.files, counts.size_bytes))

    def _draft(self, scope: ConversationKey, order: _Order, now: str, counts: DeletedCounts) -> AuditDraft:
        who = scope.principal
        principal = {"tenant": who.tenant, "project": who.project, "user_type": who.user_type, "user": who.user}
        deleted = {
            "conversation_id": scope.conversation_id,
            **({} if order.path is None else {"path": order.path.logical}),
            "reason": order.reason,
            "files": counts.files,
            "versions": counts.versions,
            "size_bytes": counts.size_bytes,
            "calls": counts.calls,
            "blocks": counts.blocks,
            "deleted": now,
        }
        fields = {
            "format": DELETION_FORMAT,
            "principal": principal if who.key_id is None else {**principal, "key_id": who.key_id},
            "service": {"version": self._audited.version, "boot_id": self._audited.boot_id},
            **({} if order.request_id is None else {"request_id": order.request_id}),
            "deletion": deleted,
        }
        return AuditDraft(now, json.dumps(fields, separators=(",", ":"), ensure_ascii=True))

    async def _to_its_end(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.create_task(work)
        self._deleting.add(task)
        task.add_done_callback(self._deleting.discard)
        return await wait_to_end(task)


def _listed(summary: ConversationSummary) -> ListedConversation:
    return ListedConversation(
        conversation_id=summary.conversation_id,
        created_at=summary.created,
        last_used_at=summary.last_used,
        turns=summary.turns,
        files=summary.files,
        size_bytes=summary.size_bytes,
    )


def _listed_file(artifact: StoredArtifact) -> ListedFile:
    return ListedFile(
        path=artifact.path.logical,
        name=artifact.path.rel,
        size_bytes=artifact.size_bytes,
        media_type=artifact.mime,
        sha256=artifact.sha256,
        turn_id=artifact.path.turn_id,
        created_at=artifact.created,
    )


def _cursor(kind: str, number: int) -> str:
    return base64.urlsafe_b64encode(f"{kind}:{number}".encode()).decode().rstrip("=")


def _parse_cursor(kind: str, cursor: str | None) -> int | None:
    """The number in a cursor of a list; None for its beginning.

    Raises:
        InvalidRequestError: the text is no cursor of this list.
    """
    if cursor is None:
        return None
    match = None
    if len(cursor) <= _CURSOR_CHARS_MAX:
        try:
            decoded = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        except (binascii.Error, ValueError):
            decoded = ""
        match = _CURSOR.fullmatch(decoded)
    if match is None or match[1] != kind or _cursor(kind, int(match[2])) != cursor:
        message = "not a cursor of this list; give the `next` of the page before it, or leave it out"
        raise InvalidRequestError(
            f"after: {message}", errors=[FieldError(field="after", code="value_error", message=message)]
        )
    return int(match[2])
