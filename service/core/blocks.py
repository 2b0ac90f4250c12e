"""Builds the blocks of one call, in the order of the timeline."""

import codecs
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from contracts.blocks import TEXT_BYTES_MAX, TRUNCATED_SUFFIX, Block, Digest
from contracts.paths import call_path, code_path, notes_path, notice_path, result_path
from contracts.tools import LANGUAGES, Language

AUTHOR_LOOP = "react"
AUTHOR_SERVICE = "proofbox"


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
    """

    turn_id: str
    call_id: str
    tool_id: str

    def notes(self, text: str) -> Block:
        """What the agent said about the call."""
        return self._block(
            "react.notes",
            AUTHOR_LOOP,
            "text/markdown",
            notes_path(self.turn_id, self.call_id),
            text=text,
            meta={"channel": "timeline_text"},
        )

    def notice(self, notice: Notice) -> Block:
        """Something that the agent should learn."""
        payload = {"code": notice.code, "message": notice.message, **notice.details}
        return self._block(
            "react.notice",
            AUTHOR_SERVICE,
            "application/json",
            notice_path(self.turn_id, self.call_id),
            text=_json(payload),
        )

    def code(self, code: str, language: Language) -> Block:
        """The program of an exec call, as it was given."""
        return self._block(
            "react.tool.code",
            AUTHOR_LOOP,
            LANGUAGES[language].code_mime,
            code_path(self.turn_id, self.call_id),
            text=code,
        )

    def call(self, params: dict[str, Any]) -> Block:
        """The call itself; notes and code are in blocks of their own."""
        payload = {"tool_id": self.tool_id, "tool_call_id": self.call_id, "params": params, "ts": now_text()}
        return self._block(
            "react.tool.call",
            AUTHOR_LOOP,
            "application/json",
            call_path(self.turn_id, self.call_id),
            text=_json(payload),
        )

    def report(self, text: str) -> Block:
        """The report of an exec call."""
        return self._result("text/markdown", result_path(self.turn_id, self.call_id), text=text)

    def meta(self, digest: Digest) -> Block:
        """The meta block of an artifact: its safe digest."""
        return self._result("application/json", result_path(self.turn_id, self.call_id), text=digest_text(digest))

    def result_json(self, payload: dict[str, Any] | list[Any]) -> Block:
        """A result that is JSON: what a tool without artifacts found, or its error."""
        return self._result("application/json", result_path(self.turn_id, self.call_id), text=_json(payload))

    def content(self, digest: Digest, hosting: dict[str, str], *, text: str | None, base64: str | None) -> Block:
        """The content block of an artifact; a binary that is no PDF and no image has neither text nor base64."""
        meta = {"digest": digest_text(digest), **hosting, "physical_path": digest.physical_path}
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
    ) -> Block:
        return Block(
            type=kind,
            author=author,
            turn_id=self.turn_id,
            ts=now_text(),
            mime=mime,
            path=path,
            text=text,
            base64=base64,
            call_id=self.call_id,
            meta={**(meta or {}), "tool_call_id": self.call_id},
        )


def digest_text(digest: Digest) -> str:
    """The digest as JSON text, blanks dropped."""
    fields = digest.model_dump(exclude_none=True)
    return _json({name: value for name, value in fields.items() if value not in ("", [], {})})


def embedded_text(content: bytes, *, more: bool) -> str:
    """A text file as its content block carries it: at most 20,480 bytes, cut at a character boundary.

    ``content`` may be the beginning of a larger file; ``more`` says so. Bytes that are no UTF-8 become U+FFFD,
    which counts with the three bytes that it has.
    """
    # With more to come, a character that is cut at the end of ``content`` is left out, not replaced.
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(content, not more)
    encoded = text.encode()
    if len(encoded) <= TEXT_BYTES_MAX and not more:
        return text
    return encoded[:TEXT_BYTES_MAX].decode("utf-8", errors="ignore") + TRUNCATED_SUFFIX


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
