"""Finds what a text refers to: files of turns and citation tokens, in every spelling that models write.

A mention is a place in the text; what it means is only known against a store. So each one carries its possible
readings, the longest first, and the first one that exists is taken.
"""

import asyncio
import fnmatch
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from urllib.parse import unquote

from proofbox.contracts.logical_paths import parse_sid_ranges
from proofbox.contracts.paths import FilePath, Namespace, UnsafePathError, is_turn_id
from proofbox.service.artifacts.conversation_files import CallFiles
from proofbox.service.artifacts.found_file import ConversationFile
from proofbox.service.jobs.code_text import looks_for_files, runnable_text
from proofbox.service.jobs.inputs import InputRequest, JobInputs

_MENTION = re.compile(
    r"(?<![A-Za-z0-9_.-])(turn_[A-Za-z0-9_.-]+)/(files|attachments)(?![A-Za-z0-9_]|[.-]+[A-Za-z0-9_])(/?)"
)
# One run of characters between the colon and the brackets: two that can share a space would backtrack for hours.
_CITATION = re.compile(r"\[\[\s*[Ss]\s*:([0-9,\s\-\u2010-\u2015]{1,4096})\]\]")
_CLOSING = {'"': '"', "'": "'", "`": "`", "<": ">", "(": ")"}
# A backslash belongs to a path only where a shell needs it: before a space or a bracket.
_BARE = re.compile(r"(?:\\.|[^\s\"'`<>|\\])*")
_SHELL_ESCAPE = re.compile(r"\\(.)")
_ESCAPED_QUOTE = re.compile(r"\\([\"'])")
# Up to the quote that is not escaped: an apostrophe within a name.
_QUOTED = {quote: re.compile(rf"((?:\\.|[^\\{quote}\n])*){quote}") for quote in ('"', "'")}
_ESCAPED_END = re.compile(r"\\(?![ ()&;])")
_TRAILING = ".,;:!?)]}'\""
_TRAILING_MAX = 8
_READ_BACK_CHARS = 256
_REL_CHARS_MAX = 1_024
_BREAK = re.compile(r"[\s\"'`<>()\[\]{}]")
_WEB = re.compile(r"(?<![A-Za-z0-9])(?:https?|ftp|wss?|s3|gs)://[^/]", re.IGNORECASE)
MENTIONS_MAX = 5_000
"""How many places of one text are read: each costs a query of the store."""
# Followed by a hexadecimal digit, %d begins an encoded byte: Cyrillic is %d0%b0 and so on.
MISSING_LISTED_MAX = 20
"""Of the missing ids of a range so many are listed one by one; the renderer prints as many."""
_PLACEHOLDER = re.compile(r"\{[^{}]*\}|%[sr]|%d(?![0-9A-Fa-f])|%0\dd|\$\{?\w+\}?")
_WILDCARD = re.compile(r"[*\[]")
# A question mark that does not begin a query: what follows it ends in an extension and gives nothing a value.
_ONE_CHARACTER = re.compile(r"\?(?=[^?/=&#]*\.\w+$)")


@dataclass(frozen=True, slots=True)
class Mention:
    """One place where a text refers to files of a turn.

    Attributes:
        asked: the text of the mention, at its most plausible reading.
        turn_id: which turn.
        namespace: its files or its attachments.
        readings: paths below the namespace that it may mean, the likeliest first; empty: the folder itself, or
            what ``pattern`` matches.
        pattern: a pattern for paths below the namespace, where the text holds a wildcard or a placeholder: it
            counts if no reading exists.
    """

    asked: str
    turn_id: str
    namespace: Namespace
    readings: tuple[str, ...]
    pattern: str | None = None


def find_mentions(text: str) -> list[Mention]:
    """The distinct mentions of ``turn_<id>/files/…`` and ``turn_<id>/attachments/…``, in order.

    Only the first `MENTIONS_MAX` places of a text are read.
    """
    found: dict[Mention, None] = {}
    for match in islice(_MENTION.finditer(text), MENTIONS_MAX):
        turn_id, namespace, slash = match[1], Namespace(match[2]), match[3]
        if is_turn_id(turn_id) and not _is_in_url(text, match.start()):
            found.setdefault(_mention(text, match.start(), match.end(), turn_id, namespace, bool(slash)))
    return list(found)


def _is_in_url(text: str, start: int) -> bool:
    """Whether a path is a part of an address of the web, such as ``https://x.example/turn_1/files/a.csv``."""
    return _WEB.search(_BREAK.split(text[max(0, start - _READ_BACK_CHARS) : start])[-1]) is not None


