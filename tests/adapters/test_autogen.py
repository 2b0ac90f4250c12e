"""The code executor for AutoGen."""

import asyncio

import pytest
from autogen_core import CancellationToken
from autogen_core.code_executor import CodeBlock

from proofbox.adapters.autogen import ProofboxCodeExecutor


@pytest.fixture
async def executor(service_url):
    async with ProofboxCodeExecutor(service_url, timeout_s=30) as opened:
        yield opened


async def execute(executor, *blocks):
    return await executor.execute_code_blocks([CodeBlock(*block) for block in blocks], CancellationToken())


async def test_blocks_run_in_order_and_share_their_folder(executor):
    result = await execute(
        executor, ("print('one'); open('a.txt','w').write('from python')", "python"), ("cat a.txt", "bash")
    )
    assert (result.exit_code, result.output) == (0, "one\nfrom python")
    assert (await execute(executor, ("cat a.txt", "sh"))).output == "from python"


async def test_the_first_failed_block_ends_the_run(executor):
    result = await execute(executor, ("exit 7", "bash"), ("print('never')", "python"))
    assert (result.exit_code, result.output) == (7, "")


async def test_javascript_runs_and_another_language_is_named_in_the_output(executor):
    assert (await execute(executor, ("console.log(6 * 7)", "javascript"))).output == "42\n"
    result = await execute(executor, ("SELECT 1", "sql"))
    assert (result.exit_code, result.output) == (1, "unknown language sql; use python, bash or javascript")


async def test_a_timeout_fails_with_its_reason(service_url):
    async with ProofboxCodeExecutor(service_url, timeout_s=1) as executor:
        result = await execute(executor, ("sleep 60", "bash"))
    assert result.exit_code == 1
    assert "Timeout after 1s" in result.output


async def test_restart_begins_with_an_empty_folder(executor):
    await execute(executor, ("touch a", "bash"))
    await executor.restart()
    assert (await execute(executor, ("ls", "bash"))).output == ""


async def test_a_cancelled_token_ends_the_block(executor):
    token = CancellationToken()
    running = asyncio.ensure_future(executor.execute_code_blocks([CodeBlock("sleep 600", "bash")], token))
    await asyncio.sleep(1)
    token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_the_example_prints_the_result_of_two_blocks(run_example):
    assert await asyncio.to_thread(run_example, "autogen_blocks.py") == "3 rows\n\n"
