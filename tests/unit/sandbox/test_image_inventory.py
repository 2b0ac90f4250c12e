"""What the image has is asked of it once, and a failure costs the catalogue nothing but the libraries."""

import asyncio
import json

import pytest

from proofbox.service.sandbox import image_inventory
from proofbox.service.sandbox.image_inventory import ImageInventory, Inventory
from proofbox.service.sandbox.limits import CallLimits
from tests.support.fake_engine import INFO
from tests.support.printing_engine import PrintingEngine

MIB = 1024 * 1024
LIMITS = CallLimits(600, 1.0, 256 * MIB, 64, 16 * MIB, 1_000, 16 * MIB, 100, 8, MIB, 16 * MIB)
PRINTED = {
    "python": "3.13.5",
    "libraries": {"numpy": "2.5.5"},
    "commands": ["bash", "jq"],
    "languages": ["bash", "node", "python"],
    "machine": "x86_64",
    "glibc": "2.41",
}
IMAGE = ("x86_64", "2.41", INFO.image_digest)
KNOWN = Inventory("3.13.5", {"numpy": "2.5.5"}, ("bash", "jq"), ("bash", "node", "python"), *IMAGE)


@pytest.fixture
def engine():
    return PrintingEngine(json.dumps(PRINTED).encode())


@pytest.fixture
def image(engine):
    return ImageInventory(engine, LIMITS)


async def test_the_image_is_asked_once_by_its_own_program_in_a_bounded_run(engine, image):
    assert await image.get() == KNOWN
    assert await image.get() == KNOWN
    [job] = engine.jobs
    assert (job.language, job.limits.wall_s) == ("inventory", 30)


async def test_all_who_ask_at_one_time_wait_for_one_answer(engine, image):
    engine.may_answer.clear()
    asking = [asyncio.create_task(image.get()) for _ in range(5)]
    await engine.has_started.wait()
    asking[0].cancel()
    engine.may_answer.set()
    answers = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(answers[0], asyncio.CancelledError)
    assert (answers[1:], len(engine.jobs)) == ([KNOWN] * 4, 1)


async def test_who_cannot_wait_longer_gets_an_answer_without_libraries_and_the_next_one_all(
    engine, image, monkeypatch
):
    monkeypatch.setattr(image_inventory, "_WAIT_S", 0)
    engine.may_answer.clear()
    first = await image.get()
    assert (first.is_known, first.libraries, first.languages) == (False, {}, ("bash", "python"))
    engine.may_answer.set()
    monkeypatch.undo()
    assert (await image.get(), len(engine.jobs)) == (KNOWN, 1)


@pytest.mark.parametrize("printed", [b"", b"Traceback", b"[]", b"{}", b'{"python": 3}'])
async def test_an_image_that_prints_no_inventory_is_asked_again_later(engine, image, monkeypatch, printed):
    good, engine.printed = engine.printed, printed
    assert await image.get() == Inventory()
    engine.printed = good
    assert (await image.get(), len(engine.jobs)) == (Inventory(), 1)  # not at once: a start costs seconds
    monkeypatch.setattr(image_inventory, "_RETRY_AFTER_S", 0.0)
    again = ImageInventory(engine, LIMITS)
    engine.printed = printed
    assert await again.get() == Inventory()
    engine.printed = good
    assert await again.get() == KNOWN


async def test_an_engine_that_is_down_or_loses_the_sandbox_is_no_error(engine, image, monkeypatch):
    monkeypatch.setattr(image_inventory, "_RETRY_AFTER_S", 0.0)
    engine.is_down = True
    assert not (await image.get()).is_known
    engine.is_down, engine.is_lost_at = False, "run"
    assert not (await image.get()).is_known
    engine.is_lost_at = ""
    assert await image.get() == KNOWN


async def test_closing_ends_what_is_under_way(engine, image):
    engine.may_answer.clear()
    asking = asyncio.create_task(image.get())
    await engine.has_started.wait()
    await image.close()
    assert await asking == Inventory()
    await image.close()
