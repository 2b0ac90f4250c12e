"""What a command prints: results on stdout, everything about the work on stderr."""

import argparse
import contextlib
import json
import os
import sys
import threading
import time
import unicodedata
from collections.abc import Iterator
from typing import Any, Self, TextIO

_RESET = "\x1b[0m"
_STYLES = {"bold": "\x1b[1m", "dim": "\x1b[2m", "red": "\x1b[31m", "green": "\x1b[32m"}
_CLEAR_LINE = "\r\x1b[K"
_TICK_S = 0.2
_LAYOUT = "\n\t"
_LAYOUT_OF_PROGRAMS = "\n\t\r"  # a progress bar of a program returns to the start of its line
_WRITING_DIRECTION = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class Terminal:
    """Writes results and messages by the options of a command."""

    def __init__(self, *, is_json: bool = False, is_quiet: bool = False, has_colour: bool | None = None) -> None:
        self.is_json = is_json
        self.is_quiet = is_quiet
        self._has_colour = has_colour if has_colour is not None else not os.environ.get("NO_COLOR")
        self._progress: Progress | None = None
        self._lock = threading.RLock()
        self._at_line_start = {id(sys.stdout): True, id(sys.stderr): True}

    @classmethod
    def of(cls, args: argparse.Namespace) -> "Terminal":
        """The terminal as the options of a command ask for it."""
        return cls(
            is_json=getattr(args, "json", False),
            is_quiet=getattr(args, "quiet", False),
            has_colour=False if getattr(args, "no_color", False) else None,
        )

    def write(self, text: str) -> None:
        """Write text to stdout, without a line end of its own."""
        self._write(sys.stdout, text)

    def write_output(self, text: str, stream: str) -> None:
        """Write what a program wrote to its stdout or stderr to the same stream of this process."""
        self._write(sys.stdout if stream == "stdout" else sys.stderr, text, _LAYOUT_OF_PROGRAMS)

    def print(self, text: str = "") -> None:
        """Write a line of the result to stdout."""
        self._write(sys.stdout, f"{text}\n")

    def print_json(self, value: Any) -> None:
        """Write one JSON value on a line of its own to stdout."""
        sys.stdout.write(to_json(value) + "\n")
        sys.stdout.flush()

    def note(self, text: str, style: str = "") -> None:
        """Write a line about the work to stderr, unless the command is quiet."""
        if not self.is_quiet:
            self.end_line()
            before, after = self._styles(style, sys.stderr)
            self._write(sys.stderr, f"{text}\n", style=(before, after))

    def print_error(self, text: str) -> None:
        """Write the sentence of an error to stderr."""
        self.end_line()
        self._write(sys.stderr, f"proofbox: {text}\n")

    def end_line(self) -> None:
        """Begin a new line on a terminal where a program left its last line open."""
        for stream in (sys.stdout, sys.stderr):
            if not self._at_line_start[id(stream)] and stream.isatty():
                self._write(stream, "\n")

    def _styles(self, style: str, stream: TextIO) -> tuple[str, str]:
        """What begins and ends a style, where the stream is a terminal that shows it."""
        if not style or not self._has_colour or not _is_smart(stream):
            return "", ""
        return _STYLES[style], _RESET

    def table(self, columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
        """Write rows in aligned columns, with a heading on a terminal only."""
        texts = [tuple("-" if value is None else str(value) for value in row) for row in rows]
        shown = [columns, *texts] if sys.stdout.isatty() else texts
        widths = [max((len(row[index]) for row in shown), default=0) for index in range(len(columns))]
        for number, row in enumerate(shown):
            line = "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
            style = "bold" if number == 0 and shown is not texts else ""
            self._write(sys.stdout, f"{line}\n", style=self._styles(style, sys.stdout))

    @contextlib.contextmanager
    def progress(self, text: str) -> Iterator["Progress"]:
        """Show a line with the elapsed time on a terminal while a block runs."""
        progress = Progress(text, self._lock, is_shown=_is_smart(sys.stderr) and not self.is_quiet)
        self._progress = progress
        try:
            with progress:
                yield progress
        finally:
            self._progress = None

    def _write(self, stream: TextIO, text: str, layout: str = _LAYOUT, style: tuple[str, str] = ("", "")) -> None:
        if not text:
            return
        line_end = "\n" if text.endswith("\n") else ""
        with self._lock:
            if self._progress is not None:
                self._progress.hide()
            shown = visible(text, layout) if stream.isatty() else text
            stream.write(f"{style[0]}{shown.removesuffix(line_end)}{style[1]}{line_end}")
            stream.flush()
            self._at_line_start[id(stream)] = bool(line_end)


class Progress:
    """One line of progress on stderr; removed when it ends."""

    def __init__(self, text: str, lock: threading.RLock, *, is_shown: bool) -> None:
        self._text = text
        self._lock = lock
        self._is_shown = is_shown
        self._is_drawn = False
        self._ended = threading.Event()
        self._began = time.monotonic()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._is_shown:
            self._thread = threading.Thread(target=self._draw, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        self.hide()

    def show(self, text: str) -> None:
        """Change the text."""
        self._text = text

    def hide(self) -> None:
        """Remove the line until it is drawn again."""
        with self._lock:
            if self._is_drawn:
                sys.stderr.write(_CLEAR_LINE)
                sys.stderr.flush()
                self._is_drawn = False

    def pause(self) -> None:
        """Draw no more: the program's own output is on the terminal now."""
        self._ended.set()

    def _draw(self) -> None:
        while not self._ended.wait(_TICK_S):
            with self._lock:
                if self._ended.is_set():
                    return
                elapsed = time.monotonic() - self._began
                sys.stderr.write(f"{_CLEAR_LINE}{self._text} {elapsed:.0f} s")
                sys.stderr.flush()
                self._is_drawn = True


def _is_smart(stream: TextIO) -> bool:
    """Whether a stream is a terminal that has colours and can clear a line."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def to_json(value: Any) -> str:
    """JSON for stdout; on a terminal in ASCII, so that no character of a program or file name controls it."""
    return json.dumps(value, ensure_ascii=sys.stdout.isatty())


def visible(text: str, layout: str = _LAYOUT) -> str:
    """Replace control characters: what a program or a file name prints must not control the user's terminal.

    Args:
        text: what is printed.
        layout: the control characters that stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        f"\\x{ord(character):02x}" if _is_control(character) and character not in layout else character
        for character in text.replace("\r\n", "\n")
    )


def _is_control(character: str) -> bool:
    return unicodedata.category(character) == "Cc" or character in _WRITING_DIRECTION
