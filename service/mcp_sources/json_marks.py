"""The commas and brackets of JSON outside its strings, as its bytes come."""

import re

_ESCAPE = re.compile(rb"\\[^\r\n]")
_STRING = re.compile(rb'"[^"\r\n]*"?')
_STRING_END = re.compile(rb'["\r\n]')
_MARKS = (b",", b"[", b"{")


class JsonMarks:
    """Counts the commas and brackets of one body: about one for each value. Those within texts cost nothing.

    A string of JSON ends with its line, so no other line of an event stream hides what comes after it.
    """

    def __init__(self) -> None:
        self._is_in_string = False
        self._begun = b""

    def count(self, piece: bytes) -> int:
        """Returns how many the next piece of the body has."""
        piece = _ESCAPE.sub(b"", self._begun + piece)
        self._begun = b""
        if piece.endswith(b"\\"):  # the other half of the escape comes next
            piece, self._begun = piece[:-1], b"\\"
        if self._is_in_string:
            end = _STRING_END.search(piece)
            if end is None:
                return 0
            piece = piece[end.end() :]
        last = piece[max(piece.rfind(b"\n"), piece.rfind(b"\r")) + 1 :]
        self._is_in_string = last.count(b'"') % 2 == 1
        outside = _STRING.sub(b"", piece)
        return sum(outside.count(mark) for mark in _MARKS)
