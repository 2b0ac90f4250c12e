"""Recognises a diff in the forms that language models write, and applies it.

Unified diffs may stand below blank lines or a version tool's headers, in a code fence, or be indented as a whole.
``*** Begin Patch`` patches and SEARCH/REPLACE blocks have no line numbers. A text that looks like a diff is never
taken for the new text of a file, whether it can be read or not.
"""

import re
from dataclasses import replace
from itertools import takewhile

from proofbox.service.react.hunks import Applied, Hunk, HunkHeaderError, HunkMismatchError, apply_hunks
from proofbox.service.react.unified_diff import HUNKS_MAX, read_hunks

# No run of characters is read twice: a line of fence marks may be as long as a patch.
_FENCE = re.compile(r"\s*+(`{3,}+|~{3,}+)[ \t]*+([\w+-]*+)[^`\n]*+")
_DIFF_FENCES = frozenset({"diff", "patch", "udiff", "unidiff"})
_STARTS = ("---", "+++", "@@")
_LOOKS = re.compile(
    r"^[ \t]*@@+ *-\d"
    r"|@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@"  # also quoted, or inside of JSON
    r"|^[ \t]*@@[ \t\r]*$"
    r"|^@@ [^\n]*\n(?:[ \t\r]*\n)?[ +-]"
    r"|^[ \t]+@@ [^\n]*\n(?:[ \t\r]*\n)?[ \t]*[+-]"
    r"|^[ \t]*(?:`{3,}|~{3,})[ \t]*(?:diff|patch|udiff|unidiff)(?![\w+-])"
    r"|^[ \t]*(?:> ?)?\+\+\+ b/"
    r"|^[ \t]*\*{3}[ \t]*(?i:Begin Patch|End Patch|(?:Update|Add|Delete) File: )"
    r"|^[ \t]*--- \S[^\n]*\n[ \t]*\+\+\+ \S"
    r"|^(?:diff --git |Index: [^\n]+\n={20,})"
    r"|^diff (?:-\S+ ){0,9}\S+ \S+[ \t\r]*\n(?:[-+]\S|@@)"
    r"|^(?:rename|copy) from [^\n]+\n(?:rename|copy) to \S"
    r"|^old mode \d{6}\r?\nnew mode \d{6}"
    r"|^(?:new|deleted) file mode \d{6}\r?$"
    r"|^(?:GIT binary patch\r?$|index [0-9a-f]{7,64}\.\.[0-9a-f]{7,64}(?: \d{6})?\r?$)"
    r"|^\*{15}\r?\n\*\*\* \d"  # a context diff
    r"|^\d+(?:,\d+)?[acd]\d+(?:,\d+)?\r?\n[<>] "  # a diff without any option
    r"|^[ \t]*<{4,9} ?(?:SEARCH|ORIGINAL|HEAD|[Ss]earch|[Oo]riginal)\b"
    r"|^[ \t]*-{5,9} ?SEARCH\b",
    re.MULTILINE,
)
_CONFLICT = [
    re.compile(rf"^[ \t]*{mark}", re.MULTILINE)
    for mark in (r"<{5,9}(?:[ \t\r]|$)", r"={5,9}[ \t\r]*$", r">{5,9}(?:[ \t\r]|$)")
]
_INVISIBLE = str.maketrans("", "", "\u200b\u200c\u200d\u2060\ufeff")
_BARE = re.compile(r"(?:[ +-][^\n]*\n|[\t\r]*\n)+")  # lines of a hunk alone
_MAIL = re.compile(r"(?:From|commit) [0-9a-f]{7,64}\b.*")
_SIGNATURE = re.compile(r"\n-- ?\r?\n\d[^\n]*+\s*+\Z")
_SEARCH = re.compile(r"<{5,9} ?SEARCH\s*")
_DIVIDER = re.compile(r"={5,9}\s*")
_REPLACE = re.compile(r">{5,9} ?REPLACE\s*")
_FILE_MARK = re.compile(r"\*{3}[ \t]*(?:(Update|Add|Delete) File: *(.*)|Move to: *(.*))", re.IGNORECASE)
_ENVELOPE = re.compile(r"\*{3}[ \t]*(?:Begin|End) Patch", re.IGNORECASE)


