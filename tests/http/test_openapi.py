import json
import re
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import jsonschema
import pytest

import proofbox.contracts
from proofbox.contracts.exec_params import ExecParams
from proofbox.contracts.problems import Problem
from proofbox.contracts.tools import catalogue

METHODS = ("get", "put", "post", "patch", "delete")
JUNK = ("%00", "..%2F..%2Fetc%2Fpasswd", "x" * 400, "%FF%FE", "%0d%0aX-Evil:1", "'\";--", "\u202e")


@pytest.fixture
def document(app) -> dict[str, Any]:
    # As it goes over the wire.
    return json.loads(json.dumps(app.openapi()))


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method, path, item[method])
        for path, item in document["paths"].items()
        for method in METHODS
        if method in item
    ]


def references(node: Any) -> list[str]:
    if isinstance(node, dict):
        below = [ref for value in node.values() for ref in references(value)]
        return [node["$ref"], *below] if "$ref" in node else below
    return [ref for item in node for ref in references(item)] if isinstance(node, list) else []


def test_every_route_is_documented_under_its_stable_name(document):
    assert {(method, path): operation["operationId"] for method, path, operation in operations(document)} == {
        ("post", "/v1/tool-calls"): "make_tool_call",
        ("get", "/v1/tool-calls/{tool_call_id}"): "get_tool_call",
        ("delete", "/v1/tool-calls/{tool_call_id}"): "cancel_tool_call",
        ("get", "/v1/tool-calls/{tool_call_id}/events"): "watch_tool_call",
        ("get", "/v1/tool-calls/{tool_call_id}/provenance"): "get_provenance",
        ("post", "/v1/tool-calls/{tool_call_id}/rerun"): "rerun_tool_call",
        ("get", "/v1/tools"): "list_tools",
        ("put", "/v1/conversations/{conversation_id}/turns/{turn_id}/attachments/{name}"): "put_attachment",
        ("get", "/v1/conversations"): "list_conversations",
        ("get", "/v1/conversations/{conversation_id}/files"): "list_files",
        ("delete", "/v1/conversations/{conversation_id}"): "delete_conversation",
        ("delete", "/v1/conversations/{conversation_id}/artifacts/{logical_path}"): "delete_file",
        ("get", "/v1/conversations/{conversation_id}/artifacts/{logical_path}"): "get_artifact",
        ("put", "/v1/uploads/{token}"): "put_linked_attachment",
        ("get", "/v1/conversations/{conversation_id}/archive"): "get_archive",
        ("get", "/v1/conversations/{conversation_id}/previews/{logical_path}"): "get_preview",
        ("get", "/v1/conversations/{conversation_id}/versions/{logical_path}"): "list_versions",
        ("get", "/v1/conversations/{conversation_id}/differences/{logical_path}"): "get_difference",
        ("get", "/v1/tool-calls"): "list_tool_calls",
        ("get", "/v1/status"): "get_status",
        ("get", "/v1/caller"): "get_caller",
        ("get", "/v1/keys"): "list_keys",
        ("get", "/v1/conversations/{conversation_id}/timeline/aligned"): "get_aligned_timeline",
        ("get", "/v1/conversations/{conversation_id}/artifacts"): "list_artifacts",
        ("get", "/v1/links/{number}"): "get_linked_file",
        ("get", "/v1/conversations/{conversation_id}/timeline"): "get_timeline",
        ("post", "/v1/conversations/{conversation_id}/timeline"): "append_to_timeline",
        ("get", "/v1/conversations/{conversation_id}/sources"): "get_sources",
        ("get", "/livez"): "live",
        ("get", "/readyz"): "ready",
        ("get", "/metrics"): "get_metrics",
        ("put", "/v1/agents/{agent_id}"): "put_agent",
        ("post", "/v1/agent-imports"): "import_agent",
        ("get", "/v1/agents/{agent_id}"): "get_agent",
        ("get", "/v1/agents/{agent_id}/state"): "get_agent_state",
        ("delete", "/v1/agents/{agent_id}"): "delete_agent",
        ("get", "/v1/agents"): "list_agents",
        ("post", "/v1/runs"): "create_run",
        ("get", "/v1/runs"): "list_runs",
        ("post", "/v1/runs/claim"): "claim_run",
        ("get", "/v1/runs/{run_id}"): "get_run",
        ("delete", "/v1/runs/{run_id}"): "cancel_run",
        ("get", "/v1/runs/{run_id}/context"): "get_run_context",
        ("post", "/v1/runs/{run_id}/heartbeat"): "extend_run_lease",
        ("post", "/v1/runs/{run_id}/release"): "release_run",
        ("post", "/v1/runs/{run_id}/finish"): "finish_run",
        ("get", "/v1/runs/{run_id}/events"): "watch_run",
        ("put", "/v1/entities/{entity_id}"): "put_entity",
        ("get", "/v1/entities/{entity_id}"): "get_entity",
        ("get", "/v1/entities"): "list_entities",
        ("post", "/v1/spaces"): "create_space",
        ("get", "/v1/spaces"): "list_spaces",
        ("get", "/v1/spaces/{space_id}"): "get_space",
        ("patch", "/v1/spaces/{space_id}"): "change_space",
        ("delete", "/v1/spaces/{space_id}"): "archive_space",
        ("put", "/v1/spaces/{space_id}/members/{entity_id}"): "add_member",
        ("delete", "/v1/spaces/{space_id}/members/{entity_id}"): "remove_member",
        ("post", "/v1/spaces/{space_id}/tokens"): "create_space_token",
        ("get", "/v1/spaces/{space_id}/messages"): "list_messages",
        ("post", "/v1/spaces/{space_id}/messages"): "post_message",
        ("get", "/v1/spaces/{space_id}/messages/{message_id}"): "get_message",
        ("get", "/v1/spaces/{space_id}/messages/{message_id}/artifacts/{logical_path}"): "get_message_artifact",
        ("get", "/v1/spaces/{space_id}/events"): "watch_space",
        ("post", "/v1/runs/{run_id}/tool-inputs/{tool_call_id}"): "post_tool_input",
        ("post", "/v1/spaces/{space_id}/messages/{message_id}/result"): "answer_message",
        ("post", "/v1/tool-calls/{tool_call_id}/result"): "answer_tool_call",
        ("post", "/v1/agents/{agent_id}/signing-secret"): "get_signing_secret",
        ("post", "/v1/external/{tool_id}"): "call_by_webhook",
    }


