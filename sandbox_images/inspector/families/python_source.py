"""Python sources: compiled by the Python of the image, and never run."""

from __future__ import annotations

from model import Problem, Subject, one_line

_MESSAGE_CHARS_MAX = 160


def inspect(subject: Subject) -> None:
    """Compile the file, in UTF-8 or in the encoding that it declares; blank if it is white space."""
    source = subject.file.read()
    nul = source.find(b"\x00")
    if nul >= 0:
        raise Problem(f"is not text: it has a NUL byte at offset {nul:,}")
    try:
        compile(source, "file", "exec", dont_inherit=True)
    except SyntaxError as error:
        where = "" if error.lineno is None else f" at line {error.lineno:,}"
        message = one_line(error.msg or type(error).__name__, _MESSAGE_CHARS_MAX)
        raise Problem(f"is not Python: {message}{where}") from error
    except ValueError as error:
        raise Problem(f"is not Python: {one_line(str(error), _MESSAGE_CHARS_MAX)}") from error
    if subject.must_not_be_blank() and not source.removeprefix(b"\xef\xbb\xbf").strip():
        raise Problem("is blank: it holds nothing but white space")
