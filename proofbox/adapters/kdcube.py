"""KDCube's ReAct runtime: ``external.execute_tool = ProofboxTools(otherwise=external.execute_tool)``."""

import ast
import asyncio
import base64
import hashlib
import json
import re
import warnings
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pydantic import ValidationError

from proofbox.client import AsyncClient, NotFoundError, ProofboxError
from proofbox.contracts.codes import VerdictCode
from proofbox.contracts.paths import FilePath, UnsafePathError, in_turn, is_call_id, is_turn_id
from proofbox.contracts.tool_call_request import SourceRow
from proofbox.contracts.tool_call_response import ToolCallResponse

_TOOLS = re.compile(r"exec_tools\.execute_code_\w+|rendering_tools\.write_(?:pdf|png|docx|pptx|xlsx)")
_PATHS = ("filename", "filepath", "path")  # fields that name a promised file
_ASSETS_MAX = 1_000
_ROWS_MAX = 10_000
_ADDED = frozenset({"name", "mime"})  # to contracts, by the runtime: its type is a guess from the extension
_FOLDERS = ("files", "outputs", "attachments")
_OUTPUTS = "files/_outputs"  # here, of the runtime's folder outputs/ beside files/; one of that name gets a =
_MARK = "turn_of-"  # begins turn ids that are none here, such as telegram_turn_7
_START = r"(?<![A-Za-z0-9_.-])"
_FOLDER = rf"({_OUTPUTS}=*(?=/)|files|outputs|attachments|user\.attachments)"
_GLOBALS = 'OUTPUT_DIR = __import__("os").environ["OUTPUT_DIR"]'  # the runtime gives it to programs


class Names:
    """The paths of a runtime in the service's form, and back: each has one, and no two have the same.

    Args:
        turns: turn ids that texts are searched for, beside those that contain ``turn_``.
    """

    def __init__(self, *turns: str) -> None:
        named = "|".join(map(re.escape, sorted(turns, key=len, reverse=True))) + r"|[\w.-]{0,200}turn_[\w.-]{1,250}"
        joint = r"""/|["']\s*[,/]\s*["']"""  # also os.path.join("turn_1", "files") and Path("turn_1") / "files"
        self._physical = re.compile(rf"""{_START}({named})({joint}){_FOLDER}(?=[/"'])""", re.ASCII)
        self._logical = re.compile(rf"(?<=fi:)({named})(\.){_FOLDER}(?=/)", re.ASCII)

    @staticmethod
    def turn(turn: str) -> str:
        """A turn id that the service takes: the same, if it takes it."""
        return turn if is_turn_id(turn) and not turn.startswith(_MARK) else _MARK + _encoded(turn)

    def to_service(self, value: Any) -> Any:
        """A program, a document, a path, or a JSON value of texts, with the service's paths."""
        if isinstance(value, dict):
            return {name: self.to_service(each) for name, each in value.items()}
        if not isinstance(value, str):
            return [self.to_service(each) for each in value] if isinstance(value, list) else value
        text = re.sub(r"\bconv:(?=(?:fi|ar|tc|so|su|sk):)", "", value)
        return self._logical.sub(_here, self._physical.sub(_here, text))

    @staticmethod
    def to_runtime(text: str) -> str:
        """The opposite of `to_service`, but for the prefix ``conv:``."""

        def outputs(found: re.Match[str]) -> str:
            return found[1] + (f"{_OUTPUTS}{found[2][1:]}" if found[2] else "outputs")

        def turn(found: re.Match[str]) -> str:
            named = re.sub(rb"-(..)", lambda byte: bytes.fromhex(byte[1].decode()), found[1].encode())
            return named.decode(errors="replace")

        text = re.sub(rf"{_START}(turn_[\w.-]+[/.]){_OUTPUTS}(=*)(?=/)", outputs, text, flags=re.ASCII)
        return re.sub(rf"{_MARK}((?:\w|-[0-9A-F]{{2}})+)", turn, text, flags=re.ASCII)


def _here(found: re.Match[str]) -> str:
    folder = _OUTPUTS if found[3] == "outputs" else found[3] + "=" * found[3].startswith(_OUTPUTS)
    return Names.turn(found[1]) + found[2] + folder


def _encoded(text: str) -> str:
    """A text in the characters that ids have; no two texts have the same."""
    return re.sub(rb"\W|-", lambda found: b"-%02X" % found[0][0], text.encode()).decode()


@dataclass(frozen=True)
class _Call:
    """One call of the runtime, with the service's ids and paths.

    Attributes:
        tool_id: the tool.
        conversation: the conversation: those of the runtime are one user's own.
        turn: the turn.
        params: the parameters.
        code: the program of an exec tool.
        rows: the runtime's pool of sources.
        folder: where the runtime has the files of its turns.
        files: the files there that the call names, by the runtime's path.
        promised: the runtime's path and the description of each file that the call promises, by its path here.
    """

    tool_id: str
    conversation: str
    turn: str
    params: dict[str, Any]
    code: str | None
    rows: list[SourceRow]
    folder: Path
    files: dict[str, FilePath]
    promised: dict[str, tuple[str, str]]


