"""The work of a request in sandboxes: rendering, and the programs of this API."""

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
_KINDS = frozenset({"pdf", "zip", "json", "html", "jpeg", "webp"})
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
    stdin = json.dumps(whole).encode()
    result = await run.run_program(f"gotenberg.{program}", _source_of(program), stdin, files, _RESULT)
    failure = result.job.failure
    if failure is not None:
        status = _STATUS_OF_CODE.get(failure.code, 400)
        raise RequestRefusedError(status, visible_line(f"{failure.code}: {failure.message}"))
    answer = _answer(result.printed)
    if not answer.get("ok"):
        raise RequestRefusedError(400, visible_line(str(answer.get("message", "the program gave no answer"))))
    kind = answer.get("kind")
    if result.output is None or kind not in _KINDS:
        raise RequestRefusedError(500, "the program gave no file")
    return Made(result.output, kind, str(answer.get("name", "")))


def _in_sandbox(name: str) -> str:
    return f"{TURN_ID}/files/{name}"


def _answer(printed: bytes) -> dict[str, Any]:
    """The last line; the files that a program reads may control it, so every value is checked."""
    lines = printed.splitlines()
    try:
        answer = json.loads(lines[-1]) if lines else {}
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


@cache
def _source_of(program: str) -> bytes:
    """The modules of a program as one file, without the imports of one another."""
    modules = [*_PARTS.get(program, ()), program]
    source = "\n".join((_PROGRAMS / f"{module}.py").read_text("utf-8") for module in modules)
    return _OWN_IMPORT.sub("", source).encode()


def with_warnings(made: Made, warnings: Sequence[str]) -> Made:
    """The same file with more warnings."""
    return replace(made, warnings=(*warnings, *made.warnings))
