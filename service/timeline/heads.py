r"""The heads of the rendered view, and the escape that keeps any other text from looking like one.

A text that a view carries - a file, a page, what a program printed, a message - may hold the line
``[USER MESSAGE]``. `escape_heads` puts a backslash before each line that reads as a head, whatever it is made of:
behind blanks and marks of Markdown, with characters that nobody sees, in letters and brackets of other alphabets,
after a line end of any kind or a terminal's escape sequence. Texts that hold no such line stay as they are.
"""

# ruff: noqa: RUF001 - letters that look alike are what this is about

import re
import unicodedata
from enum import StrEnum

from proofbox.contracts.timeline import CORE_TYPES
from proofbox.service.visible_text import is_hidden, visible_line


class HeadName(StrEnum):
    """How the heads of the view begin, behind the bracket; blocks of other types begin with their type."""

    TURN = "TURN"
    USER_MESSAGE = "USER MESSAGE"
    USER_ATTACHMENT = "USER ATTACHMENT"
    ASSISTANT_MESSAGE = "ASSISTANT MESSAGE"
    SUMMARY = "SUMMARY OF EARLIER TURNS"
    AGENT = "AI Agent say"
    TOOL_RESULT = "TOOL RESULT"
    PLAN = "REACT.PLAN"
    PLAN_ACK = "REACT.PLAN.ACK"
    INTERNAL_NOTE = "INTERNAL NOTE"
    PATH = "path:"
    PHYSICAL_PATH = "physical_path:"


class PlaceName(StrEnum):
    """Lines without a bracket that stand in place of blocks."""

    HIDDEN = "HIDDEN"
    DELETED = "DELETED"
    IMAGE = "image"
    DOCUMENT = "document"


class Head(str):
    """A line that the view writes itself: it is never escaped."""

    __slots__ = ()


def head(name: str, inner: str = "", after: str = "") -> Head:
    """The line ``[<name> <inner>]<after>``; ``name`` is a `HeadName` or the type of a block."""
    return Head(visible_line(f"[{name} {inner}]{after}" if inner else f"[{name}]{after}"))


def place_line(name: PlaceName, text: str) -> Head:
    """A line in place of hidden or deleted blocks."""
    return Head(visible_line(f"{name} — {' '.join(text.split())}"))


def picture_line(mime: str, base64_chars: int) -> Head:
    """The line in place of an image or a document."""
    name = PlaceName.IMAGE if mime.startswith("image/") else PlaceName.DOCUMENT
    return Head(visible_line(f"<{name} media_type={mime} b64_len={base64_chars}>"))


def escape_heads(text: str) -> str:
    """A text with a backslash before what would read as a head of the view at the beginning of a line."""
    text = _AT_LINE.sub(_escape, text)
    return _AFTER_SEQUENCE.sub(_escape, text) if "\x1b" in text or "\x9b" in text else text


_BRACKETS = "[［【〔〖〘〚⟦⟬⟨⟪⁅❲❨❪❬❮❰⦋⦍⦏⦗⌈⌊⎡⎢⎣︗︹︻﹇﹝⸢⸤⹕⹗⹙⹛「『｢﹁﹃〈《︽︿‹«\U000e005b"
_ANGLES = "<＜﹤\U000e003c"
_ALIKE = {
    "A": "АΑᎪᴀ", "B": "ВΒᏴʙ", "C": "СϹᏟᴄ", "D": "ᎠᴅĐ", "E": "ЕΕᎬᴇ", "G": "ԌᏀɢ", "H": "НΗᎻʜĦ", "I": "ІΙӀᎥɪ",
    "L": "ᏞʟԼŁ", "M": "МΜᎷᴍ", "N": "ΝɴͶ", "O": "ОΟՕᴏØ", "P": "РΡᏢᴘ", "R": "ᏒʀƦ", "S": "ЅᏚՏꜱ", "T": "ТΤᎢᴛŦ",
    "U": "ՍᏌᴜ", "Y": "УΥҮʏ", "a": "аαɑ", "c": "сϲ", "d": "ԁđ", "e": "еεҽ", "g": "ɡց", "h": "һհħ", "i": "іιıɩ",
    "l": "ӏłꞁ", "m": "м", "n": "ոηпᴨ", "o": "оοօøσ", "p": "рρ", "r": "гᴦ", "s": "ѕꜱ", "t": "тτŧ", "u": "υսʋ",
    "y": "уγүʏ", ":": "∶꞉ː׃⁚", "—": "–―⸺⸻─━", "_": "＿ˍ",
}  # fmt: skip
_LOOKS_LIKE = {ord(other): letter for letter, others in _ALIKE.items() for other in others}
# Letters in squares and circles that Unicode does not decompose, and the tags, which models read as ASCII.
_RUNS = ((0x1F150, 26, "A"), (0x1F170, 26, "A"), (0x1F1E6, 26, "A"), (0xE0020, 95, " "))


