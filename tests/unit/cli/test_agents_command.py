"""``proofbox agents import`` against a service that answers from a script."""

import json
from pathlib import Path

import pytest

import proofbox.contracts
from proofbox.cli import main
from proofbox.contracts.gateway.imports import AgentImported
from tests.support.client_answers import answer, refusal
from tests.support.scripted_service import ScriptedService

EXAMPLES = Path(proofbox.contracts.__file__).parent / "examples"
IMPORTED = AgentImported.model_validate_json((EXAMPLES / "agent_imported.weather.json").read_text("utf-8"))
OLD = {"version": "1.0", "agent": {"name": "ü"}}


@pytest.fixture
def service(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    Path("old.json").write_text(json.dumps(OLD), "utf-8")
    with ScriptedService(answer(IMPORTED)) as service:
        yield service


def import_file(service, *options):
    return main(["agents", "import", "old.json", "--url", service.url, *options])


def test_the_report_is_printed_and_the_agent_named(service, capsys):
    assert import_file(service, "--save-as", "weather") == 0
    (request,) = service.requests
    assert (request.line, request.json) == ("POST /v1/agent-imports", {"config": OLD, "save_as": "weather"})
    printed = capsys.readouterr()
    assert "request → gateway http" in printed.out
    assert "prebuilt → nothing" in printed.out
    assert "setGoals: every run has the built-in tools; in its place: set_goals\n" in printed.out
    assert "saved agent weather, version 1" in printed.err


def test_json_is_the_answer_of_the_service(service, capsys):
    assert import_file(service, "--json") == 0
    assert json.loads(capsys.readouterr().out) == IMPORTED.model_dump(mode="json")
    assert service.requests[0].json["save_as"] is None


def test_the_configuration_is_written_to_a_file(service):
    assert import_file(service, "--out", "new.json", "--quiet") == 0
    assert json.loads(Path("new.json").read_text("utf-8")) == IMPORTED.config
    assert import_file(service, "--out", "no/folder/new.json") == 2


@pytest.mark.parametrize("content", ["{", "[]", "[" * 100_000])
def test_a_file_that_is_no_configuration_is_not_sent(service, capsys, content):
    Path("old.json").write_text(content, "utf-8")
    assert import_file(service) == 2
    assert "FILE" in capsys.readouterr().err
    assert service.requests == []


def test_a_refusal_is_printed(service, capsys):
    service.answers(refusal("invalid_tool", 422, field="agent.name"))
    assert import_file(service) == 5
    assert "invalid_tool" in capsys.readouterr().err
