"""The contract of an exec call: which files the program promises, and what must be true of each."""

import difflib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self
from urllib.parse import unquote

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from proofbox.contracts.checks import encoding_name, misfit
from proofbox.contracts.codes import ContractCode
from proofbox.contracts.media_types import is_derived_mime
from proofbox.contracts.paths import FilePath, Namespace, UnsafePathError, in_turn

ENTRIES_MAX = 200
GLOB_MATCHES_MAX = 200
DEPTH_MAX = 64  # what goes on from here recurses
CONTRACT_CHARS_MAX = 512 * 1024  # as JSON in ASCII: it goes to the sandbox in one piece of at most 1 MiB
_WILDCARDS = frozenset("*?[")
_MISTAKES_LISTED = 5
# What runtimes write into an entry beside the file: it promises nothing.
_WITHOUT_PROMISE = frozenset(
    (
        *("name", "title", "label", "id", "key", "type", "kind", "comment", "note", "summary", "purpose", "tags"),
        *("artifact_id", "artifact_name", "slot", "author", "ts", "sources_used"),
    )
)
_MEANT = {
    **dict.fromkeys(("name", "path", "file", "file_name", "file_path", "output", "uri", "url"), "filename"),
    **dict.fromkeys(("desc", "title", "summary", "purpose"), "description"),
    **dict.fromkeys(("pattern", "files"), "glob"),
    **dict.fromkeys(("type", "mimetype", "mime_type", "content_type", "media_type"), "mime"),
    **dict.fromkeys(("rows", "row_count"), "min_rows"),
    **dict.fromkeys(("schema", "jsonschema"), "json_schema"),
}
"""What fields of other contracts are called here."""
_ENCODED = re.compile(r"%20|%[89A-Fa-f][0-9A-Fa-f]")


