"""Sign the heads of all chains of audit lines in the background, seconds after lines were added.

Before a head is signed, the lines since the last signed head of its chain are checked: that head's line has to be
there with the hash that was signed, and each line has to name the one before it. So no signature covers a change of
what the records have signed. Where that fails, the chain is not signed any more, and an error is logged.
"""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection, func, select

from proofbox.service.calls.audit.audit_chain import AuditCheck, ChainState
from proofbox.service.calls.audit.audit_heads import Head, HeadRecordError, HeadRecords
from proofbox.service.calls.signing import SigningKey
from proofbox.service.concurrency import run_in_thread
from proofbox.service.errors import StoreFailedError, StoreFullError
from proofbox.service.observability.audit_file import HEADS_LOGGER
from proofbox.service.observability.log_format import START_LOGGER
from proofbox.service.storage.audit_head_files import HeadFiles, HeadsInUseError, SigningRefusedError
from proofbox.service.storage.conversation_rows import new_or_known
from proofbox.service.storage.database import Database
from proofbox.service.storage.schema import audit, audit_keys, chains
from proofbox.service.timeline.block_writer import now_text

T = TypeVar("T")

_Chain = tuple[str, str]
_LINES_AT_ONCE = 200
_BUSY_SHARE = 0.02  # of the time; with very many chains the rounds are further apart
_LAST_ROUND_S = 2
_LOCK_AGAIN_S = 0.05
_LOCK_S_MAX = 60  # the first round of another process may have long chains to read
_log = logging.getLogger(HEADS_LOGGER)
_start_log = logging.getLogger(START_LOGGER)  # is logged at every level
_ENDS = select(
    chains.c.id,
    chains.c.tenant,
    chains.c.project,
    select(func.max(audit.c.seq)).where(audit.c.chain == chains.c.id).scalar_subquery().label("last"),
)


