"""Every way in which a contract or the code of a call can be wrong, through the HTTP door, with nothing run."""

import json
from typing import Any

import httpx
import pytest

from tests.container.calling import Caller

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

NOT_RUN = "open('files/out.txt', 'w').write('it ran')"
ENTRY = {"filename": "out.txt", "description": "the output"}
LIST = "params.contract is not a non-empty list of {filename, description}"
OUTSIDE = " lies outside turn_1/files/; a call can promise files of its own turn only"
NOT_JSON = "params.contract is a string but no JSON: Expecting property name enclosed in double quotes: "
TABLES = "it applies to .csv, .tsv, .xlsx, .parquet, .jsonl, .ndjson"
RELATIVE = "; give a path relative to files/"


def spec(**fields: Any) -> list[dict[str, Any]]:
    return [{**ENTRY, **fields}]


MISSING = (
    "params.contract is missing; give a list of {filename, description} of what the code writes, or explore: true "
    "for a run that promises no file"
)
ROWS: list[tuple[str, Any, str, str]] = [
    (
        "no_contract",
        None,
        "missing_artifacts",
        MISSING,
    ),
    (
        "blank_contract",
        "",
        "missing_artifacts",
        MISSING,
    ),
    (
        "not_json",
        "[{oops",
        "invalid_artifacts_json",
        NOT_JSON + "line 1 column 3 (char 2)",
    ),
    ("empty_list", [], "invalid_artifacts", LIST),
    ("json_of_empty_list", "[]", "invalid_artifacts", LIST),
    ("object", {"filename": "out.txt"}, "invalid_artifacts", LIST),
    ("json_of_text", '"out.txt"', "invalid_artifacts", LIST),
    ("number", 5, "invalid_artifacts", LIST),
    (
        "entry_is_no_object",
        [ENTRY, 7],
        "invalid_artifacts",
        "contract[1] is no object; write {filename, description}",
    ),
    (
        "too_many_entries",
        [{**ENTRY, "filename": f"{n}.txt"} for n in range(201)],
        "invalid_artifacts",
        "params.contract has 201 entries, 200 are allowed; use glob for many files",
    ),
    ("blank_filename", spec(filename="  "), "invalid_artifact_spec", "contract[0].filename is blank"),
    (
        "blank_filepath",
        [{"filepath": "", "description": "d"}],
        "invalid_artifact_spec",
        "contract[0].filename is blank",
    ),
    ("no_filename", [{"description": "d"}], "invalid_artifact_spec", "contract[0]: give either filename or glob"),
    ("blank_description", spec(description=" \n"), "invalid_artifact_spec", "contract[0]: description is blank"),
    ("no_description", [{"filename": "a"}], "invalid_artifact_spec", "contract[0].description: Field required"),
    (
        "unknown_visibility",
        spec(visibility="secret"),
        "invalid_artifact_spec",
        "contract[0].visibility: Input should be 'external' or 'internal'",
    ),
    (
        "unknown_check",
        spec(min_row=3),
        "invalid_artifact_spec",
        "contract[0].min_row: there is no such field; did you mean min_rows?",
    ),
    (
        "check_of_a_wrong_type",
        spec(min_rows="3"),
        "invalid_artifact_spec",
        "contract[0].min_rows: Input should be a valid integer; "
        "contract[0] 'out.txt': min_rows does not apply to .txt files; " + TABLES,
    ),
    (
        "check_of_another_format",
        spec(columns=["a"]),
        "invalid_artifact_spec",
        "contract[0] 'out.txt': columns does not apply to .txt files; " + TABLES,
    ),
    (
        "media_type_of_another_format",
        spec(mime="text/csv"),
        "invalid_artifact_spec",
        "contract[0] 'out.txt': mime 'text/csv' cannot hold: .txt files are text/plain",
    ),
    (
        "encoding_of_no_text",
        spec(encoding="klingon"),
        "invalid_artifact_spec",
        "contract[0].encoding: 'klingon' is no text encoding that is known, such as cp1251 or shift_jis",
    ),
    (
        "filename_and_glob",
        spec(glob="*.txt"),
        "invalid_artifact_spec",
        "contract[0]: give either filename or glob",
    ),
    (
        "two_names",
        spec(filepath="other.txt"),
        "invalid_artifact_spec",
        "contract[0] has a filename and another filepath; give one of them",
    ),
    (
        "glob_without_wildcard",
        [{"glob": "out.txt", "description": "d"}],
        "invalid_artifact_spec",
        "contract[0]: glob 'out.txt' has no wildcard; use filename",
    ),
    (
        "parent_folder",
        spec(filename="../out.txt"),
        "invalid_filename",
        "contract[0]: the path '../out.txt' has the segment '..'" + RELATIVE,
    ),
    (
        "absolute",
        spec(filename="/etc/out.txt"),
        "invalid_filename",
        "contract[0]: the path '/etc/out.txt' is absolute" + RELATIVE,
    ),
    (
        "empty_segment",
        spec(filename="a//out.txt"),
        "invalid_filename",
        "contract[0]: the path 'a//out.txt' has the segment ''" + RELATIVE,
    ),
    (
        "nul",
        spec(filename="out\0.txt"),
        "invalid_filename",
        r"contract[0]: the path 'out\x00.txt' holds the control character U+0000" + RELATIVE,
    ),
    (
        "backslash",
        spec(filename="a\\out.txt"),
        "invalid_filename",
        "contract[0]: the path 'a\\\\out.txt' holds a backslash" + RELATIVE,
    ),
    (
        "long_name",
        spec(filename="é" * 128),
        "invalid_filename",
        "contract[0]: the path '" + r"\xe9" * 80 + "' has a segment of 256 bytes, 255 are allowed" + RELATIVE,
    ),
    (
        "other_turn",
        spec(filename="turn_0/files/out.txt"),
        "invalid_filename",
        "contract[0]: 'turn_0/files/out.txt'" + OUTSIDE,
    ),
    (
        "logical_path_of_another_turn",
        spec(filename="fi:turn_0.files/out.txt"),
        "invalid_filename",
        "contract[0]: 'fi:turn_0.files/out.txt'" + OUTSIDE,
    ),
    (
        "attachment",
        spec(filename="turn_1/attachments/out.txt"),
        "invalid_filename",
        "contract[0]: 'turn_1/attachments/out.txt'" + OUTSIDE,
    ),
    (
        "same_file_twice",
        [ENTRY, {"filename": "fi:turn_1.files/out.txt", "description": "again"}],
        "duplicate_artifact",
        "contract[1] and contract[0] are the same file, turn_1/files/out.txt; promise it once",
    ),
    (
        "same_file_in_two_unicode_forms",
        [
            {"filename": "caf\u00e9.txt", "description": "d"},
            {"filename": "files/cafe\u0301.txt", "description": "d"},
        ],
        "duplicate_artifact",
        "contract[1] and contract[0] are the same file, turn_1/files/caf\u00e9.txt; promise it once",
    ),
]

