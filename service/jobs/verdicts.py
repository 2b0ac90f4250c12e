"""One verdict for each promised file: what was found, against what was promised."""

from collections import Counter, defaultdict
from dataclasses import dataclass

from proofbox.contracts.artifacts import Promise
from proofbox.contracts.codes import VerdictCode
from proofbox.contracts.media_types import OCTET_STREAM, is_inline_binary, mime_of_name
from proofbox.contracts.paths import FilePath
from proofbox.service.sandbox.limits import CallLimits
from proofbox.service.sandbox.port import Collected, CollectedFile, FileState

# Below these sizes a document of the format holds nothing: what an exporter leaves that has failed half-way.
SMALL_BYTES = {".pdf": 500, ".docx": 1_000, ".xlsx": 1_000, ".pptx": 2_000}

_STATES = {
    FileState.MISSING: (VerdictCode.MISSING_FILE, "file not produced"),
    FileState.STALE: (VerdictCode.STALE_FILE, "file was there before the run and did not change"),
    FileState.SYMLINK: (VerdictCode.SYMLINK_BLOCKED, "is a symbolic link; write a regular file"),
    FileState.FOLDER: (
        VerdictCode.NOT_REGULAR_FILE,
        "is a folder; promise the files in it with glob in place of filename: <folder>/**",
    ),
    FileState.NOT_REGULAR: (VerdictCode.NOT_REGULAR_FILE, "is no regular file"),
    FileState.ESCAPE: (VerdictCode.PATH_ESCAPE_BLOCKED, "lies behind a symbolic link that leaves files/"),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one file.

    Attributes:
        path: which file.
        promise: its entry in the contract; None for a file that was not promised.
        code: ``produced``, or why not.
        message: what is wrong, in a sentence; None if produced.
        mime: its media type.
        found: what was found; None for a pattern's own verdict.
    """

    path: FilePath
    promise: Promise | None
    code: VerdictCode
    message: str | None
    mime: str
    found: CollectedFile | None

    @property
    def produced(self) -> bool:
        """Whether the promise is kept."""
        return self.code is VerdictCode.PRODUCED


def judge(promises: tuple[Promise, ...], collected: Collected, limits: CallLimits) -> list[Verdict]:
    """The verdicts in contract order; a pattern has one for each match, and its own where the count is wrong."""
    by_promise: defaultdict[int, list[CollectedFile]] = defaultdict(list)
    for found in collected.found:
        if found.promise is not None:
            by_promise[found.promise].append(found)
    verdicts: list[Verdict] = []
    for index, promise in enumerate(promises):
        matches = [found for found in by_promise[index] if found.state is not FileState.MISSING]
        if not promise.is_glob:
            found = matches[0] if matches else CollectedFile(promise.path, index, FileState.MISSING)
            verdicts.append(_verdict(promise, found, limits))
            continue
        verdicts.extend(_verdict(promise, found, limits) for found in matches[: promise.max_count])
        verdicts.extend(_count_verdict(promise, len(matches)))
    return verdicts


def is_storable(verdict: Verdict) -> bool:
    """Whether a rendered or written file is kept: one that is unusually small is, with a warning."""
    return verdict.produced or verdict.code is VerdictCode.UNUSUALLY_SMALL


def produced_once(verdicts: list[Verdict]) -> list[Verdict]:
    """The produced files, each once: the first entry that promises a file, by name or by pattern, describes it."""
    first: dict[FilePath, Verdict] = {}
    for verdict in verdicts:
        if verdict.produced:
            first.setdefault(verdict.path, verdict)
    return list(first.values())


def failed_with_bytes(verdicts: list[Verdict]) -> list[Verdict]:
    """The files that fail their checks and were collected: they stay in the turn's workspace."""
    return [v for v in verdicts if not v.produced and v.found is not None and v.found.source is not None]


def extras(collected: Collected, promises: tuple[Promise, ...]) -> list[CollectedFile]:
    """Files that were not promised: matches beyond a pattern's ``max_count``, and files of other names."""
    matches: Counter[int] = Counter()
    promised: set[FilePath] = set()
    surplus: dict[FilePath, CollectedFile] = {}
    for found in collected.found:
        if found.promise is None or found.state is FileState.MISSING:
            continue
        matches[found.promise] += 1
        if matches[found.promise] <= promises[found.promise].max_count:
            promised.add(found.path)
        else:
            surplus.setdefault(found.path, found)
    others = [found for found in collected.found if found.promise is None]
    return [found for path, found in surplus.items() if path not in promised] + others


def mime_to_store(verdict: Verdict) -> str:
    """The media type under which a file that fails is stored.

    A block of a PDF or an image carries its bytes, and model APIs refuse those that do not open.
    """
    found = verdict.found
    inspection = None if found is None else found.inspection
    opens = inspection is not None and (inspection.ok or inspection.facts.get("opened") is True)
    return verdict.mime if opens or not is_inline_binary(verdict.mime) else OCTET_STREAM


def _count_verdict(promise: Promise, matches: int) -> list[Verdict]:
    if promise.min_count <= matches <= promise.max_count:
        return []
    if matches < promise.min_count:
        code = VerdictCode.MISSING_FILE
        message = f"file not produced: {matches} match, at least {promise.min_count} were promised"
    else:
        code = VerdictCode.INVALID
        message = f"more files match than the {promise.max_count} that were promised at most"
    return [Verdict(promise.path, promise, code, message, mime_of_name(promise.path.rel), None)]


def _verdict(promise: Promise, found: CollectedFile, limits: CallLimits) -> Verdict:
    code, message = _judge_file(promise, found, limits)
    mime = found.inspection.mime if found.inspection is not None and found.inspection.mime else ""
    return Verdict(found.path, promise, code, message, mime or mime_of_name(found.path.rel), found)


def _judge_file(promise: Promise, found: CollectedFile, limits: CallLimits) -> tuple[VerdictCode, str | None]:
    if found.state in _STATES:
        return _STATES[found.state]
    if found.state is FileState.TOO_LARGE:
        return VerdictCode.TOO_LARGE, _too_large(found.size_bytes, limits)
    if found.size_bytes == 0:
        return VerdictCode.EMPTY_FILE, "file is empty"
    if found.inspection is not None and not found.inspection.ok:
        return VerdictCode.INVALID, found.inspection.problem or "does not open as what its extension says"
    checks, size = promise.checks, found.size_bytes
    if checks.min_bytes is not None and size < checks.min_bytes:
        return VerdictCode.INVALID, f"is {size} bytes large, the contract asks for at least {checks.min_bytes}"
    if checks.max_bytes is not None and size > checks.max_bytes:
        return VerdictCode.INVALID, f"is {size} bytes large, the contract allows {checks.max_bytes}"
    small = SMALL_BYTES.get(_suffix(found.path.rel), 0)
    if size < small:
        return VerdictCode.UNUSUALLY_SMALL, f"is only {size} bytes large, such a file has {small} or more"
    return VerdictCode.PRODUCED, None


def _too_large(size: int, limits: CallLimits) -> str:
    if size > limits.artifact_bytes:
        return f"is {size} bytes large, {limits.artifact_bytes} are allowed"
    return f"is {size} bytes large; with it the files claim more than the {limits.out_dir_bytes} that OUT_DIR holds"


def _suffix(rel: str) -> str:
    name = rel.rsplit("/", 1)[-1].lower()
    return name[name.rfind(".") :] if "." in name else ""