def is_diff(patch: str) -> bool:
    """Whether a patch is, or looks like, a diff; any other is the whole new text of a file."""
    patch = patch.translate(_INVISIBLE)
    first = next((line for line in patch.split("\n") if line.strip()), "")
    fence = _FENCE.fullmatch(first)
    is_fenced_diff = fence is not None and fence[2].lower() in _DIFF_FENCES
    return patch.startswith(_STARTS) or is_fenced_diff or _looks(patch) or _looks(_core(patch))


def _looks(patch: str) -> bool:
    """Whether a text has marks of a diff anywhere, or is nothing but a hunk."""
    return _LOOKS.search(patch) is not None or all(mark.search(patch) for mark in _CONFLICT) or _is_bare_hunk(patch)


def _core(patch: str) -> str:
    """A text without the line that leads to it, without fence and without the indent of all lines."""
    lines = patch.split("\n")
    at = _first(lines)
    if at < len(lines) and lines[at].rstrip().endswith(":"):
        lines[at] = ""
    _remove_fence(lines)
    _remove_common_indent(lines)
    return "\n".join(lines)


def _is_bare_hunk(patch: str) -> bool:
    """Whether a text is nothing but lines that are removed, added and unchanged; a list in Markdown is not."""
    if _BARE.fullmatch(patch.rstrip("\n") + "\n") is None:
        return False
    return (
        re.search(r"^-\S", patch, re.MULTILINE) is not None and re.search(r"^\+", patch, re.MULTILINE) is not None
    )


def apply_diff(text: str, patch: str) -> Applied:
    """The text after a diff.

    Raises:
        HunkHeaderError: the patch cannot be read; ``text`` plays no part.
        HunkMismatchError: a hunk does not fit.
    """
    if _is_crlf(patch) and "\r\n" not in text:
        patch = patch.replace("\r\n", "\n")
    try:
        return _apply(text, patch)
    except HunkMismatchError:
        # Part of the patch has been through a tool that writes CR LF.
        if "\r\n" not in patch or ("\r" in text and not _is_crlf(text)):
            raise
        return _apply(text, patch.replace("\r\n", "\n"))


def _apply(text: str, patch: str) -> Applied:
    hunks = read_patch(patch)
    if _is_crlf(text) and "\r" not in patch:
        # Models read and write LF; the file keeps its own line ends.
        applied = apply_hunks(text.replace("\r\n", "\n"), hunks)
        return replace(applied, text=applied.text.replace("\n", "\r\n"))
    return apply_hunks(text, hunks)


def _is_crlf(text: str) -> bool:
    """Whether all lines end with CR LF."""
    return "\r\n" in text and text.count("\n") == text.count("\r\n")


def read_patch(patch: str) -> list[Hunk]:
    """The hunks of a diff of one file in any of the forms.

    What stands around the diff becomes blank lines, so that errors name the lines of the patch as it was given.

    Raises:
        HunkHeaderError: it cannot be read, or is of several files.
    """
    lines = _SIGNATURE.sub("\n", patch.removeprefix("\ufeff")).split("\n")
    _remove_fence(lines)
    if any(_SEARCH.fullmatch(line) for line in lines):
        return _read_search_blocks(lines)
    _remove_indent(lines)
    if any(_SEARCH.fullmatch(line) for line in lines):
        return _read_search_blocks(lines)
    _remove_mail(lines)
    if any(_ENVELOPE.match(line) or _FILE_MARK.match(line) for line in lines):
        _read_envelope(lines)
    return read_hunks("\n".join(lines))


def _first(lines: list[str]) -> int:
    """The first line that is not blank; the number of lines if there is none."""
    return next((n for n, line in enumerate(lines) if line.strip()), len(lines))


def _remove_fence(lines: list[str]) -> None:
    at = _first(lines)
    fence = _FENCE.fullmatch(lines[at]) if at < len(lines) else None
    if fence is None:
        return
    lines[at] = ""
    last = max((n for n, line in enumerate(lines) if line.strip()), default=0)
    if lines[last].strip() == fence[1]:
        lines[last] = ""


