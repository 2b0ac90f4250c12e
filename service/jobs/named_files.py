"""Which files of a conversation a document names, in any of the ways to write a name."""

import html
import re
import unicodedata
from collections.abc import Iterable
from urllib.parse import unquote

_WORD = re.compile(r"[A-Za-z0-9]+")  # scripts without blanks between words have no words here
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


def names_in(text: str, names: Iterable[str], folder: str = "") -> list[str]:
    """Those names that a text has: as it stands, percent-encoded, with HTML entities, or escaped as in Markdown.

    Blocking. A name that a sentence happens to have counts, too: it is better to have a file than to miss it.

    Args:
        text: a document.
        names: paths below ``files/``.
        folder: the folder of the document below ``files/``; what lies below it may be named from there.
    """
    text = unicodedata.normalize("NFC", text)
    spellings = dict.fromkeys((text, unquote(text), html.unescape(text), _ESCAPED.sub(r"\1", text)))
    words = {word for spelling in spellings for word in _WORD.findall(spelling)}
    prefix = f"{folder}/" if folder else ""
    # Most names have a word that the text has not: the whole text is searched for few of them.
    return [
        name
        for name, below in ((name, name.removeprefix(prefix)) for name in names)
        if words.issuperset(_WORD.findall(below)) and any(below in spelling for spelling in spellings)
    ]
