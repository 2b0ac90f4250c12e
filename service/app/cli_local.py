"""Calls without HTTP: one script, or the demo; the response is printed as a model reads it."""

import asyncio
import secrets
import shutil
import sys
from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from proofbox.contracts.codes import VerdictCode
from proofbox.contracts.paths import FilePath
from proofbox.contracts.problems import Problem
from proofbox.contracts.render_tools import RENDER_TOOL_PREFIX, OutputFormat
from proofbox.contracts.tool_call_request import Asset, ToolCallRequest
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.contracts.tools import LANGUAGES, Language, exec_tool_id
from proofbox.service.app.bootstrap import Service, build, running
from proofbox.service.app.settings import Settings
from proofbox.service.errors import InvalidRequestError
from proofbox.service.identity import ConversationKey

_PIECE_BYTES = 1024 * 1024
_CONVERSATION = "local"
_POLL_S = 0.5
_BESIDE_MAX = 5_000  # files below the folder of a document that are searched
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
    _print(f"{RULE}\nreport\n{RULE}\n{response.report}")
    timings = vars(response.timings_ms)
    _print(f"{RULE}\n" + "  ".join(f"{name} {ms:.1f} ms" for name, ms in timings.items()))
    if response.sandbox is not None:
        sandbox = response.sandbox
        _print(f"sandbox: {sandbox.engine}, {sandbox.runtime}, {sandbox.image_digest[:19]}…, {sandbox.acquired}")
    for artifact in response.artifacts:
        if artifact.sha256 is not None:
            rel = FilePath.from_logical(artifact.logical_path).rel
            _print(f"{artifact.size_bytes:>10,} bytes  {out / rel}")


async def execute(
    settings: Settings, *, code: Path, contract: Sequence[str], inputs: Sequence[Path], out: Path
) -> int:
    """Run one script with its inputs attached; return 0 if it produced all promised files, else 1."""
    languages = {LANGUAGES[language].suffix: language for language in Language}
    language = languages.get(code.suffix)
    if language is None:
        raise InvalidRequestError(f"'{code.name}' is not a script that the sandbox runs: {', '.join(languages)}")
    text = await asyncio.to_thread(code.read_text, encoding="utf-8")
    service = build(settings)
    async with running(service):
        console = Console(service, out)
        for path in inputs:
            await console.attach("turn_1", path)
        entries = [{"filename": name, "description": f"promised by {code.name}"} for name in contract]
        response = await console.run("turn_1", language, text, entries, prog_name=code.stem)
    show(response, out)
    return 0 if response.ok else 1


async def render(settings: Settings, *, source: Path, out: Path, params: dict[str, Any], watch: bool) -> int:
    """Render a file to the format of ``out``'s extension, again at each change if ``watch``; 0 if it went well."""
    suffix = out.suffix.lower().removeprefix(".")
    if suffix not in set(OutputFormat):
        known = ", ".join(f".{output}" for output in OutputFormat)
        raise InvalidRequestError(f"'{out.name}' has no extension that can be rendered: {known}")
    service = build(settings)
    async with running(service):
        console = Console(service, out.parent)
        while True:
            seen = _newest(source)
            given = {
                "path": out.name,
                "content": await asyncio.to_thread(source.read_text, encoding="utf-8"),
                "format": _source_format(source, suffix),
                **params,
            }
            theme = await asyncio.to_thread(_theme_text, source.parent / str(given.get("theme", "plain")))
            assets = await asyncio.to_thread(_beside, source, f"{given['content']} {params} {theme}")
            response = await console.call(
                tool_id=RENDER_TOOL_PREFIX + suffix, turn_id="turn_1", params=given, assets=assets
            )
            _print(f"{response.report}\n{out}  {response.timings_ms.total:.0f} ms")
            if not watch:
                return 0 if response.ok else 1
            while _newest(source) == seen:  # noqa: ASYNC110 - there is nothing to wait on but the clock
                await asyncio.sleep(_POLL_S)


def _source_format(source: Path, output: str) -> str:
    """What a file is by its extension; a workbook may be made of CSV."""
    extension = source.suffix.lower()
    if output == OutputFormat.XLSX and extension in {".csv", ".tsv"}:
        return "csv"
    return "html" if extension in {".html", ".htm"} else "markdown"


def _theme_text(path: Path) -> str:
    """Return the text of a theme file, which may name a logo; empty for a built-in theme."""
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _newest(source: Path) -> float:
    """When the file or anything beside it was changed last."""
    return max(path.stat().st_mtime for path in source.parent.iterdir())


def _beside(source: Path, text: str) -> list[Asset]:
    """The files beside a document, or below its folder, that it names by their relative path."""
    folder = source.parent
    assets = []
    for path in sorted(folder.rglob("*"))[:_BESIDE_MAX]:
        rel = path.relative_to(folder).as_posix()
        if path != source and path.is_file() and (rel in text or quote(rel) in text):
            content = b64encode(path.read_bytes())
            assets.append(Asset.model_validate({"physical_path": f"turn_1/files/{rel}", "base64": content}))
    return assets


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
