"""A hostile document, and what it may find around itself."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ALL = ("pdf", "png", "docx", "pptx")
PAGES = ("pdf", "png")
OFFICE = ("docx", "pptx")

ELSEWHERE = Path("/tmp/elsewhere")
"""Files that no document may reach: each of them holds the canary."""
CANARY = "canary-5d1f7c20e9"
CANARY_RGB = (254, 1, 220)
PORT = 8099
"""On loopback somebody listens here; a rendering that says a word to it has failed."""


@dataclass(frozen=True)
class Link:
    """A symbolic link beside the document."""

    to: str


@dataclass(frozen=True)
class Pipe:
    """A FIFO that nobody writes to: opening it to read blocks for ever."""


@dataclass(frozen=True)
class UnixSocket:
    """A socket in the file system."""


@dataclass(frozen=True)
class Folder:
    """A folder where a file is expected."""


Beside = bytes | Link | Pipe | UnixSocket | Folder


@dataclass(frozen=True)
class Attack:
    """One hostile document.

    Attributes:
        name: what it tries, in words.
        content: the document, or what makes it: a large one is made when its turn comes.
        source: its format.
        outputs: the formats for which it matters.
        files: what lies in OUT_DIR, by its path there.
        ends: ``ok``, or the code of the error that it has to end with; by output where they differ.
        warns: warnings that have to be among those of the answer.
        request: further fields of the request.
    """

    name: str
    content: str | Callable[[], str]
    source: str = "html"
    outputs: tuple[str, ...] = ALL
    files: dict[str, Beside] = field(default_factory=dict)
    ends: str | dict[str, str] = "ok"
    warns: tuple[str, ...] = ()
    request: dict[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        return self.content if isinstance(self.content, str) else self.content()

    def expected(self, output: str) -> str:
        return self.ends if isinstance(self.ends, str) else self.ends.get(output, "ok")
