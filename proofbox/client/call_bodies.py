"""The requests of calls from what a caller gives: promises, options, ids."""

import hashlib
import os
import uuid
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from pydantic import BaseModel, ValidationError

from proofbox.client.calls import PreparedCall
from proofbox.client.errors import ArgumentError
from proofbox.client.event_stream import CallEvent
from proofbox.client.uploads import Files, UploadSource, named_sources
from proofbox.contracts.blocks import Block
from proofbox.contracts.media_types import extension_of
from proofbox.contracts.network import NetworkAccess
from proofbox.contracts.paths import Namespace
from proofbox.contracts.tool_call_request import Asset, Limits, SourceRow, ToolCallRequest

if TYPE_CHECKING:
    from proofbox.contracts.artifacts import ArtifactSpec

# As in `proofbox.contracts.tools` and `render_tools`, whose models of all parameters take long to import.
EXEC_TOOL_PREFIX = "exec_tools.execute_code_"
RENDER_TOOL_PREFIX = "rendering_tools.write_"
SUFFIXES = {".py": "python", ".sh": "bash", ".js": "node"}
RENDERED_FORMATS = ("pdf", "docx", "pptx", "png", "xlsx")

DEFAULT_TURN = "turn_1"
Promise: TypeAlias = "str | Mapping[str, Any] | ArtifactSpec"
Network: TypeAlias = Sequence[str] | NetworkAccess | Mapping[str, Any]
OnEvent: TypeAlias = Callable[[CallEvent], object]
_SOURCE_FORMATS = {
    "md": "markdown", "markdown": "markdown", "html": "html", "htm": "html", "mmd": "mermaid", "svg": "svg",
    "csv": "csv",
}  # fmt: skip


class RequestOptions(TypedDict, total=False):
    """Options of every call.

    Attributes:
        conversation: its conversation. If it is not given: one that follows from ``call_id``, a new one without.
        turn: its turn, ``turn_1`` if it is not given.
        call_id: its id; a new one if it is not given. The same id with the same arguments runs once in its
            conversation, also if another process sends it.
        notes: what the agent states about the call.
        sources_pool: rows of sources that the call cites.
        timeline: the blocks of a loop that stores its own timeline.
        assets: files of a caller that has its own storage.
        limits: lower limits than the operator's.
    """

    conversation: str | None
    turn: str | None
    call_id: str | None
    notes: str | None
    sources_pool: Sequence[SourceRow | Mapping[str, Any]]
    timeline: Sequence[Block | Mapping[str, Any]] | None
    assets: Sequence[Asset | Mapping[str, Any]]
    limits: Limits | Mapping[str, Any]


class StartOptions(RequestOptions, total=False):
    """Options of `Client.start`.

    Attributes:
        code: the program of an exec tool.
        network: hosts that the program may connect to: ``["pypi.org:443", "*.example.com:443"]``. None: none.
        packages: packages of the operator's index that it finds: ``["scikit-image==0.25.*"]``.
    """

    code: str | None
    network: Network | None
    packages: Sequence[str]


class CallOptions(StartOptions, total=False):
    """Options of `Client.call`.

    Attributes:
        wait_s: how long to wait for the end; `StillRunningError` after that. None: until it ends.
        on_event: called with each event while the call runs.
    """

    wait_s: float | None
    on_event: OnEvent | None


