"""The rendered view of blocks: what a model reads. Hosting fields never appear in it.

Each block becomes one part of the text, from what stands before it and never from what comes after: so the text of
a timeline that has grown begins with the text of before, and a prompt cache keeps hitting.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any

from contracts.blocks import Block
from contracts.logical import TurnPath, parse
from contracts.paths import UnsafePathError
from service.core.discovery import HOSTING_FIELDS
from service.core.store_ports import PlacedBlock, described_path, spelled

STEP_SIGNS = {"done": "✓", "in_progress": "…", "pending": "□", "failed": "✗"}
"""How far a step of a plan is, for the eye."""
# Tools whose own result is a report of the files that they made; the result of any other tool is its payload.
_FILE_TOOLS = ("exec_tools.", "rendering_tools.", "react.write", "react.stream", "react.file", "react.patch")


def rendered(blocks: Iterable[Block]) -> str:
    """The text of the blocks of a call, as a model reads them; byte-stable for the same blocks."""
    view = RenderedView()
    placed = (PlacedBlock(0, block, len(block.base64 or "")) for block in blocks)
    return "".join(view.part(item) for item in placed)


def hidden_line(replacement: str, path: str) -> str:
    """What stands in place of hidden blocks, on one line."""
    return f"HIDDEN — {' '.join(replacement.split())}. Retrieve with react.read({path})"


class RenderedView:
    """Turns the blocks of a timeline into text, one after the other.

    Args:
        turns: whether a line says where a turn begins.
        begins: whether the first block is the timeline's first.
    """

    def __init__(self, *, turns: bool = False, begins: bool = True) -> None:
        self._turns = turns
        self._is_empty = begins
        self._turn: str | None = None
        self._call: str | None = None
        self._tool = ""
        self._has_summary = False
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

    def covered(self, placed: PlacedBlock) -> str:
        """The next block, for which a summary stands: the digest of an artifact stays, all else goes."""
        self.skip_covered()
        return "" if described_path(placed.block) is None else self._told(_kept(placed))

    def skip_covered(self) -> None:
        """Blocks for which a summary stands come next, and are not read."""
        self._forget_call()
        self._turn = None

    def summary(self, placed: PlacedBlock) -> str:
        """A summary in the place of its turns."""
        self._forget_call()
        return self._told(_PARTS[placed.block.type](placed))

    def hidden_summary(self, line: str | None) -> str:
        """A summary that is hidden itself: the line in place of its group, or nothing if that was shown."""
        self._forget_call()
        return self._told([] if line is None else [line])

    def pass_summary(self) -> str:
        """The next block is a summary; it stands in another place, so nothing is shown here."""
        self._forget_call()
        return ""

    def _forget_call(self) -> None:
        self._call = None
        self._tool = ""
        self._has_summary = False
        self._described = None

    def _enter_call(self, block: Block) -> None:
        if block.call_id != self._call:
            self._forget_call()
            self._call = block.call_id
        if block.type == "react.tool.call":
            self._tool = _tool_of(block)

    def _continues(self, block: Block) -> bool:
        """Whether the block is the content of the artifact whose digest was just shown."""
        return block.type == "react.tool.result" and block.path == self._described and _digest(block) is None

    def _in_turn(self, block: Block, lines: list[str], *, continues: bool = False) -> str:
        if self._turns and block.turn_id != self._turn:
            lines = [f"[TURN {block.turn_id}] ts={block.ts}", *([""] if lines else []), *lines]
        self._turn = block.turn_id
        return self._told(lines, continues=continues)

    def _told(self, lines: list[str], *, continues: bool = False) -> str:
        if not lines:
            return ""
        gap = "" if continues or self._is_empty else "\n"
        self._is_empty = False
        return gap + "\n".join(lines) + "\n"

    def _lines(self, placed: PlacedBlock) -> list[str]:
        block = placed.block
        self._described = None
        if block.type != "react.tool.result":
            return _PARTS.get(block.type, _message(block.type))(placed)
        digest = _digest(block)
        if digest is not None:
            tells_of_file = not digest["artifact_path"].startswith("tc:")
            summary = _summary(self._tool, block, digest) if tells_of_file and not self._has_summary else []
            self._has_summary = True
            self._described = spelled(digest["artifact_path"])
            return [*summary, *_artifact(self._tool, block, digest)]
        if not block.path.startswith("tc:"):
            return [_head(block, "artifact", self._tool), f"[path: {block.path}]", *_content(placed)]
        self._has_summary = True
        kind = "summary" if self._tool.startswith(_FILE_TOOLS) else "result"
        return [_head(block, kind, self._tool), f"[path: {block.path}]", *_content(placed)]


def own_line(block: Block) -> str | None:
    """What a block that came hidden shows: the line, if it is the one of its group that holds the replacement."""
    replacement = block.meta.get("replacement_text")
    if not isinstance(replacement, str) or not replacement:
        return None
    return hidden_line(replacement, described_path(block) or block.path)


def _tool_of(block: Block) -> str:
    try:
        payload = json.loads(block.text or "{}")
    except ValueError:
        return ""
    return str(payload.get("tool_id", "")) if isinstance(payload, dict) else ""


def _digest(block: Block) -> dict[str, Any] | None:
    """The digest that a meta block holds; None for any other block."""
    if block.type != "react.tool.result" or block.mime != "application/json" or not block.path.startswith("tc:"):
        return None
    return _safe_digest(block.text)


def _safe_digest(text: str | None) -> dict[str, Any] | None:
    try:
        payload = json.loads(text or "")
    except ValueError:
        return None
    if not isinstance(payload, dict) or not isinstance(payload.get("artifact_path"), str):
        return None
    return {name: value for name, value in payload.items() if name not in HOSTING_FIELDS}


def _head(block: Block, part: str, tool: str) -> str:
    """The line above a result; the tool is unknown if its call is not there."""
    return f"[TOOL RESULT {block.call_id}].{part} {tool}".rstrip()


def _summary(tool: str, block: Block, digest: dict[str, Any]) -> list[str]:
    """The summary of a tool that gives no report of its own: what it made."""
    verdict = f"error: {digest['error']}" if digest.get("error") else "ok"
    path = digest.get("physical_path") or digest["artifact_path"]
    return [_head(block, "summary", tool), f"[path: {block.path}]", verdict, f"- {path}", ""]


def _artifact(tool: str, block: Block, digest: dict[str, Any]) -> list[str]:
    # A digest of the call's own result comes with the payload; any other is an artifact's.
    kind = "result" if digest["artifact_path"].startswith("tc:") else "artifact"
    lines = [_head(block, kind, tool), f"[path: {digest['artifact_path']}]"]
    if "physical_path" in digest:
        lines.append(f"[physical_path: {digest['physical_path']}]")
    return [*lines, json.dumps(digest, ensure_ascii=False)]


def _kept(placed: PlacedBlock) -> list[str]:
    """The digest of a block for which a summary stands: how its artifact is found again."""
    digest = _digest(placed.block)
    if digest is None:
        return _attachment_meta(placed)
    return _artifact(str(digest.get("tool_id", "")), placed.block, digest)


def _content(placed: PlacedBlock) -> list[str]:
    block = placed.block
    if block.text is not None:
        return [block.text]
    if not placed.base64_chars:
        return []
    tag = "image" if block.mime.startswith("image/") else "document"
    return [f"<{tag} media_type={block.mime} b64_len={placed.base64_chars}>"]


def _call(placed: PlacedBlock) -> list[str]:
    return ["[react.tool.call] (JSON)", placed.block.text or ""]


def _notes(placed: PlacedBlock) -> list[str]:
    return [f"[AI Agent say]: {placed.block.text}"]


def _message(name: str) -> Callable[[PlacedBlock], list[str]]:
    def shown(placed: PlacedBlock) -> list[str]:
        block = placed.block
        path = [f"[path: {block.path}]"] if block.path else []
        return [f"[{name}]", *path, *_content(placed)]

    return shown


def _attachment_meta(placed: PlacedBlock) -> list[str]:
    block = placed.block
    digest = _safe_digest(block.text) or {}
    path = str(digest.get("artifact_path", block.path))
    lines = [f"[USER ATTACHMENT] {path.rpartition('/')[2]} | {digest.get('mime', block.mime)}"]
    if digest.get("description"):
        lines.append(f"summary: {digest['description']}")
    lines.append(f"[path: {path}]")
    if digest.get("physical_path"):
        lines.append(f"[physical_path: {digest['physical_path']}]")
    return lines


def _plan(placed: PlacedBlock) -> list[str]:
    block = placed.block
    try:
        plan = json.loads(block.text or "")
        status = plan.get("status") or {}
        steps = [
            f"{_sign(status.get(str(number)))} {number}) {' '.join(str(step).split())}"
            for number, step in enumerate(plan["steps"], start=1)
        ]
        return ["[REACT.PLAN]", f"id={plan.get('plan_id') or _plan_id(block.path)}", *steps]
    except (ValueError, TypeError, KeyError, AttributeError):
        return ["[REACT.PLAN]", block.text or ""]


def _sign(status: object) -> str:
    return STEP_SIGNS.get(str(status), STEP_SIGNS["pending"])


def _plan_id(path: str) -> str:
    try:
        parsed = parse(path)
    except UnsafePathError:
        return path
    return parsed.item_id if isinstance(parsed, TurnPath) else path


def _note(placed: PlacedBlock) -> list[str]:
    return ["[react.note] (internal)", "[INTERNAL NOTE]", placed.block.text or ""]


def _nothing(_: PlacedBlock) -> list[str]:
    return []


_PARTS: dict[str, Callable[[PlacedBlock], list[str]]] = {
    "turn.header": _nothing,  # where a turn begins is told by the first block of it
    "user.prompt": _message("USER MESSAGE"),
    "user.attachment.meta": _attachment_meta,
    "user.attachment": _content,
    "assistant.completion": _message("ASSISTANT MESSAGE"),
    "react.completion": _message("ASSISTANT MESSAGE"),
    "conv.range.summary": _message("SUMMARY OF EARLIER TURNS"),
    "react.tool.call": _call,
    "react.plan": _plan,
    "react.plan.ack": _message("REACT.PLAN.ACK"),
    "react.note": _note,
    "react.notes": _notes,
}