class ContractError(ValueError):
    """A call that the model has to write differently; no part of it ran.

    Attributes:
        code: the stable code of the mistake.
        message: one sentence for the model: which entry, what is wrong, what to do.
        details: what the notice carries beside code and message.
        parts: the mistakes, if there are several: code and message are those of all of them.
    """

    def __init__(self, code: ContractCode, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details
        self.parts: tuple[ContractError, ...] = (self,)


class Checks(BaseModel):
    """What must be true of a promised file beyond opening as the type of its extension."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, strict=True)

    mime: Annotated[str, Field(min_length=3, max_length=128)] | None = None
    """Media type."""
    min_bytes: Annotated[int, Field(ge=0)] | None = None
    """Smallest size."""
    max_bytes: Annotated[int, Field(ge=0)] | None = None
    """Largest size."""
    min_pages: Annotated[int, Field(ge=0)] | None = None
    """Fewest pages (pdf, docx) or slides (pptx)."""
    max_pages: Annotated[int, Field(ge=0)] | None = None
    """Most pages or slides."""
    min_rows: Annotated[int, Field(ge=0)] | None = None
    """Fewest rows without the header (csv, xlsx, parquet, jsonl)."""
    columns: Annotated[list[str], Field(min_length=1, max_length=1_000)] | None = None
    """Required columns, in any order (as ``min_rows``)."""
    json_schema: dict[str, Any] | None = None
    """JSON Schema of the content (json, ipynb; each line of jsonl)."""
    min_width: Annotated[int, Field(ge=1)] | None = None
    """Image width in pixels."""
    min_height: Annotated[int, Field(ge=1)] | None = None
    """Image height in pixels."""
    not_blank: bool | None = None
    """The file must show something."""
    encoding: Annotated[str, Field(min_length=1, max_length=40)] | None = None
    """Encoding of a text, such as ``cp1251``."""
    password: Annotated[str, Field(min_length=1, max_length=127)] | None = None
    """Of a protected PDF."""

    def inspected(self) -> dict[str, Any]:
        """The checks that need the file to be opened: all but the sizes."""
        return self.model_dump(exclude_none=True, exclude={"min_bytes", "max_bytes"})


class ArtifactSpec(Checks):
    """One entry of a contract, as the caller writes it."""

    filename: Annotated[str, Field(min_length=1, max_length=2_048)] | None = None
    """The promised file, below ``files/`` of the current turn."""
    glob: Annotated[str, Field(min_length=1, max_length=1_024)] | None = None
    """In place of filename: a pattern (``charts/*.png``, ``**/*.csv``)."""
    description: str
    """What the file is, for the user."""
    visibility: Literal["external", "internal"] = "external"
    """``external``: for the user; ``internal``: stays in the workspace."""
    min_count: Annotated[int, Field(ge=0, le=GLOB_MATCHES_MAX)] | None = None
    """With ``glob``: fewest matches, default 1."""
    max_count: Annotated[int, Field(ge=0, le=GLOB_MATCHES_MAX)] | None = None
    """With ``glob``: most matches, default 200."""

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, value: str | None) -> str | None:
        name = None if value is None else encoding_name(value)
        if value is not None and name is None:
            raise ValueError(f"'{value}' is no text encoding that is known, such as cp1251 or shift_jis")
        return name

    @model_validator(mode="after")
    def _one_name(self) -> Self:
        if (self.filename is None) == (self.glob is None):
            raise ValueError("give either filename or glob")
        if self.glob is None and (self.min_count is not None or self.max_count is not None):
            raise ValueError("min_count and max_count go with glob")
        low = 1 if self.min_count is None else self.min_count
        if self.max_count is not None and self.max_count < low:
            raise ValueError(f"max_count {self.max_count} is below min_count {low}")
        if not self.description.strip():
            raise ValueError("description is blank")
        return self


@dataclass(frozen=True, slots=True)
class Promise:
    """One entry of a contract after it was read: a file or a pattern of the current turn, and its checks.

    Attributes:
        path: the file, or the pattern as if it were a file (``is_glob``).
        is_glob: whether ``path.rel`` is a pattern.
        description: what the file is.
        visibility: ``external`` or ``internal``.
        min_count: the fewest matches of a pattern; 1 for a file.
        max_count: the most matches of a pattern; 1 for a file.
        checks: what must be true of each file.
    """

    path: FilePath
    is_glob: bool
    description: str
    visibility: Literal["external", "internal"]
    min_count: int
    max_count: int
    checks: Checks


@dataclass(frozen=True, slots=True)
class Contract:
    """All that a call promises, and the paths that changed their meaning when they were read.

    Attributes:
        promises: the entries in the order given; no two are the same file.
        rewritten: ``(original, rewritten physical path)`` of entries whose spelling was normalised.
        ignored: fields that were left out, as they promise nothing: ``contract[0].name``.
    """

    promises: tuple[Promise, ...]
    rewritten: tuple[tuple[str, str], ...]
    ignored: tuple[str, ...] = ()


def parse_contract(raw: object, turn_id: str | None) -> Contract:
    """Reads a contract: a list of entries, or the JSON string of one.

    Raises:
        ContractError: with the code of the protocol's table for the first mistake, and a message that names each
            entry that has one.
    """
    mistakes = [] if turn_id else [_no_turn()]
    try:
        entries = _entries(raw)
    except ContractError as exc:
        raise_mistakes([*mistakes, exc])
        raise
    promises: list[Promise] = []
    rewritten: list[tuple[str, str]] = []
    ignored: list[str] = []
    seen: dict[str, int] = {}
    for index, entry in enumerate(entries):
        try:
            fields, left_out = _without_idle_fields(_object(index, entry))
            promise, original = _promise(index, fields, turn_id)
        except ContractError as exc:
            mistakes.append(exc)
            continue
        ignored += [f"contract[{index}].{name}" for name in left_out]
        key = promise.path.physical
        if key in seen:
            message = f"contract[{index}] and contract[{seen[key]}] are the same file, {key}; promise it once"
            mistakes.append(ContractError(ContractCode.DUPLICATE_ARTIFACT, message))
        seen[key] = index
        promises.append(promise)
        if original is not None:
            rewritten.append((original, key))
    raise_mistakes(mistakes)
    return Contract(tuple(promises), tuple(rewritten), tuple(ignored))


def raise_mistakes(mistakes: Sequence[ContractError]) -> None:
    """Raise what is wrong with a call, all of it as one.

    Raises:
        ContractError: there is a mistake; its code is that of the first one.
    """
    if len(mistakes) == 1:
        raise mistakes[0]
    if mistakes:
        listed = "; ".join(mistake.message for mistake in mistakes[:_MISTAKES_LISTED])
        more = len(mistakes) - _MISTAKES_LISTED
        end = f"; and {more} more mistakes" if more > 0 else ""
        error = ContractError(mistakes[0].code, listed + end, **mistakes[0].details)
        error.parts = tuple(part for mistake in mistakes for part in mistake.parts)
        raise error


def _without_idle_fields(entry: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """An entry without the fields that promise nothing, and their names."""
    named = next((entry[key] for key in ("filename", "filepath", "glob") if isinstance(entry.get(key), str)), None)
    if named is None:
        return entry, []  # one of them may be meant as the name
    idle = [name for name, value in entry.items() if name in _WITHOUT_PROMISE or _is_empty(name, value)]
    mime, is_glob = entry.get("mime"), "glob" in entry
    if isinstance(mime, str) and is_derived_mime(mime, named) and misfit("mime", mime, named, is_glob=is_glob):
        idle.append("mime")
    return {name: value for name, value in entry.items() if name not in idle}, idle


def _is_empty(name: str, value: object) -> bool:
    """Whether a field that no contract has is left empty."""
    return value is None and name not in ArtifactSpec.model_fields and name != "filepath"


def no_promises(turn_id: str | None) -> Contract:
    """The contract of a run that only explores.

    Raises:
        ContractError: ``missing_turn_id``.
    """
    if not turn_id:
        raise _no_turn()
    return Contract((), ())


def _no_turn() -> ContractError:
    return ContractError(ContractCode.MISSING_TURN_ID, "the call has no turn_id; give the current turn's id")


def _entries(raw: object) -> list[Any]:
    if raw is None or raw == "":
        raise ContractError(
            ContractCode.MISSING_ARTIFACTS,
            "params.contract is missing; give a list of {filename, description} of what the code writes, "
            "or explore: true for a run that promises no file",
        )
    if isinstance(raw, str):
        try:
            raw = json.loads(raw)
        except (ValueError, RecursionError) as exc:
            raise ContractError(
                ContractCode.INVALID_ARTIFACTS_JSON, f"params.contract is a string but no JSON: {exc}"
            ) from exc
    _refuse_unsendable(raw)
    if not isinstance(raw, list) or not raw:
        raise ContractError(
            ContractCode.INVALID_ARTIFACTS,
            "params.contract is not a non-empty list of {filename, description}",
        )
    if (chars := len(json.dumps(raw))) > CONTRACT_CHARS_MAX:
        raise ContractError(
            ContractCode.INVALID_ARTIFACTS,
            f"params.contract is {chars} characters of JSON, {CONTRACT_CHARS_MAX} are allowed; shorten its checks",
        )
    if len(raw) > ENTRIES_MAX:
        raise ContractError(
            ContractCode.INVALID_ARTIFACTS,
            f"params.contract has {len(raw)} entries, {ENTRIES_MAX} are allowed; use glob for many files",
        )
    return raw


def _object(index: int, entry: object) -> dict[str, Any]:
    if isinstance(entry, dict):
        return entry
    message = f"contract[{index}] is no object; write {{filename, description}}"
    raise ContractError(ContractCode.INVALID_ARTIFACTS, message)


def _refuse_unsendable(raw: object) -> None:
    """Refuses what no JSON text carries on: a contract given as a string has not been parsed before.

    Raises:
        ContractError: ``invalid_artifacts_json``: lone surrogates, NaN, infinite numbers, or too deep.
    """
    try:
        json.dumps(raw, allow_nan=False, ensure_ascii=False).encode()
        _refuse_deeper(raw, DEPTH_MAX)
    except (TypeError, ValueError, RecursionError) as exc:
        shown = str(exc).encode("ascii", "backslashreplace").decode()
        raise ContractError(
            ContractCode.INVALID_ARTIFACTS_JSON, f"params.contract cannot be sent on as JSON: {shown}"
        ) from exc


def _refuse_deeper(value: object, levels: int) -> None:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    if inner is not None and levels == 0:
        raise ValueError(f"it is nested deeper than {DEPTH_MAX} levels")
    for item in inner or ():
        _refuse_deeper(item, levels - 1)


def _promise(index: int, entry: dict[str, Any], turn_id: str | None) -> tuple[Promise, str | None]:
    """One entry as a promise, and its original spelling if its meaning or namespace spelling changed.

    Without a turn, which is a mistake of its own, its path may be of any.
    """
    given_turn, turn_id = turn_id, turn_id or "turn_0"
    spec = _spec(index, entry)
    text = spec.filename if spec.filename is not None else spec.glob or ""
    if (folder := text.strip()).endswith("/") and folder.strip("/"):
        raise ContractError(
            ContractCode.INVALID_FILENAME,
            f"contract[{index}]: '{folder}' is a folder; promise the files in it: glob '{folder.strip('/')}/**'",
        )
    try:
        named = in_turn(_decoded(text.strip()), turn_id)
    except UnsafePathError as exc:
        raise ContractError(ContractCode.INVALID_FILENAME, f"contract[{index}]: {exc}") from exc
    if named.foreign and given_turn:
        raise ContractError(
            ContractCode.INVALID_FILENAME,
            f"contract[{index}]: '{text}' lies outside {turn_id}/files/; a call can promise files of its own "
            "turn only",
        )
    is_glob = spec.glob is not None
    checks = spec.model_dump(include=set(Checks.model_fields), exclude_none=True)
    if misfits := _misfits(index, checks, named.file.rel, is_glob=is_glob):
        raise ContractError(ContractCode.INVALID_ARTIFACT_SPEC, misfits[0])
    if is_glob and not _WILDCARDS & set(named.file.rel):
        raise ContractError(
            ContractCode.INVALID_ARTIFACT_SPEC,
            f"contract[{index}]: glob '{text}' has no wildcard; use filename",
        )
    path = FilePath(turn_id, Namespace.FILES, named.file.rel)
    promise = Promise(
        path=path,
        is_glob=is_glob,
        description=spec.description,
        visibility=spec.visibility,
        min_count=(1 if spec.min_count is None else spec.min_count) if is_glob else 1,
        max_count=(GLOB_MATCHES_MAX if spec.max_count is None else spec.max_count) if is_glob else 1,
        checks=Checks(**spec.model_dump(include=set(Checks.model_fields))),
    )
    plain_spellings = {path.rel, f"files/{path.rel}", path.physical, path.logical}
    return promise, None if text in plain_spellings else text


def _decoded(text: str) -> str:
    """A name without percent-encoding, which links have: ``sandbox:/mnt/data/my%20file.csv``."""
    if not _ENCODED.search(text):
        return text
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return text


def _misfits(index: int, checks: dict[str, Any], rel: str, *, is_glob: bool) -> list[str]:
    """The checks that can hold for no file of the promised name, as one sentence; none if there are none."""
    found = (misfit(check, value, rel, is_glob=is_glob) for check, value in checks.items())
    listed = "; ".join(why for why in found if why is not None)
    return [f"contract[{index}] '{rel}': {listed}"] if listed else []


def _spec(index: int, entry: dict[str, Any]) -> ArtifactSpec:
    fields = dict(entry)
    if "filepath" in fields:
        alias = fields.pop("filepath")
        if fields.get("filename") is None:
            fields["filename"] = alias
        elif alias not in (None, fields["filename"]):
            raise ContractError(
                ContractCode.INVALID_ARTIFACT_SPEC,
                f"contract[{index}] has a filename and another filepath; give one of them",
            )
    names = {name: fields.get(name) for name in ("filename", "glob")}
    blank = [name for name, value in names.items() if value is not None and not str(value).strip()]
    if blank:
        raise ContractError(ContractCode.INVALID_ARTIFACT_SPEC, f"contract[{index}].{blank[0]} is blank")
    try:
        return ArtifactSpec.model_validate(fields)
    except ValidationError as exc:
        errors = exc.errors(include_url=False, include_context=False)
        listed = [_mistake(index, error, fields) for error in errors[:_MISTAKES_LISTED]]
        if rel := next((name for name in names.values() if isinstance(name, str)), None):
            checks = {check: fields[check] for check in Checks.model_fields if fields.get(check) is not None}
            listed += _misfits(index, checks, rel, is_glob=fields.get("filename") is None)
        raise ContractError(ContractCode.INVALID_ARTIFACT_SPEC, "; ".join(listed)) from exc


def _mistake(index: int, error: Any, fields: dict[str, Any]) -> str:
    """What is wrong with one field, and which was meant by one that there is not."""
    where = ".".join(str(part) for part in error["loc"])
    place = f"contract[{index}]{'.' + where if where else ''}"
    if error["type"] != "extra_forbidden" or len(error["loc"]) != 1:
        return f"{place}: {error['msg'].removeprefix('Value error, ')}"
    known = [*ArtifactSpec.__annotations__, *Checks.model_fields]
    close = difflib.get_close_matches(where.lower(), known, n=1, cutoff=0.8)
    meant = _MEANT.get(where.lower()) or (close[0] if close else None)
    if meant is not None and meant not in fields:
        return f"{place}: there is no such field; did you mean {meant}?"
    return f"{place}: there is no such field; the fields are {', '.join(known)}"