class _Letters(dict[int, str]):
    """What `str.translate` puts in place of a character: the ASCII that it looks like, a blank for a hidden one."""

    def __missing__(self, code: int) -> str:
        self[code] = shown = _look(code)
        return shown


def _look(code: int) -> str:
    for first, count, letter in _RUNS:
        if first <= code < first + count:
            return chr(ord(letter) + code - first)
    parts = unicodedata.normalize("NFKD", chr(code))
    return "".join(" " if _is_unseen(part) else _LOOKS_LIKE.get(ord(part), part) for part in parts)


def _is_unseen(character: str) -> bool:
    return is_hidden(character) or unicodedata.category(character).startswith("M")


_LETTERS = _Letters()
# Blanks and signs that may stand between the letters of a head.
_GAP = r"""[^\w"'\\]*+"""


def _spaced(words: str) -> str:
    return _GAP.join(letter for letter in words if letter.isalnum())


def _pattern(words: str) -> str:
    if words == HeadName.TURN:
        return rf"{_spaced(words)}(?:{_GAP}{_spaced('turn')}|\W+\w*\d|[^\]]*\]\W*ts\s*=)"
    return _spaced(words) + (r"\s*:" if words.endswith(":") else r"(?!\w)")


_HEAD = re.compile(
    rf"\W{_GAP}(?:{'|'.join(_pattern(words) for words in (*HeadName, *sorted(CORE_TYPES)))})"
    rf"|\W{_GAP}(?:{_spaced(PlaceName.IMAGE)}|{_spaced(PlaceName.DOCUMENT)}){_GAP}{_spaced('media_type')}"
    rf"|(?:\W{_GAP})?(?-i:{_spaced(PlaceName.HIDDEN)}|{_spaced(PlaceName.DELETED)})\s*—",
    re.IGNORECASE,
)
_SEARCHED_CHARS = 500
"""How far behind a bracket a head is searched: characters that nobody sees may stand in it."""
# Control characters but for the tab: after a CR, a terminal begins anew, and so may a reader.
_BREAK = r"\x00-\x08\n-\x1f\x7f-\x9f\u2028\u2029"
_BLANK_LETTERS = "\u115f\u1160\u3164\uffa0"
_OPENERS = re.escape(_BRACKETS + _ANGLES)
# A quotation mark shows that it is a quotation, a backslash that it is escaped.
_BEFORE = rf"""(?:[^\w"'\\{_OPENERS}{_BREAK}]|[_{_BLANK_LETTERS}])*+"""
_SEEN = rf"(?P<seen>[{_OPENERS}HDＨＤ{_ALIKE['H']}{_ALIKE['D']}\U0001d400-\U0001d7ff])"
_AT_LINE = re.compile(rf"(?:\A|[{_BREAK}]){_BEFORE}{_SEEN}")
_AFTER_SEQUENCE = re.compile(rf"(?:(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b[ -/]+[0-~]|\x1b[0-Z\\-~]){_BEFORE}{_SEEN}")
_LINE_END = re.compile(r"[\n\r\u2028\u2029\x85]")


def _escape(found: re.Match[str]) -> str:
    at = found.start("seen")
    line = _LINE_END.split(found.string[at : at + _SEARCHED_CHARS], 1)[0]
    shown = line if line.isascii() else line.translate(_LETTERS)
    is_head = _HEAD.match(shown.replace("_", " "))
    return f"{found[0][:-1]}\\{found['seen']}" if is_head else found[0]
