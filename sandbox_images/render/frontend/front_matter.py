"""What a document writes in YAML: front matter, directives of a deck, charts."""

import json
import re
from typing import Any

import yaml

CHARACTERS_MAX = 20_000
BRACKETS_MAX = 1_000
"""Lists and mappings in brackets; the reader recurses into each that stands within another."""
MARP_KEYS = frozenset(
    {
        "theme",
        "style",
        "headingDivider",
        "size",
        "math",
        "title",
        "author",
        "description",
        "keywords",
        "url",
        "image",
    }
    | {"marp", "lang", "paginate", "header", "footer", "class", "color", "transition"}
    | {f"background{name}" for name in ("Color", "Image", "Position", "Repeat", "Size")}
)
"""Marp's directives: a comment with any other word before a colon is a speaker note."""
_BARE = re.compile(
    r"^(\s*[\w-]+\s*:[ \t]+)((?:#[0-9a-fA-F]{3,8}|[*!&%@`][^\n]*?|url\([^\n]*?|[\w-]+-gradient\([^\n]*?))[ \t]*$",
    re.MULTILINE,
)
_LINE = re.compile(r"^([\w-]+)\s*:[ \t]*(\S[^\n]*)$", re.MULTILINE)


class _PlainLoader(yaml.SafeLoader):
    """YAML without aliases: a few lines of them make a billion items, or one that holds itself."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not read")
        return super().compose_node(parent, index)


def read_yaml(text: str) -> Any:
    """The value of a YAML text.

    Raises:
        ValueError: it is none, has aliases, or has values that JSON has not.
    """
    try:
        value = yaml.load(text, Loader=_PlainLoader)  # noqa: S506 - a SafeLoader
        json.dumps(value, default=str)  # as it travels on; keys and numbers may be such that it cannot
    except (yaml.YAMLError, RecursionError, TypeError, OverflowError) as exc:
        raise ValueError(str(exc)[:200]) from exc
    return value


def read_settings(text: str) -> dict[str, Any]:
    """A mapping of YAML.

    What YAML would take for a comment, an alias or a tag, and no author means as such (``color: #123456``,
    ``header: **Report**``), is read as text. Of what isn't YAML at all the lines of ``key: value`` are read.

    Returns:
        An empty mapping if there is none.
    """
    settings = _mapping(text)
    return {match[1]: match[2].strip() for match in _LINE.finditer(text)} if settings is None else settings


def read_front_matter(text: str) -> dict[str, Any] | None:
    """What the lines between two rules set; None if they are no list of settings, so text of the document."""
    settings = _mapping(text)
    if settings is None:
        # Models write "title: One: two"; each line is a setting then.
        rows = [_LINE.fullmatch(line) for line in text.split("\n") if line.strip()]
        settings = {row[1]: row[2].strip(" '\"") for row in rows if row} if all(rows) else {}
    return settings or None


def _mapping(text: str) -> dict[str, Any] | None:
    """The mapping; empty if it is YAML of another kind, too long or too nested, None if it is no YAML."""
    if len(text) > CHARACTERS_MAX or text.count("[") + text.count("{") > BRACKETS_MAX:
        return {}
    quoted = _BARE.sub(lambda match: match[1] + "'" + match[2].replace("'", "''") + "'", text)
    try:
        value = read_yaml(quoted)
    except ValueError:
        return None
    return {str(key): value[key] for key in value} if isinstance(value, dict) else {}
