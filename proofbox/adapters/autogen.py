"""A code executor for AutoGen: ``CodeExecutorAgent("runner", code_executor=ProofboxCodeExecutor())``."""

import asyncio

from autogen_core import CancellationToken
from autogen_core.code_executor import CodeBlock, CodeExecutor, CodeResult
from typing_extensions import override

from proofbox.client import AsyncClient, RunResult

_LANGUAGES = {
    **dict.fromkeys(("python", "py", "python3"), "python"),
    **dict.fromkeys(("bash", "sh", "shell", "console"), "bash"),
    **dict.fromkeys(("javascript", "js", "node"), "node"),
}


class ProofboxCodeExecutor(CodeExecutor):
    """Runs code blocks one after the other, up to the first that fails; they share their working folder.

    Args:
        url: the service; None for PROOFBOX_URL, else http://127.0.0.1:8080.
        api_key: the API key; None for PROOFBOX_API_KEY.
        conversation: the conversation whose files the blocks share; None for a new one.
        timeout_s: the wall clock of one block.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        conversation: str | None = None,
        timeout_s: float | None = None,
    ) -> None:
        self._client = AsyncClient(url, api_key)
        self._timeout_s = timeout_s
        self.conversation = conversation
        """The conversation, once a block ran; its files can be had by `proofbox.client`."""

    @override
    async def execute_code_blocks(
        self, code_blocks: list[CodeBlock], cancellation_token: CancellationToken
    ) -> CodeResult:
        outputs = []
        for block in code_blocks:
            language = _LANGUAGES.get(block.language.strip().lower() or "python")
            if language is None:
                return CodeResult(1, f"unknown language {block.language}; use python, bash or javascript")
            running = asyncio.ensure_future(self._run(block.code, language))
            cancellation_token.link_future(running)
            result = await running
            outputs.append(_output(result))
            if not result.ok:
                return CodeResult(result.exit_code or 1, "".join(outputs))
        return CodeResult(0, "".join(outputs))

    async def _run(self, code: str, language: str) -> RunResult:
        result = await self._client.run(
            code,
            language=language,
            conversation=self.conversation,
            timeout_s=self._timeout_s,
        )
        self.conversation = result.conversation
        return result

    @override
    async def start(self) -> None:
        """Does nothing: each block has a sandbox of its own."""

    @override
    async def stop(self) -> None:
        await self._client.close()

    @override
    async def restart(self) -> None:
        """Goes on in a new conversation, with an empty folder."""
        self.conversation = None


def _output(result: RunResult) -> str:
    """What a block printed; of one that was ended, such as by a timeout, the report as well."""
    return result.output if result.ok or result.exit_code is not None else f"{result.output}\n{result.text}\n"
