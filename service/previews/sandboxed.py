"""Runs the programs of previews in sandboxes, and reads what they answer."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from proofbox.service import text_encoding
from proofbox.service.concurrency import run_in_thread
from proofbox.service.errors import NoPreviewError
from proofbox.service.jobs.one_shot import TURN_ID, OneShot, OneShotFile
from proofbox.service.visible_text import visible_line

_PROGRAMS = Path(__file__).with_name("programs")
_TEXT_ENCODING = "text_encoding"
_PARTS = {
    "pdf": ("pages",),
    "picture": ("pages",),
    "html_pages": (_TEXT_ENCODING, "pages"),
    "docx_pages": (_TEXT_ENCODING, "pages", "html_pages"),
    "pptx_pages": (_TEXT_ENCODING, "pages", "html_pages", "pptx_colours"),
    "table": (_TEXT_ENCODING, "pages"),
    "difference": (_TEXT_ENCODING, "pages"),
}
"""The modules that stand before each program."""
_OWN_IMPORT = re.compile(r"^from proofbox\.\S+ import (?:\([^)]*\)|[^\n(]*)$", re.MULTILINE)
_MAIN = re.compile(r'^if __name__ == "__main__":\n(?:    .*\n)+', re.MULTILINE)
_RESULT = "result"
_MESSAGE_CHARS_MAX = 300


@dataclass(frozen=True, slots=True)
class ProgramAnswer:
    """What a program answered. Its files may control it, so the reader checks every value.

    Attributes:
        fields: the line that it printed.
        content: the file that it wrote.
    """

    fields: dict[str, Any]
    content: bytes


async def run_preview_program(
    run: OneShot, program: str, request: dict[str, Any], files: Sequence[OneShotFile], bytes_max: int
) -> ProgramAnswer:
    """Runs a program on some files.

    Args:
        run: the jobs of the request.
        program: its name.
        request: its request, without ``target``.
        files: its files.
        bytes_max: the largest result that is read.

    Raises:
        NoPreviewError: it cannot show the files.
        ServiceError: the service cannot do it now.
    """
    whole = {**request, "target": sandbox_path(_RESULT)}
    result = await run.run_program(
        f"preview.{program}", _source_of(program), json.dumps(whole).encode(), files, _RESULT
    )
    failure = result.job.failure
    if failure is not None:
        raise NoPreviewError(f"preview: {visible_line(failure.message)[:_MESSAGE_CHARS_MAX]}; download the file")
    fields = _parse_line(result.printed)
    if fields.get("ok") is not True:
        message = fields.get("message")
        reason = visible_line(message)[:_MESSAGE_CHARS_MAX] if isinstance(message, str) else "it cannot be opened"
        raise NoPreviewError(f"preview: {reason}; download the file")
    content = None if result.output is None else await run_in_thread(None, partial(_read, result.output, bytes_max))
    if content is None:
        raise NoPreviewError(f"preview: it is larger than {bytes_max} bytes; download the file")
    return ProgramAnswer(fields, content)


def _read(output: Path, bytes_max: int) -> bytes | None:
    return output.read_bytes() if output.stat().st_size <= bytes_max else None


def sandbox_path(name: str) -> str:
    """The path of a file of a job, as its program sees it."""
    return f"{TURN_ID}/files/{name}"


def _parse_line(printed: bytes) -> dict[str, Any]:
    lines = printed.splitlines()
    try:
        answer = json.loads(lines[-1]) if lines else None
    except (ValueError, RecursionError):
        answer = None
    return answer if isinstance(answer, dict) else {}


@cache
def _source_of(program: str) -> bytes:
    """The modules of a program as one file, without the imports of one another; only the last one runs."""
    parts = [_MAIN.sub("", _read_module(module)) for module in _PARTS[program]]
    return "\n".join([*parts, _read_module(program)]).encode()


def _read_module(module: str) -> str:
    file = Path(text_encoding.__file__) if module == _TEXT_ENCODING else _PROGRAMS / f"{module}.py"
    return _OWN_IMPORT.sub("", file.read_text("utf-8"))
