"""A shell for the OpenAI Agents SDK: ``Agent("coder", tools=[ShellTool(executor=ProofboxShell())])``."""

from agents import ShellCallOutcome, ShellCommandOutput, ShellCommandRequest, ShellResult

from proofbox.client import AsyncClient


class ProofboxShell:
    """The executor of a ``ShellTool``: each command runs in a fresh sandbox, and all share their working folder.

    Args:
        url: the service; None for PROOFBOX_URL, else http://127.0.0.1:8080.
        api_key: the API key; None for PROOFBOX_API_KEY.
        conversation: the conversation whose files the commands share; None for a new one.
    """

    def __init__(
        self, url: str | None = None, api_key: str | None = None, *, conversation: str | None = None
    ) -> None:
        self._client = AsyncClient(url, api_key)
        self.conversation = conversation
        """The conversation, once a command ran; its files can be had by `proofbox.client`."""

    async def __call__(self, request: ShellCommandRequest) -> ShellResult:
        """Runs the commands of a shell call one after the other; a failed one does not stop the others."""
        action = request.data.action
        timeout_s = None if not action.timeout_ms else action.timeout_ms / 1000
        outputs = [await self._run(command, timeout_s) for command in action.commands]
        return ShellResult(output=outputs, max_output_length=action.max_output_length)

    async def _run(self, command: str, timeout_s: float | None) -> ShellCommandOutput:
        result = await self._client.run(
            command,
            language="bash",
            conversation=self.conversation,
            timeout_s=timeout_s,
        )
        self.conversation = result.conversation
        has_ended = result.exit_code is not None
        is_timeout = result.error is not None and result.error.code == "timeout"
        return ShellCommandOutput(
            stdout=result.stdout,
            stderr=result.stderr if has_ended else f"{result.stderr}\n{result.text}".lstrip(),
            outcome=ShellCallOutcome(type="timeout")
            if is_timeout
            else ShellCallOutcome(type="exit", exit_code=result.exit_code if has_ended else 1),
            command=command,
        )

    async def close(self) -> None:
        """Closes the connections to the service."""
        await self._client.close()
