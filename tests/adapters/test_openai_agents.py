"""The shell executor for the OpenAI Agents SDK."""

import asyncio

import pytest
from agents import ShellCommandRequest
from agents.tool import ShellActionRequest, ShellCallData

from proofbox.adapters.openai_agents import ProofboxShell


@pytest.fixture
async def shell(service_url):
    opened = ProofboxShell(service_url)
    yield opened
    await opened.close()


def asked(*commands, **action):
    return ShellCommandRequest(None, ShellCallData("call_1", ShellActionRequest(list(commands), **action)))


async def test_each_command_has_its_output_and_status_and_all_share_a_folder(shell):
    make, show = "echo hi >a; mkdir empty; chmod 600 a", "ls -d *; stat -c %a a; exit 4"
    first, second, third = (await shell(asked(make, show, "cat missing"))).output
    assert (first.stdout, first.outcome.exit_code, first.command) == ("", 0, make)
    assert (second.stdout, second.outcome.type, second.outcome.exit_code) == ("a\nempty\n600\n", "exit", 4)
    assert (third.outcome.exit_code, "No such file" in third.stderr) == (1, True)
    (later,) = (await shell(asked("cat a"))).output
    assert later.stdout == "hi\n"


async def test_a_timeout_is_an_outcome(shell):
    result = await shell(asked("echo begun; sleep 60", timeout_ms=1_000, max_output_length=500))
    (output,) = result.output
    assert (output.outcome.type, output.outcome.exit_code, output.stdout) == ("timeout", None, "begun\n")
    assert result.max_output_length == 500


async def test_the_example_runs_an_agent_whose_model_calls_the_shell(run_example):
    assert "hello from the sandbox" in await asyncio.to_thread(run_example, "openai_agents_shell.py")
