"""Builds the blocks of one call, in the order of the timeline."""

import codecs
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from proofbox.contracts.blocks import TEXT_BYTES_MAX, TRUNCATED_SUFFIX, Block, Digest
from proofbox.contracts.codes import NoticeCode
from proofbox.contracts.paths import (
    call_path,
    code_path,
    notes_path,
    notice_path,
    plan_ack_path,
    plan_path,
    result_path,
)
from proofbox.contracts.tools import LANGUAGES, Language
from proofbox.service.visible_text import visible_line, visible_text

CONTENT_SHOWN_CHARS = 100
"""How much of a long parameter a call block shows, where a file holds all of it."""
ABOUT_RESULT = frozenset(
    {
        NoticeCode.TOOL_CALL_ERROR,
        NoticeCode.TOOL_RESULT_ERROR,
        NoticeCode.HOSTING_FAILED,
        NoticeCode.NO_ACTIVE_SPACE,
        NoticeCode.LEFT_SPACE,
    }
)
"""Notices about what came of a call; all others are about the call before it ran."""
_DETAILS_CHARS_MAX = 1_000  # of a notice in a text
AUTHOR_LOOP = "react"
AUTHOR_SERVICE = "proofbox"
_ENCODER = json.JSONEncoder(ensure_ascii=False)


