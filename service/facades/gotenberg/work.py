"""The work of a request in sandboxes: rendering, and the programs of this API."""

import asyncio
import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from proofbox.contracts.codes import RuntimeCode
from proofbox.contracts.render_tools import RENDER_TOOL_PREFIX
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.facades.gotenberg.errors import RequestRefusedError
from proofbox.service.facades.gotenberg.form import FormFile
from proofbox.service.file_content import FileContent
from proofbox.service.jobs.one_shot import TURN_ID, OneShot, OneShotFile
from proofbox.service.visible_text import visible_line

_PROGRAMS = Path(__file__).with_name("programs")
_PARTS = {"pdf": ("pdf_values", "pdf_layout")}
_OWN_IMPORT = re.compile(r"^from proofbox\.\S+ import (?:\([^)]*\)|[^\n(]*)$", re.MULTILINE)
_RESULT = "result"
_KINDS = {
    "pdf": frozenset({"pdf", "zip", "json"}),
    "markdown": frozenset({"html"}),
    "picture": frozenset({"jpeg", "webp"}),
}
"""What each program makes."""
_NOT_LOADED = frozenset({"missing_asset", "remote_refused", "asset_refused", "asset_too_large"})
_STATUS_OF_CODE = {
    "content_too_large": 413,
    "too_many_elements": 413,
    RuntimeCode.TIMEOUT: 503,
    RuntimeCode.SANDBOX_FAILED: 500,
    RuntimeCode.NONZERO_EXIT: 500,
    "render_failed": 500,
    "write_failed": 500,
}
"""The status of failures; every other one is of the document, 400."""
_MESSAGE_CHARS_MAX = 1_000
_NAME_CHARS_MAX = 300


@dataclass(frozen=True, slots=True)
class Made:
    """A file that was made.

    Attributes:
        path: where it is.
        kind: ``pdf``, ``png`` and so on.
        name: its name; empty for any.
        warnings: what a reader of it should know.
    """

    path: Path
    kind: str
    name: str = ""
    warnings: tuple[str, ...] = ()


async def render(
    run: OneShot, kind: str, params: dict[str, Any], assets: Sequence[FormFile], *, is_strict: bool
) -> Made:
    """Renders a page.

    Args:
        run: the jobs of the request.
        kind: ``pdf`` or ``png``.
        params: the parameters of the rendering tool, without its path.
        assets: the files beside the page.
        is_strict: whether a resource that cannot be loaded is an error.

    Raises:
        RequestRefusedError: the page cannot be rendered.
        ServiceError: the service cannot do it now.
    """
    files = [OneShotFile(asset.name, FileContent(asset.path)) for asset in assets]
    path = f"document-{secrets.token_hex(8)}.{kind}"
    response, made = await run.call_tool(f"{RENDER_TOOL_PREFIX}{kind}", {"path": path, **params}, files)
    warnings = response.ret.get("warnings", []) if isinstance(response.ret, dict) else []
    if is_strict:
        _require_all_loaded(warnings)
    if made is None:
        raise _failure(response)
    texts = tuple(f"{warning.get('code')}: {warning.get('message')}" for warning in warnings)
    return Made(made, kind, warnings=texts)


def _require_all_loaded(warnings: list[dict[str, Any]]) -> None:
    lost = [str(warning.get("message")) for warning in warnings if warning.get("code") in _NOT_LOADED]
    if lost:
        listed = visible_line(" ".join(lost))[:_MESSAGE_CHARS_MAX]
        raise RequestRefusedError(409, f"failOnResourceLoadingFailed: resources were not loaded: {listed}")


def _failure(response: ToolCallResponse) -> RequestRefusedError:
    error = response.error
    if error is None:
        return RequestRefusedError(500, "the document was not made")
    return RequestRefusedError(_STATUS_OF_CODE.get(error.code, 400), f"{error.code}: {error.message}")


async def run_program(
    run: OneShot,
    program: str,
    request: dict[str, Any],
    inputs: Sequence[FormFile],
    embeds: Sequence[FormFile] = (),
) -> Made:
    """Runs one of the programs of this API on some files.

    Args:
        run: the jobs of the request.
        program: its name.
        request: its request, without the paths.
        inputs: its files.
        embeds: files that it puts into others.

    Raises:
        RequestRefusedError: it cannot do what is asked.
        ServiceError: the service cannot do it now.
    """
    files: list[OneShotFile] = []

    def placed(items: Sequence[FormFile], folder: str) -> list[dict[str, str]]:
        rows = []
        for place, item in enumerate(items):
            name = f"{folder}/{place}"
            files.append(OneShotFile(name, FileContent(item.path)))
            rows.append({"name": item.name, "path": _in_sandbox(name)})
        return rows

    whole = {
        **request,
        "inputs": placed(inputs, "inputs"),
        "embeds": placed(embeds, "embeds"),
        "target": _in_sandbox(_RESULT),
    }
    stdin = await asyncio.to_thread(_encode, whole)  # a page of Markdown may have 10 MiB
    result = await run.run_program(f"gotenberg.{program}", _source_of(program), stdin, files, _RESULT)
    failure = result.job.failure
    if failure is not None:
        status = _STATUS_OF_CODE.get(failure.code, 400)
        raise RequestRefusedError(status, visible_line(f"{failure.code}: {failure.message}"))
    answer = read_answer(program, result.printed)
    if result.output is None:
        raise RequestRefusedError(500, "the program gave no file")
    return Made(result.output, answer.kind, answer.name)


def _encode(request: dict[str, Any]) -> bytes:
    return json.dumps(request).encode()


def _in_sandbox(name: str) -> str:
    return f"{TURN_ID}/files/{name}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a program printed about the file that it made.

    Attributes:
        kind: one of those of the program.
        name: the name of the file; empty for any.
    """

    kind: str
    name: str


def read_answer(program: str, printed: bytes) -> Answer:
    """Reads the last line; the files that a program reads may control it, so every value is checked.

    Raises:
        RequestRefusedError: the program refused the files, or the line is not an answer of it.
    """
    lines = printed.splitlines()
    try:
        answer = json.loads(lines[-1]) if lines else None
    except (ValueError, RecursionError):
        answer = None
    fields = answer if isinstance(answer, dict) else {}
    message, kind, name = fields.get("message"), fields.get("kind"), fields.get("name")
    if fields.get("ok") is False and isinstance(message, str):
        raise RequestRefusedError(400, visible_line(message[:_MESSAGE_CHARS_MAX]))
    is_known = isinstance(kind, str) and kind in _KINDS[program]
    if fields.get("ok") is not True or not is_known or not isinstance(name, str):
        raise RequestRefusedError(500, "the program gave no answer")
    return Answer(str(kind), name[:_NAME_CHARS_MAX])


@cache
def _source_of(program: str) -> bytes:
    """The modules of a program as one file, without the imports of one another."""
    modules = [*_PARTS.get(program, ()), program]
    source = "\n".join((_PROGRAMS / f"{module}.py").read_text("utf-8") for module in modules)
    return _OWN_IMPORT.sub("", source).encode()


def with_warnings(made: Made, warnings: Sequence[str]) -> Made:
    """The same file with more warnings."""
    return replace(made, warnings=(*warnings, *made.warnings))