class ProofboxTools:
    """In place of the runtime's ``execute_tool``: exec and rendering tools run here, all others as before.

    Args:
        url: the service; None for PROOFBOX_URL, else http://127.0.0.1:8080.
        api_key: the API key; None for PROOFBOX_API_KEY.
        otherwise: the runtime's own ``execute_tool``.
        artifact_outdir: the folder of the turns in an ``outdir``: ``artifact_outdir_for``, if the runtime has it.
        asset_bytes_max: how many bytes of the runtime's own files go with a call.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        otherwise: Callable[..., Awaitable[Any]] | None = None,
        artifact_outdir: Callable[[Path], Path] = Path,
        asset_bytes_max: int = 32 * 1024 * 1024,
    ) -> None:
        self._client = AsyncClient(url, api_key)
        self._otherwise = otherwise
        self._artifact_outdir = artifact_outdir
        self._asset_bytes_max = asset_bytes_max

    async def close(self) -> None:
        """Closes the connections to the service."""
        await self._client.close()

    async def __call__(self, **given: Any) -> Any:
        """See the runtime's ``execute_tool``; an error of the service is the ``error`` of the answer."""
        context, streamer = given["tool_execution_context"], given.get("exec_streamer")
        call_id = given.get("tool_call_id")
        if not _TOOLS.fullmatch(context["tool_id"]):
            if self._otherwise is None:
                raise ValueError(f"{context['tool_id']} is no tool of the service; give `otherwise`")
            return await self._otherwise(**given)
        call = await asyncio.to_thread(_read, given, self._artifact_outdir(Path(given["outdir"])))
        error: dict[str, Any] | None = None
        items: list[dict[str, Any]] = []
        try:
            response = await self._client.call(
                call.tool_id,
                call.params,
                code=call.code,
                conversation=call.conversation,
                turn=call.turn,
                call_id=call_id if call_id is None or is_call_id(call_id) else f"of-{_encoded(call_id)}",
                notes=context.get("reasoning") or None,
                sources_pool=call.rows,
                assets=await self._assets(call, given["logger"]),
            )
            items = await self._items(call, response)
            is_silent = (
                call.code is None and response.ok and not any(b.type == "react.notice" for b in response.blocks)
            )
            report = (
                "" if is_silent else Names.to_runtime(response.report)
            )  # silent as the runtime's rendering tools
            if response.error is not None:
                error = response.error.model_dump() | {"message": Names.to_runtime(response.error.message)}
        except ProofboxError as exc:
            error = {"code": getattr(exc, "code", "service_failed"), "message": str(exc), "where": "proofbox"}
            report = f"Runtime error: {error['code']} — {exc}"
        if streamer is not None:
            with suppress(Exception):  # what only shows a run must not fail it
                await streamer.emit_status(status="error" if error else "done", error=error)
        return {
            "status": "error" if error else "success",
            "output": items[0]["output"] if items and call.code is not None else None,
            "summary": report,
            "report_text": report,
            "items": items,
            "error": error,
            "tool_call_id": call_id,
        }

    async def _assets(self, call: _Call, logger: Any) -> list[dict[str, Any]]:
        """The runtime's own files that the call names and the service does not have."""
        stored: dict[str, str | None] = {}
        if call.files:
            with suppress(NotFoundError):  # the first call of the conversation
                stored = {file.path: file.sha256 async for file in self._client.files(call.conversation)}
        assets: list[dict[str, Any]] = []
        left_out, room = [], self._asset_bytes_max
        for path, here in call.files.items():
            content = await asyncio.to_thread(_content, call.folder / path, room)
            if content is None or len(assets) == _ASSETS_MAX:
                left_out.append(path)
            elif stored.get(here.logical) != hashlib.sha256(content).hexdigest():
                room -= len(content)
                assets.append({"physical_path": here.physical, "base64": base64.b64encode(content).decode()})
        if left_out:
            logger.log(f"more than {self._asset_bytes_max} bytes; not handed over: {left_out}", level="WARNING")
        return assets

    async def _items(self, call: _Call, response: ToolCallResponse) -> list[dict[str, Any]]:
        """The runtime's items of the promised files, each saved where the runtime looks for it."""
        items = []
        produced = {each.physical_path: each for each in response.artifacts if each.verdict is VerdictCode.PRODUCED}
        for here, (path, description) in call.promised.items():
            if (artifact := produced.get(here)) is None:
                continue
            await self._client.download(call.conversation, artifact.logical_path).save(call.folder / path)
            texts = [block.text for block in response.blocks if block.path == artifact.logical_path and block.text]
            file = {"type": "file", "path": path, "filename": Path(path).name, "text": texts[0] if texts else ""}
            file |= artifact.model_dump(include={"mime", "visibility", "size_bytes"}) | {"description": description}
            of_item = {"artifact_id": Path(path).stem, "artifact_kind": "file", "filepath": path, "summary": ""}
            items.append(of_item | {"output": file, "visibility": artifact.visibility})
        return items


