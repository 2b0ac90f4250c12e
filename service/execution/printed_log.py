"""What a program printed, shortened for a model: repetition and calls of libraries go before anything else."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from proofbox.service.jobs.error_lines import CHAINS
from proofbox.service.log_text import clean_text, end_of, head_and_tail, left_out_line

FAILED_CHARS_MAX = 4_000
EXPLORED_CHARS_MAX = 8_000
CHARS_MAX = 2_000
_READ_CHARS = 128_000  # of each end: repetition may stand before what is shown
_SAME_LINES_MIN = 4
_ALIKE_LINES_MIN = 12
_TRACEBACK_LINES_MAX = 30
_LAST_FRAMES = 2
_TRACEBACK = re.compile(r"^(?P<margin>[ +|]*)Traceback \(most recent call last\):$")
_FRAME = re.compile(r'^[ |]*File "(?P<path>[^"\n]*)", line \d')
_OF_LIBRARIES = re.compile(r"^(?:/usr/|/opt/|<frozen |/packages/)|/(?:site|dist)-packages/")
_NOISE = re.compile(r"^findfont: ")
_WORD = re.compile(r"[^\W\d_]{3,}")
_WORDS_MIN = 2  # a line of fewer is a row of numbers, which nobody can guess
_ENDS_SHOWN = 3
_VARYING = re.compile(r"0x[0-9a-f]+|\d+(?:[.,:]\d+)*")


def printed_log(text: str, *, keeps_end: bool, explored: bool, whole: str | None = None) -> str:
    """What was printed, within its bounds.

    Args:
        text: both streams in their order.
        keeps_end: the end explains a failure; else the beginning and the end are kept.
        explored: the call promises no file, so what it prints is its result.
        whole: where the whole output is, for the line that stands where it is cut.
    """
    chars_max = EXPLORED_CHARS_MAX if explored else FAILED_CHARS_MAX if keeps_end else CHARS_MAX
    if keeps_end:
        before = max(0, len(text) - _READ_CHARS)
        return end_of(_shortened(clean_text(text[before:]), chars_max), chars_max, whole, before)
    chars = len(text)
    if chars > 2 * _READ_CHARS:
        line = left_out_line(chars - 2 * _READ_CHARS, whole)
        text = f"{text[:_READ_CHARS]}{line}{text[-_READ_CHARS:]}"
    return head_and_tail(_shortened(clean_text(text), chars_max), chars_max, whole, chars - len(text))


def printed_value(text: str, *, explored: bool) -> str:
    """The text of the last value, within the bounds of what is printed."""
    return head_and_tail(clean_text(text), EXPLORED_CHARS_MAX if explored else CHARS_MAX)


def _shortened(text: str, chars_max: int) -> str:
    lines = list(_without_library_frames(_without_noise(text.split("\n"))))
    lines = [line for group in _groups(lines, str) for line in _same(group)]
    if sum(map(len, lines)) + len(lines) > chars_max:  # lines that differ in numbers are read where there is room
        lines = [line for group in _groups(lines, lambda line: _VARYING.sub("0", line)) for line in _alike(group)]
    return "\n".join(lines)


def _groups(lines: Sequence[str], shape: Callable[[str], str]) -> Iterator[list[str]]:
    """Lines in a row that have one shape."""
    return (list(group) for _, group in groupby(lines, shape))


def _same(group: list[str]) -> list[str]:
    if len(group) < _SAME_LINES_MIN or not group[0].strip():
        return group
    return [group[0], f"[… {len(group) - 1} more lines like this …]"]


def _alike(group: list[str]) -> list[str]:
    """The first and the last of many lines of a log, which differ in their numbers alone."""
    if len(group) < _ALIKE_LINES_MIN or len(_WORD.findall(group[0])) < _WORDS_MIN:
        return group
    left_out = f"[… {len(group) - 2 * _ENDS_SHOWN} more lines of this form …]"
    return [*group[:_ENDS_SHOWN], left_out, *group[-_ENDS_SHOWN:]]


def _without_noise(lines: Iterable[str]) -> Iterator[str]:
    """Lines without further copies of those that have nothing to do with the program."""
    seen = set[str]()
    for line in lines:
        if _NOISE.match(line):
            if line in seen:
                continue
            seen.add(line)
        yield line


def _without_library_frames(lines: Iterable[str]) -> Iterator[str]:
    """Lines where long tracebacks have the frames of the program itself, and the last ones."""
    waiting = list(lines)
    at = 0
    for chain in _chains(waiting):
        is_long = sum(end - start - 1 for start, end in chain) > _TRACEBACK_LINES_MAX
        for start, end in chain:
            yield from waiting[at : start + 1]
            frames = waiting[start + 1 : end]
            yield from _short_traceback(frames, _LAST_FRAMES * (end == chain[-1][1])) if is_long else frames
            at = end
    yield from waiting[at:]


def _chains(lines: Sequence[str]) -> list[list[tuple[int, int]]]:
    """The tracebacks, from heading to behind the frames; those of exceptions that led to each other as one."""
    chains: list[list[tuple[int, int]]] = []
    end = 0
    for start, line in enumerate(lines):
        found = _TRACEBACK.match(line) if start >= end else None
        if found is None:
            continue
        is_first = start < 2 or lines[start - 2].lstrip(" |") not in CHAINS  # noqa: PLR2004 - a blank line between
        inside = " " * len(found["margin"].replace("+", " ")) + " "
        end = start + 1
        while end < len(lines) and _belongs(lines[end], inside):
            end += 1
        if is_first or not chains:
            chains.append([])
        chains[-1].append((start, end))
    return chains


def _belongs(line: str, inside: str) -> bool:
    return line[: len(inside)].replace("|", " ").replace("+", " ") == inside


def _short_traceback(lines: Sequence[str], last_frames: int) -> Iterator[str]:
    starts = [number for number, line in enumerate(lines) if _FRAME.match(line)]
    yield from lines[: starts[0]] if starts else lines
    frames = [lines[start:end] for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)]
    left_out = 0
    for number, frame in enumerate([*frames, ()]):
        path = _FRAME.match(frame[0]) if frame else None
        if path is not None and _OF_LIBRARIES.search(path["path"]) and number < len(frames) - last_frames:
            left_out += 1
            continue
        if left_out:
            yield f"  [… {left_out} calls of libraries …]"
            left_out = 0
        yield from frame
