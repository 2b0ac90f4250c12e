"""What both web tools answer alike: a meta block that names the sources, then the content as JSON."""

from collections.abc import Sequence
from typing import Any

from proofbox.contracts.blocks import Block
from proofbox.contracts.paths import result_path
from proofbox.service.calls.direct_tool import ReactCall
from proofbox.service.timeline.block_writer import now_text


def result_blocks(call: ReactCall[Any], content: Any, sids: Sequence[int]) -> list[Block]:
    """The call and its two result blocks, in the order of the timeline."""
    meta = {
        "artifact_path": result_path(call.turn_id, call.request.tool_call_id),
        "mime": "application/json",
        "kind": "file",
        "visibility": "internal",
        "tool_call_id": call.request.tool_call_id,
        "tool_id": call.request.tool_id,
        "ts": now_text(),
        **({"sources_used": sorted(set(sids))} if sids else {}),
    }
    return [*call.opening_blocks(), call.write.result_json(meta), call.write.result_json(content)]