CODES: list[tuple[str, str | None, str, str, dict[str, Any]]] = [
    (
        "no_code",
        None,
        "missing_code",
        "the call has no code; send the program beside the params",
        {},
    ),
    (
        "blank_code",
        " \n\t\n",
        "missing_code",
        "the call has no code; send the program beside the params",
        {},
    ),
    (
        "fenced",
        f"```python\n{NOT_RUN}\n```",
        "code_contaminated",
        "line 1 of the code holds '```python', which is no part of a program; send the code alone",
        {"marker": "```python", "line": 1},
    ),
    (
        "closing_fence",
        f"\n{NOT_RUN}\n```\n\n",
        "code_contaminated",
        "line 3 of the code holds '```', which is no part of a program; send the code alone",
        {"marker": "```", "line": 3},
    ),
    (
        "channel_tag",
        f"<channel:code>\n{NOT_RUN}",
        "code_contaminated",
        "line 1 of the code holds '<channel:code>', which is no part of a program; send the code alone",
        {"marker": "<channel:code>", "line": 1},
    ),
    (
        "thinking_tag",
        f"{NOT_RUN}\n</thinking>",
        "code_contaminated",
        "line 2 of the code holds '</thinking>', which is no part of a program; send the code alone",
        {"marker": "</thinking>", "line": 2},
    ),
]


def first(rows: list[Any]) -> list[Any]:
    return [pytest.param(*row[1:], id=row[0]) for row in rows]


async def refused(
    http: httpx.AsyncClient, call: Caller, body: dict[str, Any], code: str, message: str
) -> list[dict[str, Any]]:
    """Sends a call that has to be refused, checks envelope, report and that nothing ran; its blocks."""
    answer = await http.post("/v1/tool-calls", json=body)
    assert answer.status_code == 200
    response = answer.json()
    assert (response["ok"], response["error"]) == (
        False,
        {"code": code, "message": message, "where": "contract", "managed": True},
    )
    assert response["report"] == f"Runtime error: {code} — {message}\nNothing was run."
    assert (response.get("sandbox"), response["timings_ms"]["acquire"], response["artifacts"]) == (None, 0.0, [])
    assert [event.name for event in await call.events()] == ["result"]
    assert await call.stored("turn_1/files/out.txt") is None
    blocks: list[dict[str, Any]] = response["blocks"]
    assert "managed" not in json.dumps(blocks)
    return blocks


