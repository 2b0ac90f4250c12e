"""The files below a document's folder that the document refers to."""

import html
import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from proofbox.cli.shared.inputs import read_bytes

_MARKDOWN = re.compile(r"\]\(\s*(?:<([^<>\n]+)>|((?:[^()\n]|\([^()\n]*\))+))")
_DEFINITION = re.compile(r"(?m)^ {0,3}\[[^\]\n]+\]:\s*(?:<([^<>\n]+)>|(\S+))")
_ATTRIBUTE = re.compile(
    r"""(?i)\b(?:src|href|poster|background|data-background(?:-image)?)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))"""
)
_SRCSET = re.compile(r"""(?i)\bsrcset\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_CSS = re.compile(r"""(?i)(?:\burl\(\s*|@import\s+)(?:"([^"]*)"|'([^']*)'|([^\s"')]+))""")
_FIELD = re.compile(  # of a title block or a theme, in YAML, JSON or TOML
    r"""(?mi)(?:^|[{,])[ \t]*["']?(?:logo|theme|template|css|stylesheet|image|background|backgroundImage)["']?"""
    r"""\s*[:=][ \t]*(?:"([^"\n]*)"|'([^'\n]*)'|([^\s"',}#][^"',}#\n]*))"""
)
_PATTERNS = (_MARKDOWN, _DEFINITION, _ATTRIBUTE, _CSS, _FIELD)
_MARKDOWN_TITLE = re.compile(r"""\s+["'(=].*\Z""", re.DOTALL)
_PATH_PARAMS = frozenset({"theme", "template", "merge", "logo"})
_BUILT_IN_THEMES = frozenset({"plain", "dark", "brand", "paper"})
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_WITH_REFERENCES = frozenset(
    {".md", ".markdown", ".html", ".htm", ".css", ".svg", ".yaml", ".yml", ".json", ".toml"}
)


def referenced_files(source: Path, text: str, params: Mapping[str, Any]) -> dict[str, Path]:
    """The files that a document, its parameters and its style sheets refer to, by their paths below its folder.

    A reference that is not to a file there is left to the renderer, which warns of it. Hidden files, and files
    outside of the folder, are never among them.

    Args:
        source: the document.
        text: its content.
        params: parameters of the tool, such as ``theme``.
    """
    folder = source.parent
    found: dict[str, Path] = {}
    pending = [("", reference) for reference in (*_references(text), *_references_of_params(params))]
    while pending:
        base, reference = pending.pop()
        for rel in _candidates(base, reference):
            if rel in found or (path := _file_below(folder, rel)) is None or path == source:
                continue
            found[rel] = path
            if path.suffix.lower() in _WITH_REFERENCES:
                nested = read_bytes(path, "IN").decode("utf-8", errors="replace")
                pending += [(posixpath.dirname(rel), each) for each in _references(nested)]
    return dict(sorted(found.items()))


def _references(text: str) -> Iterator[str]:
    """The references of a Markdown, HTML, CSS or theme text, as they are written."""
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            yield next(group for group in (*match.groups(), "") if group is not None)
    for match in _SRCSET.finditer(text):
        for candidate in (match[1] or match[2] or "").split(","):
            yield candidate.strip().partition(" ")[0]


def _references_of_params(value: Any, name: str = "") -> Iterator[str]:
    """The references of parameters: values that are paths, and texts with references, such as ``css``."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _references_of_params(item, str(key))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _references_of_params(item, name)
    elif isinstance(value, str):
        if name in _PATH_PARAMS and not (name == "theme" and value in _BUILT_IN_THEMES):
            yield value
        yield from _references(value)


def _candidates(base: str, reference: str) -> Iterator[str]:
    """The paths below the document's folder that a reference may mean."""
    text = html.unescape(reference).strip()
    for name in dict.fromkeys((text, _MARKDOWN_TITLE.sub("", text), re.split("[?#]", text, maxsplit=1)[0])):
        for spelling in dict.fromkeys((name, unquote(name))):
            if spelling and not spelling.startswith("/") and not _SCHEME.match(spelling):
                for folder in dict.fromkeys((base, "")):
                    yield posixpath.normpath(posixpath.join(folder, spelling))


def _file_below(folder: Path, rel: str) -> Path | None:
    """The regular file at a path below a folder; None if there is none that may be sent."""
    path = folder / rel
    try:
        root, real = folder.resolve(), path.resolve()
        is_below = real.is_relative_to(root)
        names = [*Path(rel).parts, *(real.relative_to(root).parts if is_below else ())]
        is_hidden = any(name.startswith(".") for name in names)
        return path if is_below and not is_hidden and path.is_file() else None
    except (OSError, ValueError):  # a name that is too long, has a NUL, or a loop of links
        return None
