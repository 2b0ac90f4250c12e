"""Type and places of slides, as a PPTX file has them: the size of body text, where titles stand, what has room."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pptx import Presentation

BODY_LEAST_PT = 20.0
_FULL = 0.8
"""A slide whose content ends below this share of its height is full: smaller type may be what it takes."""
_FOOT = 0.9
_TITLES = frozenset({"title", "ctrTitle", "sldNum", "ftr", "dt"})
_TITLE_APART_EMU = 12_700
"""A point: titles of one kind of slide stand at the same place within it."""
Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class SlideType:
    """What a slide's text looks like.

    Attributes:
        kind: name of its layout.
        title: left and top of its title, or None if it has none to see.
        body_pt: size of most of its text beside title, tables, code and small print; None if there is none.
        ends: where its content ends, as a share of its height.
    """

    kind: str
    title: Place | None
    body_pt: float | None
    ends: float

    @property
    def is_small(self) -> bool:
        """Whether body text is smaller than it could be."""
        return self.body_pt is not None and self.body_pt < BODY_LEAST_PT and self.ends < _FULL


def read_deck(path: Path) -> list[SlideType]:
    """Each slide of a deck."""
    presentation = Presentation(str(path))
    height = int(presentation.slide_height or 1)
    return [_slide(slide, height) for slide in presentation.slides]


def moved_titles(slides: list[SlideType]) -> list[int]:
    """Indices of slides whose title is not where most titles of their kind are."""
    found = []
    for kind in {slide.kind for slide in slides}:
        titled = [(index, slide.title) for index, slide in enumerate(slides) if slide.kind == kind and slide.title]
        if not titled:
            continue
        usual, _ = Counter(title for _, title in titled).most_common(1)[0]
        found += [
            index
            for index, title in titled
            if max(abs(title[0] - usual[0]), abs(title[1] - usual[1])) > _TITLE_APART_EMU
        ]
    return sorted(found)


def _slide(slide: Any, height: int) -> SlideType:
    title: Place | None = None
    sizes: Counter[float] = Counter()
    ends = 0.0
    for shape in slide.shapes:
        element = shape._element  # noqa: SLF001 - python-pptx has no name for what is hidden
        if element.xpath("string(.//p:cNvPr/@hidden)") == "1":
            continue
        kind = element.xpath("string(.//p:nvPr/p:ph/@type)")
        if kind in {"title", "ctrTitle"} and shape.top >= 0:
            title = (shape.left, shape.top)
        if kind in _TITLES:
            continue
        bottom = (shape.top + shape.height) / height
        if shape.top / height < _FOOT:
            ends = max(ends, bottom)
        if shape.has_text_frame and "Code" not in shape.name and shape.top / height < _FOOT:
            for run in element.xpath(".//a:r"):
                size = run.xpath("string(a:rPr/@sz)")
                if size:
                    sizes[int(size) / 100] += len(run.xpath("string(a:t)"))
    body = sizes.most_common(1)[0][0] if sizes else None
    return SlideType(slide.slide_layout.name, title, body, min(ends, 1.0))