def shown(blocks: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(block["type"], block["path"], block["mime"]) for block in blocks]


@pytest.mark.parametrize(("contract", "code", "message"), first(ROWS))
async def test_wrong_contract_is_refused_with_its_code(
    http: httpx.AsyncClient, call: Caller, contract: Any, code: str, message: str
) -> None:
    body = call.body(NOT_RUN, notes="I try.", tool_call_id="tc1")
    body["params"]["contract"] = contract
    blocks = await refused(http, call, body, code, message)
    assert shown(blocks) == [
        ("react.notes", "ar:turn_1.react.notes.tc1", "text/markdown"),
        ("react.notice", "tc:turn_1.tc1.notice", "application/json"),
        ("react.tool.code", "fi:turn_1.code.tc1", "text/x-python"),
        ("react.tool.call", "tc:turn_1.tc1.call", "application/json"),
        ("react.tool.result", "tc:turn_1.tc1.result", "text/markdown"),
    ]
    assert json.loads(blocks[1]["text"]) == {
        "code": "protocol_violation.exec_contract_invalid",
        "message": message,
        "error": code,
    }
    assert json.loads(blocks[3]["text"])["params"] == {"contract": contract}


@pytest.mark.parametrize(("text", "code", "message", "details"), first(CODES))
async def test_wrong_code_is_refused_with_its_code(
    http: httpx.AsyncClient, call: Caller, text: str | None, code: str, message: str, details: dict[str, Any]
) -> None:
    blocks = await refused(http, call, call.body(text, ["out.txt"]), code, message)
    [notice] = [json.loads(block["text"]) for block in blocks if block["type"] == "react.notice"]
    assert notice == {
        "code": "protocol_violation.exec_contract_invalid",
        "message": message,
        "error": code,
        **details,
    }
    assert [block["text"] for block in blocks if block["type"] == "react.tool.code"] == ([text] if text else [])


async def test_call_without_turn_id_is_refused_and_has_no_turn_to_put_blocks_in(
    http: httpx.AsyncClient, call: Caller
) -> None:
    message = "the call has no turn_id; give the current turn's id"
    body = call.body(NOT_RUN, ["out.txt"], turn_id=None)
    assert await refused(http, call, body, "missing_turn_id", message) == []


@pytest.mark.parametrize("contract", [json.dumps([ENTRY]), [{"filepath": "out.txt", "description": "d"}]])
async def test_json_text_and_the_filepath_alias_are_a_contract(call: Caller, contract: Any) -> None:
    response = await call(NOT_RUN, contract)
    assert (response.ok, await call.text("out.txt")) == (True, "it ran")


@pytest.mark.parametrize(
    "spelling", ["out.txt", "files/out.txt", "turn_1/files/out.txt", "fi:turn_1.files/out.txt"]
)
async def test_every_plain_spelling_means_the_same_file_without_a_notice(call: Caller, spelling: str) -> None:
    response = await call(NOT_RUN, [spelling])
    assert (response.ok, [a.physical_path for a in response.artifacts]) == (True, ["turn_1/files/out.txt"])
    assert [block.type for block in response.blocks if block.type == "react.notice"] == []


async def test_spelling_that_was_repaired_is_told_in_a_notice(call: Caller) -> None:
    response = await call("open('files/caf\u00e9.txt', 'w').write('x')", ["./cafe\u0301.txt"])
    assert (response.ok, [a.physical_path for a in response.artifacts]) == (True, ["turn_1/files/caf\u00e9.txt"])
    [notice] = [block for block in response.blocks if block.type == "react.notice"]
    assert json.loads(notice.text or "") == {
        "code": "protocol_violation.exec_contract_rewritten",
        "message": "names of the contract were rewritten; write to the rewritten paths",
        "rewritten": [{"original": "./cafe\u0301.txt", "rewritten": "turn_1/files/caf\u00e9.txt"}],
    }


async def test_unknown_parameter_is_the_models_mistake(http: httpx.AsyncClient, call: Caller) -> None:
    body = call.body(NOT_RUN, ["out.txt"])
    body["params"]["timeout"] = 3
    answer = await http.post("/v1/tool-calls", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (200, "invalid_params")
    assert "params.timeout: is not a parameter of this tool" in answer.json()["error"]["message"]
