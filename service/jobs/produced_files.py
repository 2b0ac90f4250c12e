"""The parts of a response that every file-producing tool has."""

import base64
from dataclasses import dataclass, field, replace
from typing import BinaryIO

from proofbox.contracts.artifacts import Checks
from proofbox.contracts.blocks import TEXT_BYTES_MAX, TRUNCATED_SUFFIX
from proofbox.contracts.media_types import is_inline_binary, is_text
from proofbox.contracts.tool_call_response import ArtifactResult, Usage
from proofbox.service.artifacts.port import StoredArtifact
from proofbox.service.jobs.path_mentions import find_sids
from proofbox.service.jobs.verdicts import Verdict, is_storable
from proofbox.service.sandbox.port import CollectedFile, FileState, ProcessOutcome
from proofbox.service.text_encoding import UTF_8, as_utf_8
from proofbox.service.timeline.block_writer import embedded_text
from proofbox.service.timeline.token_counter import TokenCounter


@dataclass(frozen=True, slots=True)
class Content:
    """What the content block of a produced file carries: text, or base64, or neither.

    Attributes:
        text: its text, cut to what a block carries.
        base64: a PDF or an image.
        tokens: how many tokens the text has, if all of it is there.
        encoding: that of the text, if it is not UTF-8.
        sources_used: the ids of the sources that the text cites.
    """

    text: str | None = None
    base64: str | None = None
    tokens: int | None = None
    sources_used: tuple[int, ...] = ()
    encoding: str | None = None


@dataclass(frozen=True, slots=True)
class ProducedFiles:
    """The files of a run.

    Attributes:
        verdicts: one for each promised file.
        contents: what the blocks of kept files carry, by physical path.
        stored: the stored versions, by physical path.
        removed: physical paths of the files of the turn that the program removed.
    """

    verdicts: list[Verdict]
    contents: dict[str, Content]
    stored: dict[str, StoredArtifact]
    removed: list[str] = field(default_factory=list)


def read_contents(verdicts: list[Verdict], inline_bytes_max: int) -> dict[str, Content]:
    """The contents of produced files by physical path, read from where they are.

    Of PDFs and images ``inline_bytes_max`` bytes together, in contract order; the others are hosted and no more.
    The answer is one JSON text, in memory several times until it is stored and sent: without a bound a program
    could give one large image two hundred names by hard links, and have each of them in it.
    """
    contents: dict[str, Content] = {}
    left = inline_bytes_max
    for verdict in verdicts:
        if is_storable(verdict) and verdict.found is not None:
            # Model APIs refuse a PDF that needs a password.
            checks = Checks() if verdict.promise is None else verdict.promise.checks
            is_locked = checks.password is not None
            content = Content() if is_locked else _content(verdict.mime, verdict.found, left, checks.encoding)
            left -= verdict.found.size_bytes if content.base64 is not None else 0
            contents[verdict.path.physical] = content
    return contents


def annotate(contents: dict[str, Content], tokens: TokenCounter, known: frozenset[int]) -> dict[str, Content]:
    """Adds tokens and cited sources to the contents; ``known`` are the ids of the sources pool."""
    return {path: _annotate(content, tokens, known) for path, content in contents.items()}


def _annotate(content: Content, tokens: TokenCounter, known: frozenset[int]) -> Content:
    if content.text is None:
        return content
    count = None if content.text.endswith(TRUNCATED_SUFFIX) else tokens.count(content.text)
    return replace(content, tokens=count, sources_used=tuple(find_sids(content.text, known)[0]))


def _content(mime: str, found: CollectedFile, inline_bytes_max: int, encoding: str | None) -> Content:
    if found.source is None:
        raise AssertionError("a produced file has been collected")
    with found.source.open() as file:
        return content_of(mime, found.size_bytes, file, inline_bytes_max, encoding)


def content_of(
    mime: str, size_bytes: int, file: BinaryIO, inline_bytes_max: int, encoding: str | None = None
) -> Content:
    """What the content block of a file carries; of a text no more is read than that.

    Args:
        mime: the media type of the file.
        size_bytes: its size.
        file: its bytes.
        inline_bytes_max: the largest PDF or image that is carried.
        encoding: the one that the contract promised, of a text.
    """
    if is_inline_binary(mime):
        if size_bytes > inline_bytes_max:
            return Content()
        return Content(base64=base64.b64encode(file.read()).decode("ascii"))
    if not is_text(mime):
        return Content()
    head = file.read(TEXT_BYTES_MAX + 4)  # four more, to see where the last character begins
    shown, found = as_utf_8(head, is_whole=size_bytes == len(head), encoding=encoding)
    if found == UTF_8:
        return Content(text=embedded_text(head, more=size_bytes > len(head)))
    head += file.read(len(head) * 3)  # a character of UTF-32 has four bytes, and one of UTF-8 may have one
    shown, _ = as_utf_8(head, is_whole=size_bytes == len(head), encoding=found)
    return Content(text=embedded_text(shown, more=size_bytes > len(head)), encoding=found)


def artifact_result(verdict: Verdict, artifact: StoredArtifact | None) -> ArtifactResult:
    """What became of one file, for the caller's program; ``artifact`` is what was stored of it, if it was kept."""
    promised = verdict.promise.visibility if verdict.promise else "internal"
    size = verdict.found.size_bytes if verdict.found and verdict.found.state is not FileState.MISSING else None
    return ArtifactResult(
        logical_path=verdict.path.logical,
        physical_path=verdict.path.physical,
        mime=verdict.mime,
        visibility=artifact.visibility if artifact else promised,
        verdict=verdict.code,
        message=verdict.message,
        size_bytes=size,
        sid=artifact.sid if artifact else None,
        sha256=artifact.sha256 if artifact else None,
        **(artifact.hosting() if artifact else {}),
    )


def usage(outcome: ProcessOutcome) -> Usage:
    """What the program used."""
    return Usage(
        exit_code=outcome.exit_code,
        signal=outcome.signal,
        cpu_ms=round(outcome.cpu_ms, 3),
        memory_peak_bytes=outcome.memory_peak_bytes,
        stdout_bytes=outcome.stdout_bytes,
        stderr_bytes=outcome.stderr_bytes,
    )
