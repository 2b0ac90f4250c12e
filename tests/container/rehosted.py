"""What the tests of rehosting share: a turn that leaves files, and what an answer says of the rehosted ones."""

import json
from typing import Any

from proofbox.contracts.tool_call_response import ToolCallResponse
from tests.container.calling import Caller

# Prints every file of the working directory.
LIST = """
import os
for folder, _, names in sorted(os.walk(".")):
    for name in sorted(names):
        print(os.path.join(folder, name)[2:])
"""


async def write(call: Caller, *names: str, turn_id: str = "turn_1") -> ToolCallResponse:
    """A turn that leaves files; each holds its own name."""
    code = f"""
import os
for name in {names!r}:
    os.makedirs(os.path.dirname("files/" + name), exist_ok=True)
    open("files/" + name, "w").write(name)
"""
    response = await call(code, list(names), turn_id=turn_id)
    assert response.ok, response.report
    return response


def ledger(response: ToolCallResponse) -> list[tuple[str, str, str]]:
    return [(line.asked, line.source, line.physical_path) for line in response.rehosted]


def notices(response: ToolCallResponse) -> list[dict[str, Any]]:
    return [json.loads(block.text or "") for block in response.blocks if block.type == "react.notice"]