def _mention(text: str, start: int, end: int, turn_id: str, namespace: Namespace, slash: bool) -> Mention:
    folder = f"{turn_id}/{namespace}"
    tails = _tails(text, start, end) if slash else []
    tails = [tail for tail in tails if _spellings(tail)]
    if not tails:
        return Mention(folder, turn_id, namespace, ())
    pattern = None
    if any(form.search(tails[0]) for form in (_PLACEHOLDER, _WILDCARD, _ONE_CHARACTER)):
        closed = next((tail for tail in tails if tail.count("[") == tail.count("]")), tails[0])
        pattern = _PLACEHOLDER.sub("*", closed)
    readings: dict[str, None] = {}
    for tail in tails:
        for reading in _spellings(tail):
            try:
                readings.setdefault(FilePath(turn_id, namespace, reading).rel)
            except UnsafePathError:
                continue
    plausible = _spellings(tails[0])[-1] if pattern is None else tails[0]
    return Mention(f"{folder}/{plausible}", turn_id, namespace, tuple(readings), pattern)


def _tails(text: str, start: int, end: int) -> list[str]:
    """What may follow the namespace: up to the closing delimiter, up to white space, less trailing marks."""
    line = _rest_of_line(text, end)
    tails = []
    opening = _opening(text, start)
    delimited = _cut_at_delimiter(line, opening)
    if delimited is not None and _MENTION.search(delimited):
        delimited = None  # a list such as srcset, not a name
    if delimited is not None:
        if opening == "(":
            tails.append(_without_title(delimited))
        tails.append(delimited)
    bare = _SHELL_ESCAPE.sub(r"\1", _BARE.match(line)[0])  # type: ignore[index]  # it matches the empty text
    tails.append(bare)
    for _ in range(_TRAILING_MAX):
        if not bare or bare[-1] not in _TRAILING:
            break
        bare = bare[:-1]
        tails.append(bare)
    if delimited is None:
        # Without a delimiter the sentence's own punctuation is the likelier end.
        tails.reverse()
    if opening in {'"', "'"} and (quoted := _QUOTED[opening].match(text, end, end + _REL_CHARS_MAX)):
        tails.append(_SHELL_ESCAPE.sub(r"\1", quoted[1]))
    return list(dict.fromkeys(tails))


def _rest_of_line(text: str, end: int) -> str:
    """What follows a mention in a program's text, where an escaped quote is one and other escapes end a path."""
    line = text[end : end + _REL_CHARS_MAX].partition("\n")[0]
    return _ESCAPED_END.split(_ESCAPED_QUOTE.sub(r"\1", line), maxsplit=1)[0]


def _opening(text: str, start: int) -> str:
    """The delimiter that the mention stands in, looking back over a prefix such as ``./`` or ``{OUT_DIR}/``."""
    for character in reversed(text[max(0, start - _READ_BACK_CHARS) : start]):
        if character in _CLOSING:
            return character
        if character.isspace() or character == "=":
            return ""
    return ""


def _cut_at_delimiter(line: str, opening: str) -> str | None:
    if not opening:
        return None
    if opening == "(":
        return _cut_at_closing(line)
    at = line.find(_CLOSING[opening])
    return line[:at] if at >= 0 else None


def _cut_at_closing(line: str) -> str | None:
    """Up to the parenthesis that closes, so that ``(turn_1/files/a (2).png)`` is read whole."""
    depth = 0
    for at, character in enumerate(line):
        if character == "(":
            depth += 1
        elif character == ")":
            if depth == 0:
                return line[:at]
            depth -= 1
    return None


def _without_title(target: str) -> str:
    """A Markdown target less its title: ``a.png "A chart"`` is a.png."""
    text = target.rstrip()
    at = text.rfind(text[-1], 0, -1) if text.endswith(('"', "'")) else -1
    return text[:at].rstrip() if at > 0 and text[at - 1].isspace() else target


def _spellings(tail: str) -> list[str]:
    """A tail as it stands, percent-decoded, and without query and fragment."""
    cut = re.split(r"[?#]", tail, maxsplit=1)[0]
    spellings = (tail, unquote(tail), cut, unquote(cut))
    cleaned = [spelling.strip().rstrip("/") for spelling in spellings]
    if any(cleaned) and tail.strip() != tail:
        cleaned.append(tail)  # a name that begins or ends with a blank
    return list(dict.fromkeys(spelling for spelling in cleaned if spelling))


