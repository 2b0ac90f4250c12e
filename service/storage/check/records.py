"""The check of the records: the database's own, blocks, answers, and the files of calls."""

import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, Row, and_, bindparam, select

from proofbox.contracts.blocks import Block
from proofbox.service.calls.port import CallState
from proofbox.service.identity import ConversationKey
from proofbox.service.storage.byte_check import OWNER, path_of_row, scope_of_row
from proofbox.service.storage.check.finding import Finding, FindingKind
from proofbox.service.storage.conversation_rows import DELETED
from proofbox.service.storage.database import Database
from proofbox.service.storage.error_translation import DamagedDatabaseError
from proofbox.service.storage.schema import (
    artifacts,
    audit,
    blocks,
    calls,
    conversations,
    deleted_files,
    principals,
)

_CONVERSATIONS_AT_ONCE = 500
_BLOCKS_AT_ONCE = 100
_CALLS_AT_ONCE = 20  # an answer may have tens of megabytes
_CONVERSATIONS = (
    select(conversations.c.id, *OWNER)
    .join_from(conversations, principals)
    .where(conversations.c.id > bindparam("after"), principals.c.tenant != DELETED)
    .order_by(conversations.c.id)
    .limit(_CONVERSATIONS_AT_ONCE)
)
_BLOCKS = (
    select(blocks.c.position, blocks.c.call_id, blocks.c.path, blocks.c.block)
    .where(blocks.c.conversation == bindparam("of_conversation"), blocks.c.position > bindparam("after"))
    .order_by(blocks.c.position)
    .limit(_BLOCKS_AT_ONCE)
)
_CALLS = (
    select(calls.c.id, calls.c.tool_call_id, calls.c.state, calls.c.answer, audit.c.line)
    .join_from(calls, audit, audit.c.call == calls.c.id, isouter=True)
    .where(
        calls.c.conversation == bindparam("of_conversation"),
        calls.c.id > bindparam("after"),
        calls.c.answer.is_not(None),
    )
    .order_by(calls.c.id)
    .limit(_CALLS_AT_ONCE)
)
_FILES = select(artifacts).where(
    artifacts.c.conversation == bindparam("of_conversation"),
    artifacts.c.tool_call_id.in_(bindparam("of_calls", expanding=True)),
)
_SAME_FILE = (("turn", "of_turn"), ("namespace", "of_namespace"), ("rel", "of_rel"))
_VERSION = select(artifacts.c.id).where(
    artifacts.c.conversation == bindparam("of_conversation"),
    and_(*(artifacts.c[column] == bindparam(name) for column, name in _SAME_FILE)),
    artifacts.c.version == bindparam("of_version"),
)
_DELETED = select(deleted_files.c.version).where(
    deleted_files.c.conversation == bindparam("of_conversation"),
    and_(*(deleted_files.c[column] == bindparam(name) for column, name in _SAME_FILE)),
)

_Page = Callable[[Connection, int, ConversationKey, int], tuple[list[Finding], int | None]]
"""Checks some rows of a conversation behind a number: what was found, and the last number; None at the end."""


async def check_database(database: Database) -> AsyncIterator[Finding]:
    """What the database itself finds: SQLite's integrity check, PostgreSQL's amcheck and a read of every row."""
    for text in await database.find_damage():
        yield Finding(FindingKind.DATABASE_DAMAGED, text)


async def check_records(database: Database) -> AsyncIterator[Finding]:
    """Blocks against their schema, answers against their audit lines, files of calls against both."""
    after = 0
    while page := await database.read(partial(_conversations, after=after)):
        for after, scope in page:
            for check in (_check_blocks, _check_calls):
                async for finding in _in_conversation(database, check, after, scope):
                    yield finding


def _conversations(connection: Connection, after: int) -> list[tuple[int, ConversationKey]]:
    return [(row.id, scope_of_row(row)) for row in connection.execute(_CONVERSATIONS, {"after": after})]


async def _in_conversation(
    database: Database, check: _Page, number: int, scope: ConversationKey
) -> AsyncIterator[Finding]:
    last: int | None = 0
    try:
        while last is not None:
            after = last
            found, last = await database.read(lambda connection: check(connection, number, scope, after))  # noqa: B023 - it is over before the next
            for finding in found:
                yield finding
    except DamagedDatabaseError:
        what = "blocks" if check is _check_blocks else "calls or files"
        yield Finding(FindingKind.DATABASE_DAMAGED, f"its {what} cannot be read to their end", scope)


# ---- blocks ----


def _check_blocks(
    connection: Connection, number: int, scope: ConversationKey, after: int
) -> tuple[list[Finding], int | None]:
    rows = connection.execute(_BLOCKS, {"of_conversation": number, "after": after}).all()
    found = [
        Finding(FindingKind.BLOCK_INVALID, f"block {row.position} {mistake}", scope, row.call_id, row.path or None)
        for row in rows
        if (mistake := _mistake_in(row.block)) is not None
    ]
    return found, rows[-1].position if rows else None


def _mistake_in(block: str) -> str | None:
    try:
        Block.model_validate_json(block)
    except ValidationError as exc:
        first = exc.errors(include_input=False, include_url=False, include_context=False)[0]
        field_name = ".".join(map(str, first["loc"])) or "it"
        return f"does not fit its schema: {field_name}: {first['type']}"
    return None


