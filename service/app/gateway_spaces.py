"""Builds what spaces need: their stores, their feed, the arguments that are being written, and their tokens."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proofbox.service.access.space_tokens import SpaceTokens
from proofbox.service.app.gateway_waits import WaitParts
from proofbox.service.artifacts.download_links import LinkKey
from proofbox.service.gateway.built_ins.built_in import BuiltIn
from proofbox.service.gateway.built_ins.enter_space import build_enter_space
from proofbox.service.gateway.built_ins.read_messages import build_read_messages
from proofbox.service.gateway.built_ins.send_message import build_send_message
from proofbox.service.gateway.built_ins.send_reply import build_send_reply
from proofbox.service.gateway.catalogue import ToolCatalogue
from proofbox.service.gateway.result_files import ResultFiles
from proofbox.service.gateway.runs_port import RunStore
from proofbox.service.gateway.spaces.call_places import SpacePlaces, ToolsOfRuns
from proofbox.service.gateway.spaces.feed import SpaceFeed
from proofbox.service.gateway.spaces.tool_inputs import ToolInputs
from proofbox.service.storage.database import Database
from proofbox.service.storage.gateway.call_record_store import SqlCallRecords
from proofbox.service.storage.gateway.messages import SqlMessageStore
from proofbox.service.storage.gateway.outbox import SqlOutbox
from proofbox.service.storage.gateway.space_entry import SqlSpaceEntry
from proofbox.service.storage.gateway.space_events import SqlSpaceEventStore
from proofbox.service.storage.gateway.spaces import SqlSpaceStore


@dataclass(frozen=True, slots=True)
class SpaceParts:
    """The parts of spaces.

    Attributes:
        spaces: entities, spaces and members.
        messages: the messages of spaces.
        records: the records of calls.
        feed: the events of spaces.
        inputs: the arguments that are being written.
        places: where the records of calls belong.
    """

    spaces: SqlSpaceStore
    messages: SqlMessageStore
    records: SqlCallRecords
    feed: SpaceFeed
    inputs: ToolInputs
    places: SpacePlaces

    async def start(self, *, alone: bool = True) -> int:
        """End the streams that an earlier process of the service left, how many; abandon those that are silent.

        Of other processes that run (not ``alone``), the streams are theirs.
        """
        left = await self.records.abandon_streams() if alone else 0
        self.inputs.start()
        return left

    async def stop(self) -> None:
        """End the streams of followers, and stop."""
        self.feed.close()
        await self.inputs.stop()


def build_space_parts(database: Database, runs: RunStore, catalogue: ToolCatalogue) -> SpaceParts:
    """Build the parts of spaces."""
    records = SqlCallRecords(database)
    inputs = ToolInputs(records, ToolsOfRuns(runs, catalogue), database.changes)
    return SpaceParts(
        SqlSpaceStore(database),
        SqlMessageStore(database),
        records,
        SpaceFeed(SqlSpaceEventStore(database), inputs, database.changes),
        inputs,
        SpacePlaces(records, inputs),
    )


def build_space_tools(database: Database, files: ResultFiles, waits: WaitParts) -> list[BuiltIn]:
    """Build the built-in tools that act in spaces."""
    outbox = SqlOutbox(database)
    return [
        build_enter_space(SqlSpaceEntry(database), files),
        build_send_message(outbox, waits.policy),
        build_send_reply(outbox, waits.policy),
        build_read_messages(outbox, files),
    ]


def build_space_tokens(link_keys: Callable[[], Sequence[LinkKey]]) -> SpaceTokens:
    """Build what makes and reads space tokens; they are signed with the keys of download links."""
    return SpaceTokens(lambda: [(key.id, key.secret) for key in link_keys()], time.time)
