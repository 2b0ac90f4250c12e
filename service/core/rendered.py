"""The rendered view of blocks: what a model reads. Hosting fields never appear in it."""

import json
from collections.abc import Iterable
from typing import Any

from contracts.blocks import Block

# A loop's own timeline may hold meta blocks that another program wrote.
_HOSTING = frozenset({"hosted_uri", "rn", "key"})


def rendered(blocks: Iterable[Block]) -> str:
    """The text of the blocks of calls, as a model reads them; byte-stable for the same blocks."""
    tools: dict[str, str] = {}
    digests: dict[tuple[str | None, str], dict[str, Any]] = {}
    parts: list[str] = []
    for block in blocks:
        if block.type == "react.tool.call":
            tools[block.call_id or ""] = str(json.loads(block.text or "{}").get("tool_id", ""))
        digest = _digest(block)
        if digest is not None:
            digests[block.call_id, digest["artifact_path"]] = digest
            continue
        parts.append(_part(block, tools.get(block.call_id or "", ""), digests))
    return "\n\n".join(parts) + "\n"


def _digest(block: Block) -> dict[str, Any] | None:
    """The digest that a meta block holds; None for any other block."""
    if block.type != "react.tool.result" or block.mime != "application/json" or not block.path.startswith("tc:"):
        return None
    try:
        payload = json.loads(block.text or "")
    except ValueError:
        return None
    if not isinstance(payload, dict) or not isinstance(payload.get("artifact_path"), str):
        return None
    return {name: value for name, value in payload.items() if name not in _HOSTING}


def _part(block: Block, tool_id: str, digests: dict[tuple[str | None, str], dict[str, Any]]) -> str:
    head = f"[TOOL RESULT {block.call_id}]"
    if block.type == "react.notes":
        return f"[AI Agent say]: {block.text}"
    if block.type == "react.notice":
        return f"[react.notice]\n[path: {block.path}]\n{block.text}"
    if block.type == "react.tool.code":
        return f"[react.tool.code]\n[path: {block.path}]\n{block.text}"
    if block.type == "react.tool.call":
        return f"[TOOL CALL {block.call_id}].call {tool_id}\n[path: {block.path}]\n{block.text}"
    if not block.path.startswith("fi:"):
        return f"{head}.summary {tool_id}\n[path: {block.path}]\n{block.text}"
    digest = digests.get((block.call_id, block.path), {})
    lines = [f"{head}.artifact {tool_id}", f"[path: {block.path}]"]
    if "physical_path" in digest:
        lines.append(f"[physical_path: {digest['physical_path']}]")
    lines.append(json.dumps(digest, ensure_ascii=False))
    if block.text is not None:
        lines.append(block.text)
    elif block.base64 is not None:
        tag = "image" if block.mime.startswith("image/") else "document"
        lines.append(f"<{tag} media_type={block.mime} b64_len={len(block.base64)}>")
    return "\n".join(lines)