# ---- calls ----


@dataclass(slots=True)
class _AuditedCall:
    """An answered call with its audit line.

    Attributes:
        row: the call.
        scope: its conversation.
        answer: the parsed answer; None if it is no JSON object.
        outcome: what the line has of the answer.
        outputs: the files of the line, by their paths; None without a line that can be read.
    """

    row: Row[Any]
    scope: ConversationKey
    answer: dict[str, Any] | None
    outcome: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, dict[str, Any]] | None = None

    def found(self, kind: FindingKind, text: str, path: str | None = None) -> Finding:
        return Finding(kind, text, self.scope, self.row.tool_call_id, path)


def _check_calls(
    connection: Connection, number: int, scope: ConversationKey, after: int
) -> tuple[list[Finding], int | None]:
    rows = connection.execute(_CALLS, {"of_conversation": number, "after": after}).all()
    if not rows:
        return [], None
    made: dict[str, list[Row[Any]]] = {}
    wanted = {"of_conversation": number, "of_calls": [row.tool_call_id for row in rows]}
    for file in connection.execute(_FILES, wanted):
        made.setdefault(file.tool_call_id, []).append(file)
    found: list[Finding] = []
    for row in rows:
        call = _read_call(row, scope)
        found += _check_answer(call)
        files = made.get(row.tool_call_id, [])
        found += _check_files(call, files)
        there = {(f"{file.turn}/{file.namespace}/{file.rel}", file.version) for file in files}
        found += _lost_files(connection, number, call, there)
    return found, rows[-1].id


def _read_call(row: Any, scope: ConversationKey) -> _AuditedCall:
    call = _AuditedCall(row, scope, _parse(row.answer))
    line = None if row.line is None else _parse(row.line)
    if line is not None and isinstance(line.get("outcome"), dict) and isinstance(line.get("outputs"), list):
        call.outcome = line["outcome"]
        call.outputs = {str(each.get("path")): each for each in line["outputs"] if isinstance(each, dict)}
    return call


def _parse(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _check_answer(call: _AuditedCall) -> Iterator[Finding]:
    if call.answer is None:
        yield call.found(FindingKind.ANSWER_INVALID, "the stored answer is no JSON object")
    elif call.row.state != CallState.DONE and call.answer.get("retryable") is True:
        code = str(call.answer.get("code"))[:40]
        yield call.found(FindingKind.ANSWER_RETRYABLE, f"the stored answer, {code}, asks to call again")
    raw = call.row.answer.encode(errors="surrogatepass")
    known = call.outcome.get("answer_sha256")
    if known is not None and known != hashlib.sha256(raw).hexdigest():
        yield call.found(FindingKind.ANSWER_CHANGED, "the stored answer is not the one of the audit line")


def _check_files(call: _AuditedCall, files: list[Row[Any]]) -> Iterator[Finding]:
    """Files that a call should not have, or that no audit line has."""
    for file in files:
        physical = f"{file.turn}/{file.namespace}/{file.rel}"
        if file.namespace == "attachments" or physical.endswith(f"/files/{call.row.tool_call_id}.input.json"):
            continue  # assets of the request; an input that a space showed before it was approved
        if call.row.state != CallState.DONE:
            text = f"version {file.version} is stored, but the call ended {call.row.state}"
            yield call.found(FindingKind.FILE_OF_FAILED_CALL, text, path_of_row(file))
        elif call.outputs is not None and not _is_audited(call.outputs.get(physical), file):
            text = f"version {file.version} is not in the audit line of its call"
            yield call.found(FindingKind.FILE_NOT_AUDITED, text, path_of_row(file))


def _is_audited(output: dict[str, Any] | None, file: Row[Any]) -> bool:
    """Whether an audit line has a version, a later one of the same call, or one with the same bytes."""
    if output is None:
        return False
    version = output.get("version")
    return output.get("sha256") == file.sha256 or (isinstance(version, int) and file.version <= version)


def _lost_files(
    connection: Connection, number: int, call: _AuditedCall, there: set[tuple[str, int]]
) -> Iterator[Finding]:
    """Files of the audit line or of the answer that are not stored and were not deleted."""
    for path, output in (call.outputs or {}).items():
        version = output.get("version")
        if not isinstance(version, int) or (path, version) in there or path.count("/") < 2:  # noqa: PLR2004
            continue
        turn, namespace, rel = path.split("/", 2)
        where = {"of_conversation": number, "of_turn": turn, "of_namespace": namespace, "of_rel": rel}
        if connection.execute(_VERSION, {**where, "of_version": version}).first() is not None:
            continue
        deleted = connection.execute(_DELETED, where).scalar()
        if deleted is None or deleted < version:
            yield call.found(FindingKind.FILE_LOST, f"version {version} of {path} is not stored")
    answered = call.answer.get("artifacts") if call.answer is not None and call.outputs is not None else None
    for each in answered if isinstance(answered, list) else ():
        path, sha256 = each.get("physical_path"), each.get("sha256")
        if sha256 is not None and (call.outputs or {}).get(path, {}).get("sha256") != sha256:
            yield call.found(FindingKind.FILE_LOST, f"the answer names {path}, the audit line does not")