def _read(given: Mapping[str, Any], folder: Path) -> _Call:
    """The call with which the runtime calls its ``execute_tool``."""
    runtime, context, streamer = given["runtime_ctx"], given["tool_execution_context"], given.get("exec_streamer")
    turns = [path.name for path in folder.glob("*/") if any((path / each).is_dir() for each in _FOLDERS)]
    names, turn = Names(runtime.turn_id, *turns), Names.turn(runtime.turn_id)
    params, tool_id, code = dict(context.get("params") or {}), context["tool_id"], None
    given_code = params.pop("code", None)
    if tool_id.startswith("exec_tools."):
        code = names.to_service((streamer.get_code() if streamer else None) or given_code or "")
        code = _with_globals(code, turn) if tool_id.endswith("_python") else code
    promised = _promised(params, names, runtime.turn_id)
    if isinstance(contract := params.get("contract"), list):
        params["contract"] = [{name: each[name] for name in each if name not in _ADDED} for each in contract]
    params = names.to_service(params)
    pool: list[dict[str, Any]] = []
    with suppress(OSError, ValueError, AttributeError):  # the runtime writes it before these tools
        pool = json.loads((Path(given["outdir"]) / "timeline.json").read_bytes()).get("sources_pool") or []
    rows = [row for each in pool[:_ROWS_MAX] if isinstance(each, dict) and (row := _row(names.to_service(each)))]
    owner = [getattr(runtime, name, None) for name in ("tenant", "project", "user_id", "conversation_id")]
    conversation = f"kdcube-{hashlib.sha256(json.dumps(owner).encode()).hexdigest()[:32]}"
    text = f"{code} {json.dumps(params, ensure_ascii=False)}"
    cited = {row.file.physical for row in rows if row.file} if "[[" in text else set()
    files = _named_files(folder, names, text + unquote(text), {turn, *cited})
    return _Call(tool_id, conversation, turn, params, code, rows, folder, files, promised)


def _promised(params: Mapping[str, Any], names: Names, turn: str) -> dict[str, tuple[str, str]]:
    """See `_Call.promised`."""
    promised = {}
    contract = params.get("contract", [params])
    for entry in (each for each in contract if isinstance(each, dict)):
        path = next((entry[name] for name in _PATHS if entry.get(name)), "")
        with suppress(UnsafePathError):
            here = in_turn(names.to_service(path), Names.turn(turn)).file.physical
            theirs = path if path.startswith(f"{turn}/") else f"{turn}/files/{path.removeprefix('files/')}"
            promised[here] = (theirs, entry.get("description") or "")
    return promised


def _with_globals(code: str, turn: str) -> str:
    """A program with what the runtime has for programs; its lines keep their numbers, where that is possible."""
    if "OUTPUT_DIR" not in code and _OUTPUTS not in code:
        return code
    folder = f'__import__("os").makedirs(OUTPUT_DIR + "/{turn}/{_OUTPUTS}", exist_ok=True)'
    for end in ("; ", "\n"):
        given = "; ".join([_GLOBALS, *([folder] if _OUTPUTS in code else [])]) + end + code
        with suppress(SyntaxError, ValueError, RecursionError, MemoryError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(given, "main.py", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            return given
    return code  # the report shows what is wrong with it


def _row(row: dict[str, Any]) -> SourceRow | None:
    """A row of the runtime's pool; None if it can be none of the service's."""
    kept = {name: row.get(name) for name in ("sid", "title", "text", "mime", "size_bytes", "artifact_path")}
    kept["physical_path"] = row.get("physical_path") or row.get("local_path")
    if kept["physical_path"] or kept["artifact_path"]:  # the url of a file is a place in the runtime's storage
        kept["source_type"] = "attachment" if row.get("source_type") == "attachment" else "file"
    else:
        kept |= {"url": row.get("url"), "source_type": "web" if row.get("url") else "manual"}
    with suppress(ValidationError):
        return SourceRow.model_validate(kept)
    return None


def _named_files(folder: Path, names: Names, text: str, further: set[str]) -> dict[str, FilePath]:
    """The files of the runtime that a text names by path, name or turn, those named by their path first.

    Args:
        folder: where the runtime has the files of its turns.
        names: the paths of the runtime.
        text: what the call says.
        further: turns and paths that count as named.
    """
    ranked = []
    for path in (each for kind in _FOLDERS for each in folder.glob(f"*/{kind}/**/*")):
        if not path.is_file() or not path.resolve().is_relative_to(folder.resolve()):
            continue
        named = path.relative_to(folder).as_posix()
        with suppress(UnsafePathError):
            here = FilePath.from_physical(names.to_service(named))
            if here.physical in text or here.logical in text or here.physical in further:
                ranked.append((0, named, here))
            elif path.name in text or here.turn_id in text or here.turn_id in further:
                ranked.append((1, named, here))
    return {named: here for _, named, here in sorted(ranked)}


def _content(path: Path, room: int) -> bytes | None:
    """The bytes of a file; None if there is no room for them."""
    return path.read_bytes() if path.stat().st_size <= room else None