def now_text() -> str:
    """The time now: UTC, RFC 3339, milliseconds, ``Z``."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that the agent should learn: a code, a sentence, and details."""

    code: str
    message: str
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BlockWriter:
    """Writes the blocks of one call.

    Attributes:
        turn_id: the turn of the call.
        call_id: the loop's id of the call.
        tool_id: the tool that was called.
        began: when the call began, as `now_text` gives it.
    """

    turn_id: str
    call_id: str
    tool_id: str
    began: str

    def opening(
        self,
        params: dict[str, Any],
        notices: Sequence[Notice] = (),
        *,
        notes: str | None = None,
        code: tuple[str, Language] | None = None,
    ) -> list[Block]:
        """What stands before the results of a call.

        Notes, notices about the call, its program and the call itself have the time when it began. Notices about
        its result come behind it, and have the time of now.
        """
        before = [notice for notice in notices if notice.code not in ABOUT_RESULT]
        behind = [notice for notice in notices if notice.code in ABOUT_RESULT]
        return [
            *([self._notes(notes)] if notes else []),
            *(self._notice(notice, self.began) for notice in before),
            *([] if code is None else [self._code(*code)]),
            self._call(params),
            *(self._notice(notice, now_text()) for notice in behind),
        ]

    def _notes(self, text: str) -> Block:
        return self._block(
            "react.notes",
            AUTHOR_LOOP,
            "text/markdown",
            notes_path(self.turn_id, self.call_id),
            text=text,
            meta={"channel": "timeline_text"},
            ts=self.began,
        )

    def _notice(self, notice: Notice, ts: str) -> Block:
        payload = {"code": notice.code, "message": notice.message, **notice.details}
        return self._block(
            "react.notice",
            AUTHOR_SERVICE,
            "application/json",
            notice_path(self.turn_id, self.call_id),
            text=_json(payload),
            ts=ts,
        )

    def _code(self, code: str, language: Language) -> Block:
        """The program of an exec call, as it was given."""
        return self._block(
            "react.tool.code",
            AUTHOR_LOOP,
            LANGUAGES[language].code_mime,
            code_path(self.turn_id, self.call_id),
            text=code,
            ts=self.began,
        )

    def _call(self, params: dict[str, Any]) -> Block:
        """The call itself; notes and code are in blocks of their own."""
        payload = {"tool_id": self.tool_id, "tool_call_id": self.call_id, "params": params, "ts": self.began}
        return self._block(
            "react.tool.call",
            AUTHOR_LOOP,
            "application/json",
            call_path(self.turn_id, self.call_id),
            text=_json(payload),
            ts=self.began,
        )

    def report(self, text: str, removed: Sequence[str] = ()) -> Block:
        """The report of an exec call, and for later calls which files of the turn its program removed."""
        meta = {"removed": list(removed)} if removed else None
        return self._result("text/markdown", result_path(self.turn_id, self.call_id), text=text, meta=meta)

    def meta(self, digest: Digest) -> Block:
        """The meta block of an artifact: its safe digest."""
        return self._meta(digest_text(digest))

    def result_json(self, payload: dict[str, Any] | list[Any], meta: dict[str, Any] | None = None) -> Block:
        """A result that is JSON: the result of a tool that made no artifact."""
        path = result_path(self.turn_id, self.call_id)
        return self._result("application/json", path, text=_json(payload), meta=meta)

    def plan(self, plan: dict[str, Any]) -> Block:
        """A plan as it stands."""
        path = plan_path(self.turn_id, plan["plan_id"])
        return self._block("react.plan", AUTHOR_LOOP, "application/json", path, text=_json(plan))

    def plan_ack(self, text: str, iteration: int) -> Block:
        """What a plan's steps have come to, for the eye."""
        path = plan_ack_path(self.turn_id, iteration)
        return self._block("react.plan.ack", AUTHOR_LOOP, "text/markdown", path, text=text)

    def content(self, digest: Digest, hosting: dict[str, str], *, text: str | None, base64: str | None) -> Block:
        """The content block of an artifact; a binary other than a PDF or an image has neither text nor base64."""
        return self._content(digest, digest_text(digest), hosting, text=text, base64=base64)

    def artifact(
        self, digest: Digest, hosting: dict[str, str], *, text: str | None, base64: str | None
    ) -> tuple[Block, Block]:
        """The two blocks of an artifact: what `meta` and `content` write."""
        encoded = digest_text(digest)
        return self._meta(encoded), self._content(digest, encoded, hosting, text=text, base64=base64)

    def result_text(self, mime: str, text: str, meta: dict[str, Any]) -> Block:
        """A text at the path of the call's results."""
        return self._result(mime, result_path(self.turn_id, self.call_id), text=text, meta=meta)

    def loaded(self, mime: str, path: str, *, text: str | None, base64: str | None, meta: dict[str, Any]) -> Block:
        """What ``react.read`` brings back into view, under its own path."""
        return self._result(mime, path, text=text, base64=base64, meta=meta)

    def internal_note(self, digest: Digest, text: str) -> Block:
        """A note for the agents: the content block of a file that no user sees."""
        meta = {"channel": "internal", "digest": digest_text(digest), "physical_path": digest.physical_path}
        return self._block("react.note", AUTHOR_LOOP, digest.mime, digest.artifact_path, text=text, meta=meta)

    def _meta(self, encoded: str) -> Block:
        return self._result("application/json", result_path(self.turn_id, self.call_id), text=encoded)

    def _content(
        self, digest: Digest, encoded: str, hosting: dict[str, str], *, text: str | None, base64: str | None
    ) -> Block:
        meta = {"digest": encoded, **hosting, "physical_path": digest.physical_path}
        return self._result(digest.mime, digest.artifact_path, text=text, base64=base64, meta=meta)

    def _result(
        self,
        mime: str,
        path: str,
        *,
        text: str | None = None,
        base64: str | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Block:
        return self._block(
            "react.tool.result", AUTHOR_SERVICE, mime, path, text=text, base64=base64, meta=meta or {}
        )

    def _block(  # noqa: PLR0913 - the fields of a block
        self,
        kind: str,
        author: str,
        mime: str,
        path: str,
        *,
        text: str | None = None,
        base64: str | None = None,
        meta: dict[str, Any] | None = None,
        ts: str | None = None,
    ) -> Block:
        return Block(
            type=kind,
            author=author,
            turn_id=self.turn_id,
            ts=ts or now_text(),
            mime=mime,
            path=path,
            text=text,
            base64=base64,
            call_id=self.call_id,
            meta={**(meta or {}), "tool_call_id": self.call_id},
        )


def notice_sentences(blocks: Sequence[Block], text: str = "") -> list[str]:
    """The notices among the blocks of a call in words, without those whose sentence ``text`` has."""
    reported = []
    for block in blocks:
        if block.type == "react.notice":
            payload = json.loads(block.text or "{}")
            message, _ = str(payload.pop("message", "")), payload.pop("code", None)
            details = f" {_json(payload)[:_DETAILS_CHARS_MAX]}" if payload else ""
            reported += [f"{message}{details}"] if message not in text else []
    return reported


def with_notices(text: str, blocks: Sequence[Block]) -> str:
    """A text for a model, and below it the notices of its call that it does not have."""
    return "\n".join([text, *(visible_line(f"Note: {reported}") for reported in notice_sentences(blocks, text))])


def digest_text(digest: Digest) -> str:
    """The digest as JSON text, blanks dropped."""
    fields = digest.model_dump(exclude_none=True)
    return _json({name: value for name, value in fields.items() if value not in ("", [], {})})


def shorten_param(text: str, see: str) -> str:
    """A long parameter as its call block shows it: its beginning, and the path of the file that holds it."""
    return text if len(text) <= CONTENT_SHOWN_CHARS else f"{text[:CONTENT_SHOWN_CHARS]}... [see {see}]"


def bounded_params(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters as a call block shows them where no file holds them: long texts are cut."""
    return {name: text_head(value) if isinstance(value, str) else value for name, value in params.items()}


def text_head(text: str) -> str:
    """As much of a text as a content block carries; a lone surrogate, which JSON can hold, becomes ``?``."""
    # A character has a byte or more.
    head = text[: TEXT_BYTES_MAX + 1]
    return embedded_text(head.encode(errors="replace"), more=len(text) > len(head))


def embedded_text(content: bytes, *, more: bool) -> str:
    """A text file as its content block carries it: at most 20,480 bytes, cut at a character boundary.

    ``content`` may be the beginning of a larger file; then ``more`` is set. Bytes that are not UTF-8 become U+FFFD,
    which counts with the three bytes that it has.
    """
    # With more to come, a character that is cut at the end of ``content`` is left out, not replaced.
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(content, not more)
    encoded = text.encode()
    if len(encoded) <= TEXT_BYTES_MAX and not more:
        return text
    return encoded[:TEXT_BYTES_MAX].decode("utf-8", errors="ignore") + TRUNCATED_SUFFIX


def _json(value: Any) -> str:
    return visible_text(_ENCODER.encode(value))
