"""Which files of a conversation a document names, in any of the ways to write a name."""

import html
import re
import unicodedata
from collections.abc import Iterable
from urllib.parse import unquote

_WORD = re.compile(r"[A-Za-z0-9]+")  # scripts without blanks between words have no words here
_EXPLICIT = re.compile(r"(?:fi:)?turn_[A-Za-z0-9_.-]+?(?:/files/|/attachments/|\.files/|\.user\.attachments/)")
_NO_NAME = "\x00"  # in place of what makes a path explicit
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


def names_in(text: str, names: Iterable[str], turn_id: str, folder: str = "") -> list[str]:
    """Those names that a text has: as it stands, percent-encoded, with HTML entities, or escaped as in Markdown.

    Blocking. A path of another turn or of attachments is no name. A name that a sentence happens to have counts: it
    is better to have a file than to miss it.

    Args:
        text: a document.
        names: paths below ``files/``.
        turn_id: the turn of the document, whose files its paths name.
        folder: the folder of the document below ``files/``; what lies below it may be named from there.
    """
    own = {f"{turn_id}/files/", f"fi:{turn_id}.files/"}
    text = unicodedata.normalize("NFC", text)
    spellings = {
        _EXPLICIT.sub(lambda found: "" if found[0] in own else _NO_NAME, spelling)
        for spelling in (text, unquote(text), html.unescape(text), _ESCAPED.sub(r"\1", text))
    }
    words = {word for spelling in spellings for word in _WORD.findall(spelling)}
    prefix = f"{folder}/" if folder else ""
    # Most names have a word that the text has not: the whole text is searched for few of them.
    return [
        name
        for name, below in ((name, name.removeprefix(prefix)) for name in names)
        if words.issuperset(_WORD.findall(below)) and any(_has(spelling, below) for spelling in spellings)
    ]


def _has(text: str, name: str) -> bool:
    """Whether a name stands in a text, and not within a longer word."""
    return (
        re.search(rf"(?<![A-Za-z0-9_{_NO_NAME}]){re.escape(name)}(?![A-Za-z0-9_]|\.[A-Za-z0-9])", text) is not None
    )