def find_sids(text: str, known: frozenset[int]) -> tuple[list[int], list[int | str]]:
    """The source ids that a text cites: those in ``known``, and those that are not.

    A range is cut to what is known, and each known id is visited once: all ranges together cost no more than the
    pool. Of a range the missing ids are listed one by one if they are few, as the renderer prints them; otherwise
    the range is listed as a text such as ``1-999999999``.
    """
    cited: list[int] = []
    missing: dict[int | str, None] = {}
    pool = sorted(known)
    offsets = [sid - at for at, sid in enumerate(pool)]
    uncited = pool.copy()
    for match in _CITATION.finditer(text):
        for first, last in parse_sid_ranges(match[1]) or ():
            new = slice(bisect_left(uncited, first), bisect_right(uncited, last))
            cited += uncited[new]
            del uncited[new]
            gaps = last - first + 1 - (bisect_right(pool, last) - bisect_left(pool, first))
            if gaps > MISSING_LISTED_MAX:
                missing.setdefault(f"{first}-{last}")
            elif gaps:
                missing.update(dict.fromkeys(_gaps(first, last, pool, offsets)))
    return cited, list(missing)


def _gaps(first: int, last: int, pool: list[int], offsets: list[int]) -> Iterator[int]:
    """The numbers of a range that a pool lacks; runs of known ones are skipped in one step.

    Args:
        first: the first number of the range.
        last: its last number.
        pool: the known ids, ascending.
        offsets: each known id less its index, which is the same within a run of consecutive ids.
    """
    sid = first
    while sid <= last:
        at = bisect_left(pool, sid)
        if at < len(pool) and pool[at] == sid:
            sid = pool[bisect_right(offsets, offsets[at]) - 1] + 1
        else:
            yield sid
            sid += 1


def id_ranges(sids: Sequence[int]) -> list[tuple[int, int]]:
    """Ids as inclusive ranges, so that a pool is asked for a run of them at once."""
    ordered = sorted(set(sids))
    ends = [a for a, b in pairwise(ordered) if b != a + 1] + ordered[-1:]
    starts = ordered[:1] + [b for a, b in pairwise(ordered) if b != a + 1]
    return list(zip(starts, ends, strict=True))


async def mentions_in(text: str) -> list[Mention]:
    """The mentions in a text, found off the event loop."""
    return await asyncio.to_thread(find_mentions, text)


def needed(request: InputRequest, mentions: Sequence[Mention], missing: Sequence[str]) -> list[str]:
    """Those missing paths that the program itself names and needs: not only a comment or what it prints."""
    text = runnable_text(request.text, request.language)
    if looks_for_files(text, request.language):
        return []
    named = {
        (mention.turn_id, mention.namespace, reading)
        for mention in find_mentions(text)
        for reading in mention.readings or ("",)
    }
    asked = {
        mention.asked: {(mention.turn_id, mention.namespace, rel) for rel in mention.readings or ("",)}
        for mention in mentions
    }
    return [path for path in missing if named & asked[path]]


def is_there(mention: Mention, known: dict[str, ConversationFile], inputs: JobInputs) -> bool:
    """Whether a mention means what was inputs already, and not a likelier reading of it."""
    for rel in mention.readings:
        if f"{mention.turn_id}/{mention.namespace}/{rel}" in inputs.files:
            return True
        if rel in known:
            return False
    return False


def files_meant(mention: Mention, known: dict[str, ConversationFile]) -> list[ConversationFile]:
    """Which files of the turn a mention means: a file, all below a folder, or all that match a pattern."""
    for rel in mention.readings:
        if rel in known:
            return [known[rel]]
    if mention.pattern is not None:
        # Without its slash `**/` also stands for no folder, as in Python's glob.
        pattern = mention.pattern.replace("**/", "**")
        return [file for rel, file in known.items() if fnmatch.fnmatchcase(rel, pattern)]
    if not mention.readings:
        return list(known.values())
    for reading in mention.readings:
        below = [file for rel, file in known.items() if rel.startswith(f"{reading}/")]
        if below:
            return below
    return []


async def find_elsewhere(mention: Mention, files: CallFiles, *, in_blocks: bool) -> list[ConversationFile]:
    """A file that its turn does not have any more, as a program removed it, or that no block of its own turn has.

    A loop may hand in only the blocks that came after, and what was read then.
    """
    for rel in mention.readings:
        path = FilePath(mention.turn_id, mention.namespace, rel)
        file = files.removed(path) or (await files.find_in_blocks(path) if in_blocks else None)
        if file is not None:
            return [file]
    return []


def is_below(mention: Mention, physical: str) -> bool:
    """Whether a path lies in the folder that a mention names."""
    folder = f"{mention.turn_id}/{mention.namespace}/"
    if not physical.startswith(folder):
        return False
    rel = physical.removeprefix(folder)
    return not mention.readings or any(rel.startswith(f"{reading}/") for reading in mention.readings)
