"""What the real image lists of itself, and the catalogue made of it."""

import json

import pytest

from proofbox.service.timeline.bpe_tokens import BpeTokenCounter
from tests.http.test_tools import TOKENS_MAX

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

LOOK = """\
import importlib.metadata, json, shutil
found = {name: importlib.metadata.version(name) for name in NAMES}
json.dump({"libraries": found, "missing": [c for c in COMMANDS if not shutil.which(c)]}, open("files/a.json", "w"))
"""


async def test_the_inventory_is_what_a_program_finds(service, call):
    inventory = await service.image.get()
    assert {"numpy", "pandas", "matplotlib", "python-docx"} <= set(inventory.libraries)
    assert {"bash", "python3", "awk"} <= set(inventory.commands)
    assert set(inventory.languages) == {"bash", "node", "python"}
    code = f"NAMES = {list(inventory.libraries)}\nCOMMANDS = {list(inventory.commands)}\n{LOOK}"
    response = await call(code, ["a.json"])
    assert response.ok, response.report
    assert json.loads(await call.text("a.json")) == {"libraries": dict(inventory.libraries), "missing": []}


async def test_the_catalogue_of_the_real_image_names_its_libraries_and_stays_small(http):
    inventory = (await http.get("/v1/tools")).json()["image"]
    assert inventory["libraries"]["numpy"]
    for form in ("proofbox", "openai", "anthropic"):
        tools = (await http.get("/v1/tools", params={"format": form})).json()["tools"]
        text = json.dumps(tools, ensure_ascii=False, separators=(",", ":"))
        assert "numpy" in text
        assert BpeTokenCounter().count(text) <= TOKENS_MAX


async def test_a_call_by_its_function_name_runs_and_its_blocks_have_the_id_of_the_tool(http):
    body = {
        "tool_id": "exec_tools__execute_code_python",
        "tool_call_id": "function_1",
        "conversation_id": "by-function-name",
        "turn_id": "turn_1",
        "params": {
            "code": "open('files/a.txt', 'w').write('a')",
            "contract": [{"filename": "a.txt", "description": "a letter"}],
        },
    }
    answer = (await http.post("/v1/tool-calls", json=body)).json()
    assert answer["ok"], answer["report"]
    texts = {block["type"]: block["text"] for block in answer["blocks"] if "text" in block}
    assert json.loads(texts["react.tool.call"])["tool_id"] == "exec_tools.execute_code_python"
    assert texts["react.tool.code"] == body["params"]["code"]
