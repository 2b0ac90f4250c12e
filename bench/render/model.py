"""What the parts of the benchmark hand to one another: a document, what became of it, and who renders."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

SourceFormat = Literal["markdown", "html"]


@dataclass(frozen=True, slots=True)
class Sample:
    """A document of a corpus.

    Attributes:
        id: unique among all corpora, such as ``commonmark/17``.
        corpus: the corpus that it belongs to.
        source_format: ``markdown`` or ``html``.
        text: the document.
        folder: files that the document names lie here, or None if it names none.
    """

    id: str
    corpus: str
    source_format: SourceFormat
    text: str
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a sample.

    Attributes:
        sample_id: the sample.
        path: the file, or None if there is none.
        cpu_s: user and system time of the process that rendered, its children included, or None.
        wall_s: from the fork to the end of that process, in seconds.
        peak_mb: resident memory of the largest process, in megabytes of 10^6 bytes.
        error: why there is no file, or None.
        warnings: codes and sentences that the renderer gave with the file.
    """

    sample_id: str
    path: Path | None
    cpu_s: float | None
    wall_s: float
    peak_mb: float | None
    error: str | None = None
    warnings: list[str] = field(default_factory=list)


class Renderer(Protocol):
    """A program that turns samples into files.

    Attributes:
        name: as the tables show it.
        formats: the formats that it writes: ``pdf``, ``png``, ``docx``, ``pptx``.
        sources: the formats that it reads. One that reads HTML gets Markdown as markdown-it-py turns it into HTML.
    """

    name: str
    formats: frozenset[str]
    sources: frozenset[str]

    def render(self, samples: Sequence[Sample], fmt: str, out: Path) -> list[Outcome]:
        """Renders samples into the folder ``out``; the outcomes are in the order of the samples.

        A sample that fails is an outcome with an error, never an exception.

        Raises:
            RuntimeError: the program as a whole cannot be run.
        """
        ...
