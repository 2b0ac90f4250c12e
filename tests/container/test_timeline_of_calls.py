"""What calls leave on a timeline: their blocks, once and in order, and the text that a model reads."""

import pytest

from proofbox.service.identity import ConversationKey
from proofbox.service.timeline.block_text import rendered

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

PAINT = """\
from PIL import Image

Image.new("RGB", (8, 8)).save("files/a.png")
open("files/a.txt", "w").write("words")
"""


async def page(service, conversation):
    return await service.timeline.page(ConversationKey(service.principal, conversation), 0, 1_000)


async def test_the_blocks_of_calls_stand_on_the_timeline_in_the_order_of_the_calls(service, call):
    call.conversation = "timeline-of-calls"
    first = await call(PAINT, ["a.png", "a.txt"])
    second = await call("raise SystemExit(3)", ["b.txt"])
    shown = await page(service, call.conversation)
    assert shown.blocks == [*first.blocks, *second.blocks]
    assert (shown.last, shown.more) == (len(first.blocks) + len(second.blocks), False)


async def test_the_text_of_the_timeline_is_that_of_its_calls_under_the_line_of_the_turn(service, call):
    call.conversation = "timeline-as-text"
    response = await call(PAINT, ["a.png", "a.txt"])
    view = await service.timeline.rendered(ConversationKey(service.principal, call.conversation), 0)
    head, _, rest = view.text.partition("\n\n")
    assert head.startswith("[TURN turn_")
    assert rest == rendered(response.blocks)
    assert "<image media_type=image/png b64_len=" in rest
