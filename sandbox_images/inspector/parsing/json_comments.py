"""JSON with comments and trailing commas, as the settings of TypeScript, VS Code and others are written."""

from __future__ import annotations

import fnmatch
import re

_NAMES = (
    *("*.jsonc", "*.code-workspace", "tsconfig*.json", "jsconfig*.json", "tslint.json", ".eslintrc.json"),
    *(".babelrc.json", "babel.config.json", "devcontainer.json", ".devcontainer.json", "api-extractor.json"),
    *("turbo.json", "nx.json", "deno.json", "biome.json", ".swcrc.json", ".jshintrc.json"),
)
"""Names of files that their programs read so."""
_FOLDERS = (".vscode", ".devcontainer")

_STRINGS_AND_COMMENTS = re.compile(r'"(?:[^"\\]|\\.)*+"?|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_STRINGS_AND_LAST_COMMAS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{,]\s*+,|,(?=\s*+[\]}])', re.DOTALL)
_SHORTEST = len("/**/")
_NOT_A_LINE_FEED = re.compile(r"[^\n]")


def takes_comments(path: str) -> bool:
    """Return whether the program that reads a file of this name takes comments in it."""
    *folders, name = path.lower().split("/")
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in _NAMES) or folders[-1:] in [[f] for f in _FOLDERS]


def without_comments(text: str) -> str:
    """Return the text as plain JSON: spaces in place of comments and of trailing commas, so that places hold."""
    text = text.removeprefix("\ufeff")
    text = _STRINGS_AND_COMMENTS.sub(_without_comment, text)
    return _STRINGS_AND_LAST_COMMAS.sub(lambda found: " " if found[0] == "," else found[0], text)


def _without_comment(found: re.Match[str]) -> str:
    is_comment = found[0].startswith("//") or (found[0].endswith("*/") and len(found[0]) >= _SHORTEST)
    return _NOT_A_LINE_FEED.sub(" ", found[0]) if is_comment and found[0].startswith("/") else found[0]
