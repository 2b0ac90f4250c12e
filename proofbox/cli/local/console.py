"""Calls without HTTP, for the demo and the gallery: the response is printed as a model reads it."""

import secrets
import shutil
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proofbox.contracts.codes import VerdictCode
from proofbox.contracts.paths import FilePath
from proofbox.contracts.problems import Problem
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.contracts.tools import Language, exec_tool_id
from proofbox.service.app.bootstrap import Service
from proofbox.service.errors import InvalidRequestError
from proofbox.service.identity import ConversationKey

_PIECE_BYTES = 1024 * 1024
_CONVERSATION = "local"
RULE = "─" * 78


@dataclass(slots=True)
class Console:
    """A conversation whose answers are printed."""

    service: Service
    out: Path
    calls: list[ToolCallResponse] = field(default_factory=list)

    async def attach(self, turn_id: str, path: Path) -> None:
        """Upload a file as an attachment of a turn."""
        scope = ConversationKey(self.service.principal, _CONVERSATION)
        stored = await self.service.attachments.store(scope, turn_id, path.name, _pieces(path), None)
        _print(f"attached  {stored.attachment.physical_path}  ({stored.attachment.size_bytes:,} bytes)")

    async def run(
        self, turn_id: str, language: Language, code: str, contract: Sequence[dict[str, Any]], **extra: Any
    ) -> ToolCallResponse:
        """Run a program and puts the produced files into the output folder."""
        return await self.call(
            tool_id=exec_tool_id(language),
            turn_id=turn_id,
            params={"contract": list(contract), **extra},
            code=code,
        )

    async def call(self, **fields: Any) -> ToolCallResponse:
        """Make one call and puts the produced files into the output folder."""
        request = ToolCallRequest(
            tool_call_id=f"call_{secrets.token_hex(4)}", conversation_id=_CONVERSATION, **fields
        )
        ticket = await self.service.calls.submit(
            self.service.principal, request, idempotency_key=None, request_id="local", detached=True
        )
        answer = await ticket.answer()
        if answer.is_problem:
            raise InvalidRequestError(Problem.model_validate_json(answer.body).detail)
        response = ToolCallResponse.model_validate_json(answer.body)
        self.calls.append(response)
        await self._save_files(response)
        return response

    async def _save_files(self, response: ToolCallResponse) -> None:
        scope = ConversationKey(self.service.principal, _CONVERSATION)
        for artifact in response.artifacts:
            if artifact.verdict is not VerdictCode.PRODUCED or artifact.sha256 is None:
                continue
            path = FilePath.from_logical(artifact.logical_path)
            stored = await self.service.artifacts.latest(scope, path)
            if stored is None:
                continue
            target = self.out / stored.path.rel
            target.parent.mkdir(parents=True, exist_ok=True)
            async with self.service.artifacts.staging() as staging:
                local = await self.service.artifacts.fetch(scope, stored, staging)
                shutil.copyfile(local, target)


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            yield piece


def show(response: ToolCallResponse, out: Path) -> None:
    """Print the report, the timings, and where the files lie."""
    _print(f"{RULE}\nreport\n{RULE}\n{response.text}")
    timings = vars(response.timings_ms)
    _print(f"{RULE}\n" + "  ".join(f"{name} {ms:.1f} ms" for name, ms in timings.items()))
    if response.sandbox is not None:
        sandbox = response.sandbox
        _print(f"sandbox: {sandbox.engine}, {sandbox.runtime}, {sandbox.image_digest[:19]}…, {sandbox.acquired}")
    for artifact in response.artifacts:
        if artifact.sha256 is not None:
            rel = FilePath.from_logical(artifact.logical_path).rel
            _print(f"{artifact.size_bytes:>10,} bytes  {out / rel}")


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
