"""The words of an engine or a server for anybody to read: one bounded line without secrets or paths of the host."""

import re

CAUSE_CHARS_MAX = 300
_HIDDEN = "…"
_URL_LOGIN = re.compile(r"(?<=://)[^\s/@]+@")
_SECRET = re.compile(
    r"(?i)\b((?:pass(?:word|wd)?|secret|token|credentials?|authorization|api[_-]?key|access[_-]?key)\w*[\"']?)"
    r"(\s*[=:]\s*)[\"']?(?:(?:bearer|basic)\s+)?[^\s\"',;&]+"
)
_QUOTED_PATH = re.compile(r"([\"'`])(?:\w+://)?/.*?\1")
_PATH = re.compile(r"\b(?:unix|file|npipe)://\S+|(?<![\w/])/(?!/)[^\s\"'`,;:)\]}>]+")
_OPAQUE = re.compile(r"(?<![\w-])[A-Za-z0-9+/_=-]{32,}(?![\w-])")  # ids of containers too, which say nothing


def public_cause(text: str | bytes) -> str:
    """Return the end of a text, which has the innermost cause, without what is nobody's business."""
    line = text.decode(errors="replace") if isinstance(text, bytes) else text
    line = " ".join("".join(c if c.isprintable() else " " for c in line).split())
    line = _URL_LOGIN.sub(f"{_HIDDEN}@", line)
    line = _PATH.sub(_HIDDEN, _QUOTED_PATH.sub(_HIDDEN, line))
    line = _SECRET.sub(rf"\1\2{_HIDDEN}", line)
    line = _OPAQUE.sub(_HIDDEN, line)
    return line if len(line) <= CAUSE_CHARS_MAX else f"{_HIDDEN} {line[2 - CAUSE_CHARS_MAX :]}"
