"""A request from its JSON file."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from render.frontend.html import clean_text
from render.model import Metadata, RenderError, RenderRequest, Source

OUTPUTS = ("pdf", "png", "docx", "pptx", "xlsx")
SOURCE_FORMATS = ("markdown", "html", "mermaid", "svg", "csv")
REQUEST_BYTES_MAX = 80_000_000
METADATA_CHARACTERS_MAX = 1_000
"""Of a title, an author and so on; more is cut off. A deck shows them on its first slide."""
KEYWORDS_MAX = 50
SOURCE_TITLE_CHARACTERS_MAX = 500
"""More is cut off: a list of sources names pages, it does not quote them."""
LINK_CHARACTERS_MAX = 2_000
"""A source with a longer address has no link: Word opens no file with a link of more than 2,083 characters."""


def read_request(path: str) -> RenderRequest:
    """Reads a request.

    Raises:
        RenderError: ``invalid_request``, naming the field.
    """
    try:
        file = Path(path)
        if file.stat().st_size > REQUEST_BYTES_MAX:
            raise RenderError("invalid_request", f"The request has more than {REQUEST_BYTES_MAX:,} bytes.")
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as exc:
        raise RenderError("invalid_request", f"The request cannot be read: {str(exc)[:200]}") from exc
    if not isinstance(value, dict):
        raise RenderError("invalid_request", "The request is not an object.")
    return request_of(value)


def request_of(value: dict[str, Any]) -> RenderRequest:
    """A request from its fields, with `sources` and `metadata` as objects.

    Raises:
        RenderError: ``invalid_request``, naming the field.
    """
    unknown = set(value) - {field.name for field in fields(RenderRequest)}
    if unknown:
        raise RenderError("invalid_request", f"Unknown fields: {', '.join(sorted(map(str, unknown)))[:200]}.")
    for name in ("content", "root", "target"):
        if not isinstance(value.get(name), str):
            raise RenderError("invalid_request", f"{name} has to be a text.")
    if value.get("output") not in OUTPUTS or value.get("source_format") not in SOURCE_FORMATS:
        raise RenderError("invalid_request", f"output is one of {OUTPUTS}, source_format one of {SOURCE_FORMATS}.")
    parts = value["target"].split("/")
    if ".." in parts or "" in parts or "\0" in value["target"]:
        raise RenderError("invalid_request", "target is a path below the output folder.")
    try:
        value = {name: value[name] if name == "content" else _clean(value[name]) for name in value}
        return RenderRequest(
            output=value["output"],
            source_format=value["source_format"],
            content=value["content"],
            root=value["root"],
            target=value["target"],
            metadata=_metadata(value.get("metadata") or {}),
            theme=str(value.get("theme") or "plain"),
            sources=tuple(_source(row) for row in value.get("sources") or ()),
            missing=tuple(map(str, value.get("missing") or ())),
            names={str(name): str(path) for name, path in (value.get("names") or {}).items()},
            encodings={str(path): str(name) for path, name in (value.get("encodings") or {}).items()},
            options=dict(value.get("options") or {}),
            strict=bool(value.get("strict")),
        )
    except (TypeError, ValueError, AttributeError, KeyError, RecursionError) as exc:
        raise RenderError("invalid_request", f"A field is not what it should be: {exc}"[:200]) from exc


def _clean(value: Any) -> Any:
    """A value whose texts have no characters that files cannot hold."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return {name: _clean(value[name]) for name in value} if isinstance(value, dict) else value


def _metadata(value: dict[str, Any]) -> Metadata:
    texts = {
        field.name: str(value[field.name])[:METADATA_CHARACTERS_MAX]
        for field in fields(Metadata)
        if value.get(field.name) and field.name != "keywords"
    }
    words = value.get("keywords") or ()
    rows = words.split(",") if isinstance(words, str) else [str(word) for word in words]
    keywords = [row.strip()[:METADATA_CHARACTERS_MAX] for row in rows if row.strip()]
    return Metadata(**texts, keywords=tuple(keywords[:KEYWORDS_MAX]))


def _source(row: dict[str, Any]) -> Source:
    path = row.get("path") or row.get("physical_path")
    title, url = str(row.get("title") or ""), str(row.get("url") or "")
    if len(title) > SOURCE_TITLE_CHARACTERS_MAX:
        title = f"{title[:SOURCE_TITLE_CHARACTERS_MAX]}\u2026"
    return Source(int(row["sid"]), title, url if 0 < len(url) <= LINK_CHARACTERS_MAX else None, path or None)
