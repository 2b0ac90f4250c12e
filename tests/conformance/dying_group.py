"""Adds blocks to a timeline from eight tasks at one time until it is killed; run as ``dying_group.py <folder>``.

Prints the turn of each write that is kept: three blocks, all of one turn.
"""

import asyncio
import itertools
import sys
from pathlib import Path

from contracts.blocks import Block
from service.identity import Principal, Scope
from service.storage.database import Database
from service.storage.timelines import SqlTimelineStore

SCOPE = Scope(Principal("acme", "books", "registered", "ann"), "conv-1")


def blocks(turn):
    block = Block(
        type="note",
        author="react",
        turn_id=turn,
        ts="2026-07-04T13:18:14.000Z",
        mime="text/plain",
        path=turn,
        text="x",
    )
    return [block] * 3


async def add_for_ever(store, numbers):
    for number in numbers:
        await store.append(SCOPE, blocks(f"turn_{number}"))
        print(f"turn_{number}", flush=True)  # noqa: T201 - the test reads it


async def main(folder):
    database = Database(folder)
    await database.open()
    store = SqlTimelineStore(database)
    numbers = itertools.count(1)
    await asyncio.gather(*(add_for_ever(store, numbers) for _ in range(8)))


asyncio.run(main(Path(sys.argv[1])))
