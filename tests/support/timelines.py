"""Timelines made by hand for the tests of what a model reads."""

import json

from proofbox.contracts.blocks import Block

TS = "2026-02-09T02:14:32.676425Z"


def block(kind, text=None, *, turn="turn_1", path="", call=None, mime="text/markdown", base64=None, **meta):  # noqa: PLR0913 - a block's fields
    return Block(
        type=kind,
        author="user" if kind.startswith("user.") else "react",
        turn_id=turn,
        ts=TS,
        mime=mime,
        path=path,
        text=text,
        base64=base64,
        call_id=call,
        meta=meta,
    )


def prompt(text="hello", turn="turn_1"):
    return block("user.prompt", text, turn=turn, path=f"ar:{turn}.user.prompt")


def call_block(call, tool="react.read", turn="turn_1"):
    text = json.dumps({"tool_id": tool, "tool_call_id": call, "params": {}})
    return block(
        "react.tool.call", text, turn=turn, path=f"tc:{turn}.{call}.call", call=call, mime="application/json"
    )


def digest_block(path, call, turn="turn_1", **more):
    text = json.dumps({"artifact_path": path, "mime": "text/plain", "tool_call_id": call, **more})
    return block(
        "react.tool.result", text, turn=turn, path=f"tc:{turn}.{call}.result", call=call, mime="application/json"
    )


def plan_block(step, call=None, turn="turn_1", *, is_done=False):
    plan = {"plan_id": f"plan_{step}", "steps": [step], "status": {"1": "done"} if is_done else {}}
    path = f"ar:{turn}.react.plan.plan_{step}"
    return block("react.plan", json.dumps(plan), turn=turn, path=path, call=call, mime="application/json")


def content_block(path, text, call, turn="turn_1"):
    return block("react.tool.result", text, turn=turn, path=path, call=call, mime="text/plain")


def hiding_block(path, replacement, call, turn="turn_1", since=None):
    meta = {"hides": path, "replacement_text": replacement} | ({} if since is None else {"hides_from": since})
    return block(
        "react.tool.result",
        "{}",
        turn=turn,
        path=f"tc:{turn}.{call}.result",
        call=call,
        mime="application/json",
        **meta,
    )


def summary_block(covered, text="what happened", turn="turn_9"):
    path = f"su:{turn}.conv.range.summary"
    return block("conv.range.summary", text, turn=turn, path=path, covered_turn_ids=list(covered))