def test_every_route_has_a_summary_a_description_and_described_answers(document):
    for _, _, operation in operations(document):
        assert operation["summary"]
        assert operation["description"]
        assert all(answer["description"] for answer in operation["responses"].values())


def test_every_reference_of_the_document_leads_somewhere(document):
    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert sorted(set(references(document)) - known) == []


def test_every_schema_is_a_json_schema(document):
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_the_parameters_of_tools_that_programs_call_are_schemas_for_generated_clients(document):
    schemas = document["components"]["schemas"]
    assert set(schemas["ExecParams"]["properties"]) == set(ExecParams.model_fields)
    formats = ("Pdf", "Docx", "Pptx", "Png", "Xlsx")
    assert all("path" in schemas[f"Write{name}Params"]["properties"] for name in formats)


def test_problems_are_documented_as_problem_json_and_name_their_codes(document):
    [tool_call] = [op for _, _, op in operations(document) if op["operationId"] == "make_tool_call"]
    conflict = tool_call["responses"]["409"]
    assert list(conflict["content"]) == ["application/problem+json"]
    assert re.findall(r"`(\w+)`:", conflict["description"]) == [
        "wrong_conversation",
        "lease_lost",
        "run_not_running",
        "run_ended",
        "id_reused",
        "sid_conflict",
        "cancelled",
    ]
    assert "Retry-After" in tool_call["responses"]["429"]["headers"]


def test_the_frameworks_own_error_model_is_nowhere(document):
    assert "HTTPValidationError" not in json.dumps(document)


def test_the_examples_of_the_request_are_those_of_the_contracts_and_hold_to_the_schema(document):
    content = document["paths"]["/v1/tool-calls"]["post"]["requestBody"]["content"]["application/json"]
    assert content["schema"] == {"$ref": "#/components/schemas/ToolCallRequest"}
    folder = Path(proofbox.contracts.__file__).parent / "examples"
    expected = {
        path.name.split(".")[1]: {"value": json.loads(path.read_text(encoding="utf-8"))}
        for path in folder.glob("tool_call_request.*.json")
        if ".invalid." not in path.name
    }
    assert content["examples"] == expected
    schema = {**content["schema"], "components": document["components"]}
    for example in content["examples"].values():
        jsonschema.validate(example["value"], schema)


async def test_every_example_of_a_request_is_taken_by_the_route(client, document):
    content = document["paths"]["/v1/tool-calls"]["post"]["requestBody"]["content"]["application/json"]
    statuses = {
        name: (await client.post("/v1/tool-calls", json=e["value"])).status_code
        for name, e in content["examples"].items()
    }
    assert statuses == dict.fromkeys(statuses, 200)
    assert len(statuses) >= 3


async def test_the_document_is_served(client, document):
    answer = await client.get("/openapi.json")
    assert (answer.status_code, answer.json()) == (200, document)


async def test_the_page_of_documentation_loads_nothing_from_elsewhere(client):
    page = await client.get("/docs")
    assert page.status_code == 200
    loaded = re.findall(r"""(?:src|href)=["']([^"']+)["']""", page.text)
    assert [url for url in loaded if ":" in url or url.startswith("/")] == []  # below the prefix of a proxy too
    scripts = [urljoin("/docs", url) for url in loaded if url.endswith((".js", ".css"))]
    assert len(scripts) == 2
    assert [(await client.get(url)).status_code for url in scripts] == [200, 200]


async def test_the_catalogue_is_listed_in_the_order_of_the_protocol(client):
    answer = await client.get("/v1/tools")
    assert answer.json()["tools"] == [tool.model_dump() for tool in catalogue()]
    # Workspaces are the loop's decision, and packages the operator's.
    of_models = [name for name in ExecParams.model_fields if name not in {"workspace", "packages"}]
    assert list(answer.json()["tools"][0]["params_schema"]["properties"]) == of_models


def junk_requests(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    made = []
    for (method, path, operation), junk in product(operations(document), JUNK):
        if "{" not in path and "requestBody" not in operation:
            continue
        url = re.sub(r"\{\w+\}", junk, path)
        named = [p for p in operation.get("parameters", []) if p["in"] in {"query", "header"}]
        raw = junk.encode()
        made.append(
            (
                method,
                url + "?" + "&".join(f"{p['name']}={junk}" for p in named if p["in"] == "query"),
                {"headers": {p["name"].encode(): raw for p in named if p["in"] == "header"}, "content": raw},
            )
        )
    return made


async def test_every_route_answers_junk_with_a_problem_of_the_caller(client, document):
    answers = []
    for method, url, options in junk_requests(document):
        if method == "get":
            options.pop("content")
        answers.append(await client.request(method, url, **options))
    assert len(answers) == 55 * len(JUNK)
    for answer in answers:
        problem = Problem.model_validate_json(answer.content)
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.status_code == problem.status
        assert answer.status_code in {400, 403, 404, 422}
        assert (answer.status_code == 403) == (answer.json()["code"] == "link_refused")
        assert problem.request_id == answer.headers["x-request-id"]
        assert "x-evil" not in answer.headers
