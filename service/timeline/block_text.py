"""The rendered view of blocks: what a model reads. Hosting fields never appear in it.

Each block becomes one part of the text, from what stands before it and never from what comes after: so the text of
a timeline that has grown begins with the text of before, and a prompt cache keeps hitting.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any

from proofbox.contracts.blocks import Block
from proofbox.contracts.logical_paths import TurnPath, parse
from proofbox.contracts.paths import UnsafePathError
from proofbox.service.timeline.artifact_versions import HOSTING_FIELDS
from proofbox.service.timeline.block_writer import AUTHOR_SERVICE
from proofbox.service.timeline.heads import (
    Head,
    HeadName,
    PlaceName,
    escape_heads,
    head,
    picture_line,
    place_line,
)
from proofbox.service.timeline.port import PlacedBlock, canonicalize, described_path
from proofbox.service.timeline.shown_json import (
    format_call,
    format_digest_line,
    format_notice,
    format_result,
    json_text,
)
from proofbox.service.visible_text import visible_line

STEP_SIGNS = {"done": "✓", "in_progress": "…", "pending": "□", "failed": "✗"}
"""How far a step of a plan is, for the eye."""
PLAN = "react.plan"
"""The type of the snapshot of a plan."""
SHORT_RESULT_CHARS = 200
"""Up to here the JSON of a result stands without its path, which is always ``tc:<turn_id>.<call_id>.result``."""
FILE_TOOLS = ("exec_tools.", "rendering_tools.", "react.write", "react.stream", "react.file", "react.patch")
"""How tools begin whose own result is a report of the files that they made; of any other tool it is its payload."""


def rendered(blocks: Iterable[Block]) -> str:
    """The text of the blocks of a call, as a model reads them; byte-stable for the same blocks."""
    view = RenderedView()
    placed = (PlacedBlock(0, block, len(block.base64 or "")) for block in blocks)
    return "".join(view.part(item) for item in placed)


def hidden_line(replacement: str, path: str) -> Head:
    """What stands in place of hidden blocks, on one line."""
    return place_line(PlaceName.HIDDEN, f"{replacement}. Retrieve with react.read({path})")


def deleted_line(replacement: str) -> Head:
    """What stands in place of the blocks of a deleted file, on one line."""
    return place_line(PlaceName.DELETED, replacement)


class RenderedView:
    """Turns the blocks of a timeline into text, one after the other.

    Args:
        turns: whether a line marks where a turn begins.
        begins: whether the first block is the timeline's first.
    """

    def __init__(self, *, turns: bool = False, begins: bool = True) -> None:
        self._turns = turns
        self._is_empty = begins
        self._turn: str | None = None
        self._call: str | None = None
        self._tool = ""
        self._params: dict[str, Any] = {}
        self._notices: list[dict[str, Any]] = []
        self._has_summary = False
        self._plan_id: object = None
        self._has_plan = False
        self._described: str | None = None

    def part(self, placed: PlacedBlock) -> str:
        """The text of the next block; empty for a block that shows nothing."""
        if placed.block.meta.get("hidden") is True:
            return self.hidden(placed, own_line(placed.block))
        self._enter_call(placed.block)
        continues = self._continues(placed.block)
        return self._in_turn(
            placed.block, _content(placed) if continues else self._lines(placed), continues=continues
        )

    def hidden(self, placed: PlacedBlock, line: str | None) -> str:
        """The next block, which is hidden: the line in place of its group, or nothing if that was shown."""
        self._enter_call(placed.block)
        self._has_summary = self._has_summary or placed.block.type == "react.tool.result"
        self._described = None
        return self._in_turn(placed.block, [] if line is None else [line])

    def covered(self, placed: PlacedBlock, *, stays: bool) -> str:
        """The next block, for which a summary stands; of a digest that ``stays`` one line, a plan as a whole."""
        self.skip_covered()
        if not stays:
            return ""
        return self._in_turn_text(_plan(placed) if placed.block.type == PLAN else [_digest_line(placed.block)])

    def skip_covered(self) -> None:
        """Blocks for which a summary stands come next, and are not read."""
        self._forget_call()
        self._turn = None

    def summary(self, placed: PlacedBlock) -> str:
        """A summary in the place of its turns."""
        self._forget_call()
        return self._in_turn_text(_PARTS[placed.block.type](placed))

    def hidden_summary(self, line: str | None) -> str:
        """A summary that is hidden itself: the line in place of its group, or nothing if that was shown."""
        self._forget_call()
        return self._in_turn_text([] if line is None else [line])

    def pass_summary(self) -> str:
        """The next block is a summary; it stands in another place, so nothing is shown here."""
        self._forget_call()
        return ""

    def _forget_call(self) -> None:
        self._call = None
        self._tool = ""
        self._params = {}
        self._notices = []
        self._has_summary = False
        self._plan_id = None
        self._has_plan = False
        self._described = None

    def _enter_call(self, block: Block) -> None:
        if block.call_id != self._call:
            self._forget_call()
            self._call = block.call_id
        if block.type == "react.tool.call":
            self._tool = str((_object(block.text) or {}).get("tool_id", ""))

    def _continues(self, block: Block) -> bool:
        """Whether the block is the content of the artifact whose digest was just shown."""
        return block.type == "react.tool.result" and block.path == self._described and _digest(block) is None

    def _in_turn(self, block: Block, lines: list[str], *, continues: bool = False) -> str:
        if self._turns and block.turn_id != self._turn:
            lines = [head(HeadName.TURN, block.turn_id, f" ts={block.ts}"), *([""] if lines else []), *lines]
        self._turn = block.turn_id
        return self._in_turn_text(lines, continues=continues)

    def _in_turn_text(self, lines: list[str], *, continues: bool = False) -> str:
        if not lines:
            return ""
        gap = "" if continues or self._is_empty else "\n"
        self._is_empty = False
        return gap + "\n".join(line if isinstance(line, Head) else escape_heads(line) for line in lines) + "\n"

    def _lines(self, placed: PlacedBlock) -> list[str]:
        block = placed.block
        self._described = None
        if block.type != "react.tool.result":
            of_calls = {
                "react.tool.call": self._call_lines,
                "react.notice": self._notice_lines,
                PLAN: self._plan_lines,
                "react.plan.ack": self._ack_lines,
            }
            return of_calls.get(block.type, _PARTS.get(block.type, _message(block.type)))(placed)
        digest = _digest(block)
        if digest is not None:
            is_of_file = not digest["artifact_path"].startswith("tc:")
            summary = _summary(self._tool, block, digest) if is_of_file and not self._has_summary else []
            self._has_summary = True
            self._described = canonicalize(digest["artifact_path"])
            return [*summary, *_artifact(self._tool, block, digest)]
        if not block.path.startswith("tc:"):
            return [_head(block, "artifact", self._tool), _path_line(block.path), *_content(placed)]
        self._has_summary = True
        kind = "summary" if self._tool.startswith(FILE_TOOLS) else "result"
        payload = _object(block.text) if block.mime == "application/json" else None
        if payload is None:
            return [_head(block, kind, self._tool), _path_line(block.path), *_content(placed)]
        self._plan_id = payload.get("plan_id")
        shown = json_text(format_result(payload, self._params, self._notices), payload, block.text)
        # Nobody reads a short result again or hides it.
        path = [_path_line(block.path)] if len(shown) > SHORT_RESULT_CHARS else []
        return [_head(block, kind, self._tool), *path, shown]

    def _call_lines(self, placed: PlacedBlock) -> list[str]:
        text = placed.block.text or ""
        payload = _object(text) or {}
        params = payload.get("params")
        self._params = params if isinstance(params, dict) else {}
        return [head(placed.block.type, after=" (JSON)"), json_text(format_call(payload), payload, text)]

    def _notice_lines(self, placed: PlacedBlock) -> list[str]:
        payload = _object(placed.block.text)
        if payload is None:
            return _message(placed.block.type)(placed)
        # Only this service's own notices are sure to have a result behind them with the same in full.
        has_result = bool(self._tool) and placed.block.author == AUTHOR_SERVICE
        shown = format_notice(payload, has_result=has_result)
        self._notices.append(shown)
        return [head(placed.block.type), json_text(shown, payload, placed.block.text)]

    def _plan_lines(self, placed: PlacedBlock) -> list[str]:
        """A plan, without the words of its steps and its id where the call and its result have them."""
        lines = _plan(placed)
        plan = _object(placed.block.text)
        is_of_call = placed.block.call_id is not None and plan is not None
        self._has_plan = is_of_call
        if not is_of_call or plan is None or not plan.get("steps") or plan["steps"] != self._params.get("steps"):
            return lines
        head = lines[:1] if plan.get("plan_id") == self._plan_id else lines[:2]
        return [*head, " ".join(line.partition(")")[0] for line in lines[2:])]

    def _ack_lines(self, placed: PlacedBlock) -> list[str]:
        """An acknowledgement, unless the plan that it acknowledges stands above."""
        return [] if self._has_plan else _message(HeadName.PLAN_ACK)(placed)


def _path_line(path: str) -> Head:
    return head(HeadName.PATH, path)


def own_line(block: Block) -> str | None:
    """What a block that came hidden shows: the line, if it is the one of its group that holds the replacement."""
    replacement = block.meta.get("replacement_text")
    if not isinstance(replacement, str) or not replacement:
        return None
    return hidden_line(replacement, described_path(block) or block.path)


def _object(text: str | None) -> dict[str, Any] | None:
    """The JSON object that a text is; None for any other text."""
    try:
        payload = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    return payload if isinstance(payload, dict) else None


def _digest(block: Block) -> dict[str, Any] | None:
    """The digest that a meta block holds; None for any other block."""
    if block.type != "react.tool.result" or block.mime != "application/json" or not block.path.startswith("tc:"):
        return None
    return _safe_digest(block.text)


def _safe_digest(text: str | None) -> dict[str, Any] | None:
    payload = _object(text)
    if payload is None or not isinstance(payload.get("artifact_path"), str):
        return None
    return {name: value for name, value in payload.items() if name not in HOSTING_FIELDS}


def _head(block: Block, part: str, tool: str) -> Head:
    """The line above a result; the tool is unknown if its call is not there."""
    return head(HeadName.TOOL_RESULT, str(block.call_id), f".{part} {tool}".rstrip())


def _summary(tool: str, block: Block, digest: dict[str, Any]) -> list[str]:
    """The summary of a tool that gives no report of its own: what it made."""
    verdict = visible_line(f"error: {digest['error']}") if digest.get("error") else "ok"
    path = digest.get("physical_path") or digest["artifact_path"]
    return [_head(block, "summary", tool), _path_line(block.path), verdict, visible_line(f"- {path}"), ""]


def _artifact(tool: str, block: Block, digest: dict[str, Any]) -> list[str]:
    # A digest of the call's own result comes with the payload; any other is an artifact's.
    kind = "result" if digest["artifact_path"].startswith("tc:") else "artifact"
    lines: list[str] = [_head(block, kind, tool), _path_line(digest["artifact_path"])]
    if "physical_path" in digest:
        lines.append(head(HeadName.PHYSICAL_PATH, str(digest["physical_path"])))
    shown = format_digest_line(digest)
    return [*lines, shown] if shown else lines


def _digest_line(block: Block) -> str:
    """The digest of a block for which a summary stands, in one line: how its artifact is found again."""
    digest = _safe_digest(block.text) or {}
    path = str(digest.get("artifact_path", block.path))
    facts = [path, *_facts(digest, block.mime)]
    if path.startswith("tc:"):
        facts += [str(digest[name]) for name in ("tool_id",) if digest.get(name)]
        facts += [f"sources {', '.join(map(str, sids))}" for sids in [digest.get("sources_used")] if sids]
    else:
        facts += ["internal"] if digest.get("visibility") == "internal" else []
        facts += [str(digest[name]) for name in ("description", "error") if digest.get(name)]
    return visible_line(" | ".join(facts))


def _facts(digest: dict[str, Any], mime: str) -> list[str]:
    """Type, size and number of a file."""
    facts = [str(digest.get("mime", mime))]
    if isinstance(digest.get("size_bytes"), int):
        facts.append(f"{digest['size_bytes']} bytes")
    if isinstance(digest.get("sid"), int):
        facts.append(f"sid {digest['sid']}")
    return facts


def _content(placed: PlacedBlock) -> list[str]:
    block = placed.block
    if block.text is not None:
        return [block.text]
    if not placed.base64_chars:
        return []
    return [picture_line(block.mime, placed.base64_chars)]


def _notes(placed: PlacedBlock) -> list[str]:
    return [Head(f"{head(HeadName.AGENT)}: {escape_heads(placed.block.text or '')}")]


def _message(name: str) -> Callable[[PlacedBlock], list[str]]:
    def shown(placed: PlacedBlock) -> list[str]:
        block = placed.block
        path = [_path_line(block.path)] if block.path else []
        return [head(name), *path, *_content(placed)]

    return shown


def _attachment_meta(placed: PlacedBlock) -> list[str]:
    block = placed.block
    digest = _safe_digest(block.text) or {}
    path = str(digest.get("artifact_path", block.path))
    facts = " | ".join([path.rpartition("/")[2], *_facts(digest, block.mime)])
    lines: list[str] = [head(HeadName.USER_ATTACHMENT, after=f" {facts}")]
    if digest.get("description"):
        lines.append(visible_line(f"summary: {digest['description']}"))
    lines.append(_path_line(path))
    if digest.get("physical_path"):
        lines.append(head(HeadName.PHYSICAL_PATH, str(digest["physical_path"])))
    return lines


def is_open_plan(block: Block) -> bool:
    """Whether a block is the snapshot of a plan with a step that is neither done nor failed."""
    plan = _object(block.text) if block.type == PLAN else None
    if plan is None or not isinstance(plan.get("steps"), list):
        return False
    status = plan.get("status")
    found = status if isinstance(status, dict) else {}
    return any(found.get(str(number)) not in ("done", "failed") for number in range(1, len(plan["steps"]) + 1))


def _plan(placed: PlacedBlock) -> list[str]:
    block = placed.block
    try:
        plan = json.loads(block.text or "")
        status = plan.get("status") or {}
        steps = [
            f"{_sign(status.get(str(number)))} {number}) {' '.join(str(step).split())}"
            for number, step in enumerate(plan["steps"], start=1)
        ]
        return [head(HeadName.PLAN), f"id={plan.get('plan_id') or _plan_id(block.path)}", *steps]
    except (ValueError, TypeError, KeyError, AttributeError):
        return [head(HeadName.PLAN), block.text or ""]


def _sign(status: object) -> str:
    return STEP_SIGNS.get(str(status), STEP_SIGNS["pending"])


def _plan_id(path: str) -> str:
    try:
        parsed = parse(path)
    except UnsafePathError:
        return path
    return parsed.item_id if isinstance(parsed, TurnPath) else path


def _note(placed: PlacedBlock) -> list[str]:
    return [head(placed.block.type, after=" (internal)"), head(HeadName.INTERNAL_NOTE), placed.block.text or ""]


def _nothing(_: PlacedBlock) -> list[str]:
    return []


_PARTS: dict[str, Callable[[PlacedBlock], list[str]]] = {
    "turn.header": _nothing,  # the first block of a turn marks where it begins
    "user.prompt": _message(HeadName.USER_MESSAGE),
    "user.attachment.meta": _attachment_meta,
    "user.attachment": _content,
    "assistant.completion": _message(HeadName.ASSISTANT_MESSAGE),
    "react.completion": _message(HeadName.ASSISTANT_MESSAGE),
    "conv.range.summary": _message(HeadName.SUMMARY),
    "react.note": _note,
    "react.notes": _notes,
}
