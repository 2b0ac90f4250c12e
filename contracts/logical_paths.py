"""Every logical path form of the protocol: one parser, one canonical spelling each.

`parse` answers a frozen dataclass whose ``str()`` is the canonical path; the spellings that are only accepted
when read (``tc:<turn>.tool_calls.<call>.in.json``) come out in the canonical form.
"""

import re
from dataclasses import dataclass
from typing import Literal

from proofbox.contracts.paths import FilePath, UnsafePathError, is_call_id, is_turn_id, relative_path

SID_TOKENS_BYTES_MAX = 4_096
_TURN = r"(?P<turn>turn_[A-Za-z0-9_.-]+?)"
# Call ids hold no dot, so the last marker before one is the one that counts: turn ids may hold ".code." themselves.
_CALL = r"(?P<id>[A-Za-z0-9_:-]+)"
# Blocks of a loop that the other forms do not cover: the path is the block's type, and an id behind it if there are
# several in a turn.
_EVENT = (
    r"(?P<id>(?:turn\.header|agent\.log\.header|react\.completion|react\.note|stage\.(?:gate|coordinator|feedback"
    r"|clarification(?:\.resolved)?))(?:\.[A-Za-z0-9_:.-]{1,128})?)"
)
_FORMS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("code", re.compile(rf"fi:{_TURN}\.code\.{_CALL}")),
    ("output", re.compile(rf"fi:{_TURN}\.output\.{_CALL}")),
    ("prompt", re.compile(rf"ar:{_TURN}\.user\.prompt")),
    ("completion", re.compile(rf"ar:{_TURN}\.assistant\.completion")),
    ("notes", re.compile(rf"ar:{_TURN}\.react\.notes\.{_CALL}")),
    ("plan", re.compile(rf"ar:{_TURN}\.react\.plan\.(?P<id>.+)")),
    ("event", re.compile(rf"ar:{_TURN}\.{_EVENT}")),
    ("artifact", re.compile(rf"ar:{_TURN}\.artifacts\.(?P<id>.+)")),
    ("call", re.compile(rf"tc:{_TURN}\.tool_calls\.{_CALL}\.in\.json")),
    ("result", re.compile(rf"tc:{_TURN}\.tool_calls\.{_CALL}\.out\.json")),
    ("call", re.compile(rf"tc:{_TURN}\.{_CALL}\.call")),
    ("notice", re.compile(rf"tc:{_TURN}\.{_CALL}\.notice")),
    ("result", re.compile(rf"tc:{_TURN}\.{_CALL}\.result")),
    ("summary", re.compile(rf"su:{_TURN}\.conv\.range\.summary")),
)
_SPELLING = {
    "code": "fi:{turn}.code.{id}",
    "output": "fi:{turn}.output.{id}",
    "prompt": "ar:{turn}.user.prompt",
    "completion": "ar:{turn}.assistant.completion",
    "notes": "ar:{turn}.react.notes.{id}",
    "plan": "ar:{turn}.react.plan.{id}",
    "event": "ar:{turn}.{id}",
    "artifact": "ar:{turn}.artifacts.{id}",
    "call": "tc:{turn}.{id}.call",
    "notice": "tc:{turn}.{id}.notice",
    "result": "tc:{turn}.{id}.result",
    "summary": "su:{turn}.conv.range.summary",
}
Kind = Literal[
    "code",
    "output",
    "prompt",
    "completion",
    "notes",
    "plan",
    "event",
    "artifact",
    "call",
    "notice",
    "result",
    "summary",
]
_SOURCES = re.compile(r"so:sources_pool\[(?P<sids>[^\[\]]+)\]")
_SKILL = re.compile(r"sk:(?P<id>[A-Za-z0-9_./-]+)")
# What the citation tokens tolerate: spaces, and the dashes that language models write.
_SID_RANGE = re.compile(r"\s*(\d{1,12})\s*(?:[-\u2010-\u2015]\s*(\d{1,12})\s*)?")


@dataclass(frozen=True, slots=True)
class TurnPath:
    """A logical path that belongs to one turn and is no file: a call, notes, a prompt and so on."""

    kind: Kind
    turn_id: str
    item_id: str

    def __str__(self) -> str:
        """The canonical spelling."""
        return _SPELLING[self.kind].format(turn=self.turn_id, id=self.item_id)


@dataclass(frozen=True, slots=True)
class SourcesPath:
    """``so:sources_pool[1,3-5]``: rows of the sources pool, as inclusive ranges in the order given."""

    ranges: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        """The canonical spelling: single ids bare, ranges ascending with ``-``."""
        return f"so:sources_pool[{','.join(f'{a}-{b}' if a != b else str(a) for a, b in self.ranges)}]"


@dataclass(frozen=True, slots=True)
class SkillPath:
    """``sk:<skill_id>``: one skill."""

    skill_id: str

    def __str__(self) -> str:
        """The canonical spelling."""
        return f"sk:{self.skill_id}"


LogicalPath = FilePath | TurnPath | SourcesPath | SkillPath


def parse_sid_ranges(text: str) -> tuple[tuple[int, int], ...] | None:
    """Reads ``1, 3-5`` as ``((1, 1), (3, 5))``; a reversed range is turned round; None if it is no such list.

    Ranges stay ranges, so that ``1-999999999`` costs nothing until it meets a pool.
    """
    if len(text) > SID_TOKENS_BYTES_MAX:
        return None
    ranges = []
    for part in text.split(","):
        match = _SID_RANGE.fullmatch(part)
        if match is None:
            return None
        first = int(match[1])
        last = int(match[2] or match[1])
        ranges.append((min(first, last), max(first, last)))
    return tuple(ranges)


def parse(text: str) -> LogicalPath:
    """Parses any logical path of the protocol.

    Raises:
        UnsafePathError: it has none of the forms, or a part that is refused.
    """
    for kind, pattern in _FORMS:
        match = pattern.fullmatch(text)
        if match is None:
            continue
        groups = match.groupdict()
        return _turn_path(kind, groups["turn"], groups.get("id") or "")
    if text.startswith("fi:"):
        return FilePath.from_logical(text)
    if match := _SOURCES.fullmatch(text):
        ranges = parse_sid_ranges(match["sids"])
        if ranges is not None:
            return SourcesPath(ranges)
    if match := _SKILL.fullmatch(text):
        return SkillPath(relative_path(match["id"]))
    raise UnsafePathError(f"{text[:80]!a} has no form of a logical path (fi:, ar:, tc:, so:, su:, sk:)")


def _turn_path(kind: str, turn_id: str, item_id: str) -> TurnPath:
    if not is_turn_id(turn_id):
        raise UnsafePathError(f"{turn_id[:80]!a} is no turn id")
    if kind in {"code", "output", "notes", "call", "notice", "result"} and not is_call_id(item_id):
        raise UnsafePathError(f"{item_id[:80]!a} is no tool call id")
    if kind in {"plan", "artifact"}:
        item_id = relative_path(item_id)
    return TurnPath(kind, turn_id, item_id)  # type: ignore[arg-type]  # kind comes from _FORMS