class RunOptions(RequestOptions, total=False):
    """Options of `Client.run`.

    Attributes:
        files: files that the program finds by their names: ``{name: Path | bytes | str | binary file}``, or paths.
        promises: files that the program must write: names, patterns, or entries with checks. None: only its exit
            status counts.
        language: ``python``, ``bash`` or ``node``; by the suffix of a path, else ``python``.
        timeout_s: wall-clock limit of the program.
        stdin: its standard input.
        args: its arguments.
        env: further environment variables.
        cwd: its working directory below ``files/``.
        prog_name: its name in tracebacks.
        workspace: ``full``: it gets the whole ``files/`` of the conversation, and the next run gets what it leaves;
            ``read``: it only gets it. None: it gets the stored files.
        network: hosts that it may connect to: ``["pypi.org:443", "*.example.com:443"]``. None: none.
        packages: packages of the operator's index that it finds: ``["scikit-image==0.25.*"]``.
        params: other parameters of the tool.
        on_event: called with each event while the program runs, such as output.
    """

    files: Files | None
    promises: Iterable[Promise] | None
    language: Literal["python", "bash", "node"] | None
    timeout_s: float | None
    stdin: str | None
    args: Sequence[str] | None
    env: Mapping[str, str] | None
    cwd: str | None
    prog_name: str | None
    workspace: Literal["full", "read", "none"] | None
    network: Network | None
    packages: Sequence[str]
    params: Mapping[str, Any] | None
    on_event: OnEvent | None


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A call, and the files that are stored before it is sent."""

    call: PreparedCall
    sources: Mapping[str, UploadSource]


def prepare_call(tool_id: str, params: Mapping[str, Any], options: Mapping[str, Any]) -> PreparedCall:
    """Build the request of a call.

    Raises:
        ArgumentError: an option is unknown, or has a value that the service does not take.
    """
    _refuse_unknown(options, StartOptions)
    given = {name: value for name, value in options.items() if value is not None}
    call_id = given.pop("call_id", None) or f"call_{uuid.uuid4().hex}"
    conversation = given.pop("conversation", None) or conversation_of(call_id)
    turn = given.pop("turn", None) or DEFAULT_TURN
    if isinstance(given.get("network"), list | tuple):
        given["network"] = {"allow": given["network"]}
    fields = {
        "tool_id": tool_id,
        "tool_call_id": call_id,
        "conversation_id": conversation,
        "turn_id": turn,
        "params": dict(params),
        **{name: _plain(value) for name, value in given.items()},
    }
    try:
        request = ToolCallRequest.model_validate(fields)
        body = request.model_dump_json(exclude_unset=True).encode()
    except ValidationError as exc:
        error = exc.errors(include_url=False)[0]
        where = ".".join(str(part) for part in error["loc"]) or "call"
        names = {"tool_call_id": "call_id", "conversation_id": "conversation", "turn_id": "turn"}
        raise ArgumentError(names.get(where, where), error["msg"].removeprefix("Value error, ")) from None
    except ValueError as exc:  # what JSON cannot carry
        raise ArgumentError("params", str(exc)) from None
    return PreparedCall(call_id, conversation, turn, body)


def prepare_run(code: str | Path, options: Mapping[str, Any]) -> PreparedRun:
    """Build the request of `Client.run`.

    Raises:
        ArgumentError: an option is unknown or wrong, or a file cannot be read.
    """
    _refuse_unknown(options, RunOptions)
    given = dict(options)
    sources = named_sources(given.pop("files", None))
    language = given.pop("language", None)
    text = code
    if isinstance(code, Path):
        text = _read_text("code", code)
        language = language or _language_of(code)
        given.setdefault("prog_name", code.stem)
    names = ("timeout_s", "stdin", "args", "env", "cwd", "prog_name", "workspace")
    params = {name: given.pop(name) for name in names if name in given}
    promises = contract_entries(given.pop("promises", None))
    promised = {"contract": promises} if promises else {"explore": True}
    params = {
        **promised,
        **{name: _plain(value) for name, value in params.items() if value is not None},
        **(given.pop("params", None) or {}),
    }
    return PreparedRun(
        prepare_call(EXEC_TOOL_PREFIX + _language(language), params, {**given, "code": text}), sources
    )


def prepare_render(
    source: str | Path, output_name: str, files: Files | None, options: Mapping[str, Any]
) -> PreparedRun:
    """Build the request of `Client.render`: options of the call, and parameters of the tool.

    Raises:
        ArgumentError: the format is unknown, or a file cannot be read.
    """
    extension = extension_of(output_name)
    if extension not in RENDERED_FORMATS:
        known = ", ".join(f".{output}" for output in RENDERED_FORMATS)
        raise ArgumentError(
            "output_name", f"{output_name!r} has no extension that can be rendered; give one of {known}"
        )
    of_call = RequestOptions.__optional_keys__
    params: dict[str, Any] = {"path": output_name}
    if isinstance(source, Path):
        params["content"] = _read_text("source", source)
        if (source_format := _SOURCE_FORMATS.get(extension_of(source.name))) is not None:
            params["format"] = source_format
    else:
        params["content"] = source
    params |= {name: value for name, value in options.items() if name not in of_call and value is not None}
    call_options = {name: value for name, value in options.items() if name in of_call}
    turn = call_options.get("turn") or DEFAULT_TURN
    call_options["assets"] = [*(call_options.get("assets") or ()), *_assets(turn, files)]
    return PreparedRun(prepare_call(RENDER_TOOL_PREFIX + extension, params, call_options), {})


def _assets(turn: str, files: Files | None) -> Iterator[dict[str, Any]]:
    """Files beside a document, where it finds them by their names: documents do not see attachments by name."""
    for name, source in named_sources(files, has_folders=True).items():
        with source.open() as file:
            yield {"physical_path": f"{turn}/{Namespace.FILES}/{name}", "base64": b64encode(file.read())}


def contract_entries(promises: Iterable[Promise] | None) -> list[dict[str, Any]]:
    """The entries of a contract: a name with ``*`` or ``?`` is a pattern, a missing description is the name."""
    entries = []
    given: Iterable[Promise] = [promises] if isinstance(promises, str | Mapping | BaseModel) else promises or []
    for promise in given:
        if isinstance(promise, str):
            entry: dict[str, Any] = {"glob" if set("*?") & set(promise) else "filename": promise}
        elif isinstance(promise, BaseModel):
            entry = promise.model_dump(exclude_unset=True)
        elif isinstance(promise, Mapping):
            entry = dict(promise)
        else:
            raise ArgumentError(
                "promises", f"{promise!r} is neither a name nor an entry such as {{'filename': 'a.csv'}}"
            )
        name = entry.get("filename") or entry.get("filepath") or entry.get("glob")
        entries.append({"description": name, **entry})
    return entries


def conversation_of(call_id: str) -> str:
    """The conversation of a call whose caller gives none: the same in every process."""
    # Ids are unique per conversation only.
    return f"conv_{hashlib.sha256(str(call_id).encode(errors='replace')).hexdigest()[:32]}"


def _refuse_unknown(options: Mapping[str, Any], known: type) -> None:
    names: frozenset[str] = known.__optional_keys__  # type: ignore[attr-defined]  # of a TypedDict
    for name in options:
        if name not in names:
            raise ArgumentError(name, f"unknown option; the options are {', '.join(sorted(names))}")


def _plain(value: Any) -> Any:
    """A value as JSON takes it: models as objects, sequences as lists."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_unset=True)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(item) for item in value]
    return value


def _language(language: str | None) -> str:
    name = str(language or "python")
    if name not in SUFFIXES.values():
        raise ArgumentError("language", f"{name!r} is not one of {', '.join(SUFFIXES.values())}")
    return name


def _language_of(path: Path) -> str:
    if path.suffix not in SUFFIXES:
        raise ArgumentError("code", f"'{path}' has none of the suffixes {', '.join(SUFFIXES)}; give language=")
    return SUFFIXES[path.suffix]


def _read_text(field: str, path: Path) -> str:
    try:
        # newline="": the text goes byte for byte as it is.
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8 text"
        raise ArgumentError(field, f"'{os.fspath(path)}' cannot be read: {reason}") from exc
