"""Settings as people write them in YAML: front matter, and Marp's comments."""

import re
from typing import Any

import yaml

CHARACTERS_MAX = 20_000
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
"""Marp's directives: a comment with any other word before a colon is what the speaker says."""
_BARE = re.compile(
    r"^(\s*[\w-]+\s*:[ \t]+)((?:#[0-9a-fA-F]{3,8}|[*!&%@`][^\n]*?|url\([^\n]*?|[\w-]+-gradient\([^\n]*?))[ \t]*$",
    re.MULTILINE,
)
_LINE = re.compile(r"^([\w-]+)\s*:[ \t]*(\S[^\n]*)$", re.MULTILINE)


def read_settings(text: str) -> dict[str, Any]:
    """A mapping of YAML.

    What YAML would take for a comment, an alias or a tag, and no author means as such (``color: #123456``,
    ``header: **Report**``), is read as text. Of what isn't YAML at all the lines of ``key: value`` are read.

    Returns:
        An empty mapping if there is nothing of the kind.
    """
    if len(text) > CHARACTERS_MAX:
        return {}
    quoted = _BARE.sub(lambda match: match[1] + "'" + match[2].replace("'", "''") + "'", text)
    try:
        value = yaml.safe_load(quoted)
    except (yaml.YAMLError, ValueError, RecursionError, TypeError):
        value = {match[1]: match[2].strip() for match in _LINE.finditer(text)}
    return {str(key): value[key] for key in value} if isinstance(value, dict) else {}
