"""``react.plan``: the snapshot, its acknowledgement, and what makes two calls the same plan."""

import asyncio
import json

import pytest

from proofbox.contracts.react_tools import PlanParams
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.service.calls.direct_tool import DirectTool
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.react.plan import PlanTool

SCOPE = ConversationKey(Principal("acme", "books", "registered", "ann"), "conv-1")
STEPS = ["Find museums", "Compare\nhours", "Write the list", "Send it"]


def plan(blocks, steps=STEPS, status=None, call="p1", turn="turn_1"):
    request = ToolCallRequest(
        tool_id="react.plan",
        tool_call_id=call,
        conversation_id="conv-1",
        turn_id=turn,
        params={"steps": steps, "status": status or {}},
        timeline=blocks,
    )
    return asyncio.run(DirectTool(PlanParams, PlanTool(None).run).prepare(SCOPE, request).run(None))


def test_a_plan_is_a_snapshot_and_an_acknowledgement_after_call_and_result():
    told = plan([], status={"1": "done", "2": "in_progress", "3": "failed"})
    plan_id = told.ret["plan"]["plan_id"]
    assert [(item.type, item.mime, item.path) for item in told.blocks] == [
        ("react.tool.call", "application/json", "tc:turn_1.p1.call"),
        ("react.tool.result", "application/json", "tc:turn_1.p1.result"),
        ("react.plan", "application/json", f"ar:turn_1.react.plan.{plan_id}"),
        ("react.plan.ack", "text/markdown", "ar:turn_1.react.plan.ack.1"),
    ]
    snapshot = json.loads(told.blocks[2].text)
    assert list(snapshot) == ["plan_id", "steps", "status", "created_ts", "last_ts"]
    assert snapshot["steps"] == STEPS
    assert snapshot["status"] == {"1": "done", "2": "in_progress", "3": "failed", "4": "pending"}
    assert snapshot["created_ts"] == snapshot["last_ts"]
    assert told.blocks[3].text == (
        "✓ 1. Find museums\n… 2. Compare hours — in progress\n✗ 3. Write the list — failed\n□ 4. Send it"
    )


def test_the_same_steps_in_a_turn_are_the_same_plan_and_other_steps_a_new_one():
    blocks, said = [], []
    for number, (steps, turn) in enumerate(
        [(STEPS, "turn_1"), (STEPS[:2], "turn_1"), (STEPS, "turn_1"), (STEPS, "turn_1"), (STEPS, "turn_2")]
    ):
        told = plan(blocks, steps, call=f"p{number}", turn=turn)
        # Times of their own, so that a kept one can be told from a new one.
        snapshot = json.loads(told.blocks[2].text)
        is_new = snapshot["created_ts"] == snapshot["last_ts"]
        snapshot["created_ts"] = f"time {number}" if is_new else snapshot["created_ts"]
        told.blocks[2].text = json.dumps(snapshot)
        blocks += told.blocks
        said.append((snapshot["plan_id"], snapshot["created_ts"], told.blocks[3].path))
    first, second, third, fourth, other_turn = said
    assert (first[1], second[1], third[1], fourth[1], other_turn[1]) == (
        "time 0",
        "time 1",
        "time 0",
        "time 0",
        "time 4",
    )
    assert first[0] == third[0] == fourth[0]
    assert len({first[0], second[0], other_turn[0]}) == 3
    assert [path for _, _, path in said] == [
        *(f"ar:turn_1.react.plan.ack.{number}" for number in (1, 2, 3, 4)),
        "ar:turn_2.react.plan.ack.1",
    ]


def test_iterations_go_on_after_many():
    blocks = []
    for number in range(1, 20):
        told = plan(blocks, call=f"p{number}")
        assert told.ret["iteration"] == number
        blocks += told.blocks


@pytest.mark.parametrize("status", [{"5": "done"}, {"1": "done", "100": "pending"}])
def test_a_status_of_a_step_that_is_none_is_refused(status):
    told = plan([], status=status)
    assert (told.ok, told.error.code) == (False, "unknown_step")
    assert "the plan has the steps 1 to 4" in told.error.message
    assert [item.type for item in told.blocks] == ["react.tool.call", "react.notice", "react.tool.result"]
