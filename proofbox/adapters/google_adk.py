"""A code executor for Google's Agent Development Kit: ``LlmAgent(code_executor=ProofboxCodeExecutor())``."""

import base64
import hashlib
import json
from typing import Any

from google.adk.agents.invocation_context import InvocationContext
from google.adk.code_executors.base_code_executor import BaseCodeExecutor
from google.adk.code_executors.code_execution_utils import CodeExecutionInput, CodeExecutionResult, File
from pydantic import Field, PrivateAttr
from typing_extensions import override

from proofbox.client import Client, RunResult

_EVERY_FILE = {"glob": "**", "description": "a file of the program", "min_count": 0, "visibility": "internal"}


class ProofboxCodeExecutor(BaseCodeExecutor):
    """Runs each program in a fresh sandbox; files that it writes come back as output files.

    With ``stateful=True`` the programs of one ``execution_id`` of an app and user share their working folder, but
    no variables.

    Attributes:
        url: the service; None for PROOFBOX_URL, else http://127.0.0.1:8080.
        api_key: the API key; None for PROOFBOX_API_KEY.
    """

    url: str | None = None
    api_key: str | None = Field(None, repr=False, exclude=True)
    _client: Client | None = PrivateAttr(None)

    @override
    def execute_code(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        if self._client is None:
            self._client = Client(self.url, self.api_key)
        options: dict[str, Any] = {}
        if self.stateful and code_execution_input.execution_id:
            conversation = _conversation(invocation_context, code_execution_input.execution_id)
            options = {"conversation": conversation}
        result = self._client.run(
            code_execution_input.code,
            files={file.name: _content(file) for file in code_execution_input.input_files},
            promises=[_EVERY_FILE],
            timeout_s=self.timeout_seconds,
            **options,
        )
        return CodeExecutionResult(
            stdout=result.stdout,
            stderr=result.stderr or _failure(result),
            output_files=[File(file.name, file.read(), file.media_type) for file in result.files],
            exit_code=result.exit_code,
        )


def _failure(result: RunResult) -> str:
    """Why a program failed that printed no error, such as a timeout: ADK counts a result without stderr as good."""
    return "" if result.error is None else f"{result.error.code}: {result.error.message}"


def _conversation(context: InvocationContext | None, execution_id: str) -> str:
    """The conversation of an execution: ADK's sessions have ids that are unique for an app and user only."""
    owner = [getattr(context, "app_name", None), getattr(context, "user_id", None)]
    names = json.dumps([*owner, execution_id])
    return f"adk-{hashlib.sha256(names.encode()).hexdigest()[:32]}"


def _content(file: File) -> bytes:
    """The bytes of an input file: ADK passes the original bytes, or base64 text; other callers pass plain text."""
    if isinstance(file.content, bytes):
        return file.content
    try:
        decoded = base64.b64decode(file.content, validate=True)
    except ValueError:
        return file.content.encode()
    return decoded if base64.b64encode(decoded).decode() == file.content else file.content.encode()