def _remove_common_indent(lines: list[str]) -> None:
    """Removes the blanks that all lines begin with; blank lines do not count."""
    indents = {line[: len(line) - len(line.lstrip())] for line in lines if line.strip()}
    if not indents:
        return
    # What the first and the last of all in order share, all share.
    shared = sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(min(indents), max(indents), strict=False))
    )
    if shared:
        lines[:] = [line[shared:] for line in lines]


def _remove_indent(lines: list[str]) -> None:
    """Removes the blanks before all lines, and, where the lines of hunks have fewer, those before the headers."""
    _remove_common_indent(lines)
    at = _first(lines)
    if at == len(lines) or not lines[at][0].isspace():
        return
    for n in range(at, len(lines)):
        lines[n] = lines[n].lstrip()
        if lines[n].startswith("@@"):
            return


def _remove_mail(lines: list[str]) -> None:
    """Removes the head of a commit, as ``git format-patch`` and ``git show`` write it."""
    at = _first(lines)
    if at < len(lines) and _MAIL.fullmatch(lines[at]):
        begin = next((n for n, line in enumerate(lines) if line.startswith(("diff ", "--- ", "@@"))), at)
        lines[:begin] = [""] * begin


def _read_envelope(lines: list[str]) -> None:
    """Turns a ``*** Begin Patch`` patch of one file into a diff without line numbers, line for line.

    Raises:
        HunkHeaderError: it adds, deletes or moves a file, or is of several files.
    """
    names: set[str] = set()
    for n, line in enumerate(lines):
        mark = _FILE_MARK.match(line)
        if mark is not None:
            if mark[1] is None or mark[1].lower() != "update":
                raise HunkHeaderError(
                    f"line {n + 1} of the patch adds, deletes or moves a file; react.patch changes one text, and "
                    "react.write makes a new file",
                    n + 1,
                    line,
                )
            names.add(mark[2].strip())
            # The first hunk may have no header of its own.
            lines[n] = "@@" if _begins_body(lines, n + 1) else ""
        elif _ENVELOPE.match(line):
            lines[n] = ""
        if len(names) > 1:
            raise HunkHeaderError("the patch is of several files; patch one at a time", n + 1, line)


def _begins_body(lines: list[str], at: int) -> bool:
    """Whether the lines of a hunk come next, not a header."""
    at = next((n for n in range(at, len(lines)) if lines[n].strip()), len(lines))
    if at == len(lines) or lines[at].startswith(("@@", "***")):
        return False
    return not (lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ "))


def _read_search_blocks(lines: list[str]) -> list[Hunk]:
    """The hunks of SEARCH/REPLACE blocks: the lines of each stand at one place of the text, whichever it is.

    Raises:
        HunkHeaderError: a block does not end, or a line stands outside of any.
    """
    hunks: list[Hunk] = []
    mark = ""  # of the lines that follow: none outside of a block
    for number, line in enumerate(lines, start=1):
        if not mark and _SEARCH.fullmatch(line):
            hunks.append(Hunk(None))
            mark = "-"
        elif mark == "-" and _DIVIDER.fullmatch(line):
            mark = "+"
        elif mark == "+" and _REPLACE.fullmatch(line):
            mark = ""
        elif mark:
            hunks[-1].lines.append((mark, line))
        elif line.strip() and not _FENCE.fullmatch(line) and (hunks or " " in line.strip()):
            # The name of the file may stand above the first block.
            raise HunkHeaderError(
                f"line {number} of the patch stands outside of any SEARCH/REPLACE block", number, line
            )
        if len(hunks) > HUNKS_MAX:
            raise HunkHeaderError(f"the patch has more than {HUNKS_MAX} blocks; split it", number, line)
    if mark:
        raise HunkHeaderError(
            "a SEARCH/REPLACE block does not end; write <<<<<<< SEARCH, =======, >>>>>>> REPLACE",
            len(lines),
            lines[-1],
        )
    return hunks
