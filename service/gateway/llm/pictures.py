"""Pictures that an endpoint made: taken out of its answer, and opened by the inspector in a sandbox."""

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from proofbox.contracts.paths import FilePath, Namespace
from proofbox.contracts.tool_call_request import Limits
from proofbox.contracts.tools import Language
from proofbox.service.calls.observer import CallObserver
from proofbox.service.file_content import FileContent
from proofbox.service.gateway.tool_call import GatewayCall
from proofbox.service.jobs.inputs import JobInputs
from proofbox.service.jobs.runner import JobContext, JobRunner, Program
from proofbox.service.sandbox.limits import CallPolicy
from proofbox.service.sandbox.port import ExpectedFile, FileState, InputFile, Job, OutputSpec, StreamName
from proofbox.service.visible_text import visible_line

_INSPECTED_S = 60.0
_RECEIVED = "received"
_KINDS: Sequence[tuple[str, int, bytes, str]] = (
    ("png", 0, b"\x89PNG\r\n\x1a\n", "image/png"),
    ("jpg", 0, b"\xff\xd8\xff", "image/jpeg"),
    ("webp", 8, b"WEBP", "image/webp"),
    ("gif", 0, b"GIF8", "image/gif"),
)
"""Extension, place and text of the magic bytes, media type."""
_MESSAGE_CHARACTERS_MAX = 300
_VALUES_MAX = 1_000
_REST_BYTES = 64 * 1024  # what an answer may have beside the base64 of its picture


class NoPictureError(Exception):
    """What an endpoint sent is no picture; the text is one sentence for a model."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that the inspector opened.

    Attributes:
        content: its bytes.
        mime: its media type.
        width: in pixels.
        height: in pixels.
    """

    content: bytes
    mime: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class MadePicture:
    """The first entry of an answer to ``/images/generations``.

    Attributes:
        base64_text: the picture as base64; None if it is elsewhere.
        url: where it is; None if it is in the answer.
        revised_prompt: the prompt that was used in place of the given one; empty if there is none.
    """

    base64_text: str | None
    url: str | None
    revised_prompt: str = ""


def read_made_picture(body: bytes) -> MadePicture:
    """Reads the body of an answer to ``/images/generations``. Takes time, so it belongs into a thread.

    Raises:
        NoPictureError: it has no picture.
    """
    # The parser stops all other threads, and millions of small values take it seconds.
    if sum(body.count(mark) for mark in (b",", b"[", b"{")) > _VALUES_MAX:
        raise NoPictureError(f"its answer has more than {_VALUES_MAX:,} values or commas beside the picture")
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError) as exc:
        raise NoPictureError("its answer is no JSON") from exc
    data = value.get("data") if isinstance(value, dict) else None
    first = data[0] if isinstance(data, list) and data else None
    if isinstance(first, dict):
        revised = first.get("revised_prompt")
        revised = revised if isinstance(revised, str) else ""
        if isinstance(text := first.get("b64_json"), str) and text:
            return MadePicture(text, None, revised)
        if isinstance(url := first.get("url"), str) and url:
            return MadePicture(None, url, revised)
    raise NoPictureError("its answer has neither data[0].b64_json nor data[0].url")


def decode_picture(text: str) -> bytes:
    """The bytes of a picture in base64.

    Raises:
        NoPictureError: it is no base64.
    """
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as exc:
        raise NoPictureError("b64_json is no base64") from exc


def base64_bytes_max(bytes_max: int) -> int:
    """The largest answer with a picture of a size in base64."""
    return bytes_max * 4 // 3 + _REST_BYTES


class PictureInspector:
    """Opens pictures in a sandbox, as the promised file of a program that only copies it.

    Args:
        jobs: runs programs in sandboxes.
        policy: the operator's decisions about any call.
    """

    def __init__(self, jobs: JobRunner, policy: CallPolicy) -> None:
        self._jobs = jobs
        self._policy = policy

    async def inspect(self, call: GatewayCall, observer: CallObserver, content: bytes) -> Picture:
        """Opens a picture.

        Args:
            call: the call that it is for.
            observer: observes the call.
            content: PNG, JPEG, WebP or GIF.

        Raises:
            NoPictureError: it is none, or it is damaged.
            ServiceError: it could not be opened now.
        """
        extension, mime = _kind_of(content)
        name = f"picture.{extension}"
        bounds = self._policy.bounds(Limits(wall_s=min(_INSPECTED_S, self._policy.limits.wall_s)))
        context = JobContext(call.scope, call.request, bounds, observer)
        folder = f"{call.turn_id}/{Namespace.FILES}"
        source, target = f"{folder}/{_RECEIVED}", f"{folder}/{name}"
        code = f"import shutil\nshutil.copyfile({source!r}, {target!r})\n".encode()
        job = Job(Language.PYTHON, code, "inspect", call.turn_id, bounds.limits)
        expected = ExpectedFile(name, is_glob=False, matches_max=1, checks={})
        program = Program(job, OutputSpec(call.turn_id, (expected,), 0, bounds.limits), _ignore_output)
        async with self._jobs.slot(context) as slot:
            result = await slot.run(program, _inputs_of(call.turn_id, content))
        if result.failure is not None:
            raise NoPictureError(f"it could not be opened: {_shown(result.failure.message)}")
        found = next((file for file in result.collected.found if file.state is FileState.FILE), None)
        inspection = None if found is None else found.inspection
        if inspection is None:
            raise NoPictureError("it could not be opened")
        width, height = inspection.facts.get("width"), inspection.facts.get("height")
        if not inspection.ok or not isinstance(width, int) or not isinstance(height, int):
            raise NoPictureError(_shown(inspection.problem or "it could not be opened"))
        return Picture(content, inspection.mime or mime, width, height)


def _kind_of(content: bytes) -> tuple[str, str]:
    """Extension and media type of a picture by its first bytes.

    Raises:
        NoPictureError: it is none.
    """
    for extension, place, magic, mime in _KINDS:
        if content[place : place + len(magic)] == magic:
            return extension, mime
    raise NoPictureError("it is no PNG, JPEG, WebP or GIF")


def _inputs_of(turn_id: str, content: bytes) -> JobInputs:
    path = FilePath(turn_id, Namespace.FILES, _RECEIVED)
    inputs = JobInputs()
    inputs.places.take(path)
    inputs.files[path.physical] = InputFile(path, FileContent(content), len(content), writable=False)
    return inputs


def _ignore_output(_stream: StreamName, _piece: bytes, _is_truncated: bool) -> None:
    pass


def _shown(message: str) -> str:
    return visible_line(message)[:_MESSAGE_CHARACTERS_MAX]