class HeadSigner:
    """Signs heads in rounds, each process its own; those that share the files take turns.

    Args:
        database: the open database.
        files: the key and the records.
        every_s: the pause between rounds.
    """

    def __init__(self, database: Database, files: HeadFiles, every_s: float) -> None:
        self._database = database
        self._files = files
        self._every_s = every_s
        self._stopping = asyncio.Event()
        self._rounds: asyncio.Task[None] | None = None
        self._troubles: frozenset[str] = frozenset()
        self._newest: tuple[int, str | None] = (0, None)  # the last record that this process knows
        self._forget()

    def _forget(self) -> None:
        self._records = HeadRecords()
        self._signed: dict[_Chain, Head] = {}
        self._offset, self._inode = 0, 0

    @property
    def is_signing(self) -> bool:
        """Whether the last round signed all that was to be signed."""
        return not self._troubles

    def start(self) -> None:
        """Begin the rounds: the first makes the key if there was never one, and signs what is not signed yet."""
        self._stopping.clear()
        self._rounds = asyncio.create_task(self._sign_for_ever())

    async def stop(self) -> None:
        """End the rounds and signs what is left, if that does not take long."""
        self._stopping.set()
        if self._rounds is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_ROUND_S):
                    await self._rounds
                    await self.sign()

    async def _sign_for_ever(self) -> None:
        while not self._stopping.is_set():
            began = time.monotonic()
            await self.sign()
            pause_s = max(self._every_s, (time.monotonic() - began) / _BUSY_SHARE)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._stopping.wait()

    async def sign(self) -> None:
        """Run one round. An obstacle is logged once until it changes; the next round tries again."""
        try:
            troubles = frozenset(await self._round())
        except HeadRecordError as exc:
            self._forget()
            troubles = frozenset({f"{self._files.heads.name} is damaged: {exc}"})
        except (StoreFailedError, StoreFullError) as exc:
            self._forget()
            troubles = frozenset({exc.message})
        except Exception as exc:  # noqa: BLE001 - the rounds go on, and the metric shows it
            self._forget()
            troubles = frozenset({f"an unforeseen error, {type(exc).__name__}: {exc}"})
            if not troubles <= self._troubles:
                _log.exception("a round of signing ended with an unforeseen error")
        for trouble in sorted(troubles - self._troubles):
            _log.error("audit heads are not signed: %s", trouble)
        if self._troubles and not troubles:
            _log.warning("audit heads are signed again")
        self._troubles = troubles

    async def _round(self) -> Sequence[str]:
        """Sign what is to be signed; what is wrong with the chains that are not."""
        known = await self._database.read(_known_keys)
        async with self._lock_records() as descriptor:
            key = await run_in_thread(None, lambda: self._ready(descriptor, known))
            if new := set(self._records.keys.values()) - known:
                await self._database.write(lambda connection: _add_keys(connection, sorted(new)))
            heads, troubles = await self._heads()
            if heads:
                await run_in_thread(None, lambda: self._append(descriptor, heads, key))
            return troubles

    @asynccontextmanager
    async def _lock_records(self) -> AsyncIterator[int]:
        """The locked file of records. No thread waits for other processes: it could not be stopped."""
        until = time.monotonic() + _LOCK_S_MAX
        with ExitStack() as stack:
            while True:
                try:
                    descriptor = await run_in_thread(
                        None, partial(stack.enter_context, self._files.locked(waits=False))
                    )
                    break
                except HeadsInUseError:
                    if time.monotonic() > until:
                        raise
                await asyncio.sleep(_LOCK_AGAIN_S)
            yield descriptor

    # ---- the files ----

    def _ready(self, descriptor: int, known: frozenset[str]) -> SigningKey:
        """Read the records that were added, and the key that signs the next one; makes the first of both."""
        self._catch_up(descriptor)
        records = self._records
        if strangers := known - set(records.keys.values()):
            raise SigningRefusedError(
                f"{self._files.strange(strangers)}; put them back ('proofbox audit begin-anew' if they are lost)"
            )
        key = self._files.signing_key(records.keys.get(records.signer))
        if records.keys and key is None:
            raise SigningRefusedError(
                f"{self._files.missing(records.signer)}; put it back ('proofbox audit begin-anew' if it is lost)"
            )
        if key is None:
            key = SigningKey.generate()
            self._files.write_key(key)
        if not records.keys:
            first = records.next_key(key, key, now_text())
            records.take(first)
            self._write(descriptor, [first])
            _start_log.info("audit heads are signed with the key %s; note its id outside of this machine", key.id)
        return key

    def _catch_up(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        if status.st_ino != self._inode or status.st_size < self._offset:
            self._forget()
            self._inode = status.st_ino
        last: dict[_Chain, str] = {}
        for line, end in self._files.lines(descriptor, self._offset):
            head = self._records.take(line, is_checked=False)
            if self._records.count == self._newest[0] and self._records.sha256 != self._newest[1]:
                raise SigningRefusedError(f"{self._files.heads.name} was replaced while the service ran")
            if head is not None:
                self._signed[head.tenant, head.project] = head
                last[head.tenant, head.project] = line
            self._offset = end
        for line in last.values():
            self._records.check(line)
        if self._records.count < self._newest[0]:
            raise SigningRefusedError(f"{self._files.heads.name} was shortened while the service ran")
        self._newest = self._records.count, self._records.sha256

    def _append(self, descriptor: int, heads: Sequence[Head], key: SigningKey) -> None:
        lines = []
        for head in heads:
            lines.append(self._records.next_head(head, key))
            self._records.take(lines[-1], is_checked=False)
        self._write(descriptor, lines)
        self._signed |= {(head.tenant, head.project): head for head in heads}

    def _write(self, descriptor: int, lines: Sequence[str]) -> None:
        """Add records that were taken already."""
        self._offset = self._files.append(descriptor, lines, self._offset)
        self._newest = self._records.count, self._records.sha256
        for line in lines:  # a log that is shipped is a copy elsewhere
            _log.info("%s", line)

    # ---- the chains ----

    async def _heads(self) -> tuple[list[Head], list[str]]:
        """The heads that are to be signed, and what is wrong with chains that are not."""
        rows = await self._database.read(lambda connection: connection.execute(_ENDS).all())
        ends = {(row.tenant, row.project): row for row in rows if row.last is not None}
        troubles = [
            f"{_name(chain)}: line {head.seq} was signed at {head.time} and is not there: the end was cut off"
            for chain, head in self._signed.items()
            if chain not in ends or ends[chain].last < head.seq
        ]
        heads = []
        for chain, row in ends.items():
            signed = self._signed.get(chain)
            if signed is None or row.last > signed.seq:
                state, problem = await self._check_chain(chain, row.id, signed)
                if problem is not None:
                    troubles.append(f"{_name(chain)}: {problem}")
                elif state is not None and state.sha256 is not None:
                    heads.append(Head(*chain, state.seq, state.sha256, now_text()))
        return heads, troubles

    async def _check_chain(
        self, chain: _Chain, number: int, signed: Head | None
    ) -> tuple[ChainState | None, str | None]:
        """Read a chain from its last signed head on; how far it is whole, and what is wrong with it."""
        check = AuditCheck(from_the_first=signed is None)
        first = 1 if signed is None else signed.seq
        while True:
            began = time.monotonic()
            rows = await self._database.read(partial(_take, check, chain, number, first))
            if signed is not None and first == signed.seq and not _begins_with(rows, signed):
                problem = f"line {signed.seq} is not as it was signed at {signed.time}: the chain was written anew"
                return None, problem
            state = check.chains.get(chain)
            if state is not None and state.problem is not None:
                return state, f"line {state.seq} {state.problem}"
            if len(rows) < _LINES_AT_ONCE:
                return state, None
            first = rows[-1].seq + 1
            await asyncio.sleep(time.monotonic() - began)  # a long chain is read beside the calls


def _take(check: AuditCheck, chain: _Chain, number: int, first: int, connection: Connection) -> Sequence[Any]:
    """Check the next lines of a chain."""
    lines = select(audit.c.seq, audit.c.sha256, audit.c.line).where(audit.c.chain == number, audit.c.seq >= first)
    rows = connection.execute(lines.order_by(audit.c.seq).limit(_LINES_AT_ONCE)).all()
    for row in rows:
        check.take(row.line, chain, (row.seq, row.sha256))
    return rows


def _begins_with(rows: Sequence[Any], head: Head) -> bool:
    return bool(rows) and (rows[0].seq, rows[0].sha256) == (head.seq, head.sha256)


def _name(chain: _Chain) -> str:
    tenant, project = chain
    return f"{tenant!a}/{project!a}"


def _known_keys(connection: Connection) -> frozenset[str]:
    return frozenset(connection.execute(select(audit_keys.c.public)).scalars())


def _add_keys(connection: Connection, publics: Sequence[str]) -> None:
    added = new_or_known(audit_keys, connection.dialect.name)
    for public in publics:
        connection.execute(added, {"public": public, "added": now_text()})


def forget_keys(connection: Connection) -> None:
    """Remove all keys from the database: the next start may begin with another one."""
    connection.execute(audit_keys.delete())
