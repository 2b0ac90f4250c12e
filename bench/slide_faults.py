"""Finds text that leaves its frame, or lies on other text, in decks as LibreOffice shows them.

    python bench/slide_faults.py DECKS PDFS

DECKS is a folder of ``.pptx``; PDFS holds what LibreOffice made of them. Nothing of the renderer is asked: frames
are those that are written in the deck, letters are where PDFium finds their ink. Writes a JSON line for each fault,
and the counts at the end.
"""

import json
import re
import sys
import unicodedata
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import pypdfium2
from pptx import Presentation
from pptx.util import Emu

POINT = 12_700
SLACK = 3.0
"""Points by which ink may leave its frame: readers round lines and substitute fonts."""
SHARED = 1.5
"""Points that the ink of two frames may share."""

Box = tuple[float, float, float, float]
"""Left, top, right, bottom, in points from the slide's upper left corner."""


@dataclass
class Frame:
    """A shape with words: its place, what it says, and where its words were found."""

    name: str
    place: Box
    words: list[str]
    ink: list[Box] = field(default_factory=list)


def words_of(text: str) -> list[str]:
    """Words as both sides can have them: letters and digits, without case or composed forms."""
    return re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", text).casefold())


def frames_of(slide: Any) -> list[Frame]:
    """The frames and tables of a slide, in painting order."""
    found = []
    for shape in slide.shapes:
        left, top, width, height = (
            Emu(value or 0) / POINT for value in (shape.left, shape.top, shape.width, shape.height)
        )
        if shape.has_text_frame:
            text = "\n".join(
                "".join(item.text or "" for item in row._p.iter("{*}t", "{*}br"))  # noqa: SLF001
                for row in shape.text_frame.paragraphs
            )
        elif getattr(shape, "has_table", False) and shape.has_table:
            text = "\n".join(
                "".join(item.text or "" for item in row.iter("{*}t"))
                for row in shape._element.iter("{*}p")  # noqa: SLF001
            )
        else:
            continue
        if text.strip() and "slidenum" not in shape._element.xpath("string(.//a:fld/@type)"):  # noqa: SLF001
            found.append(Frame(shape.name, (left, top, left + width, top + height), words_of(text)))
    return found


def ink_of(page: Any, scale: float) -> list[tuple[str, Box]]:
    """The words of a page and the area of their ink."""
    text = page.get_textpage()
    tall = page.get_height()
    count = text.count_chars()
    letters = text.get_text_range(0, count) if count else ""
    found: list[tuple[str, Box]] = []
    word, area = "", None
    for index in range(count):
        character = text.get_text_range(index, 1) if len(letters) != count else letters[index]
        if not words_of(character):
            if word and area:
                found.append((word, area))
            word, area = "", None
            continue
        left, bottom, right, top = (value * scale for value in text.get_charbox(index))
        box = (left, tall * scale - top, right, tall * scale - bottom)
        if area is not None and (abs(box[1] - area[1]) > 12 and box[0] < area[2] - 4):  # noqa: PLR2004 - a new line
            found.append((word, area))
            word, area = "", None
        word += character
        area = (
            box
            if area is None
            else (min(area[0], box[0]), min(area[1], box[1]), max(area[2], box[2]), max(area[3], box[3]))
        )
    if word and area:
        found.append((word, area))
    return [(piece, box) for word, box in found for piece in words_of(word)[:1]]


def place_ink(frames: list[Frame], ink: list[tuple[str, Box]]) -> float:
    """Gives each frame the ink of its words; returns the share of words that were found."""
    owners = [(word, frame) for frame in frames for word in frame.words]
    matcher = SequenceMatcher(None, [word for word, _ in owners], [word for word, _ in ink], autojunk=False)
    found = 0
    for block in matcher.get_matching_blocks():
        for step in range(block.size):
            owners[block.a + step][1].ink.append(ink[block.b + step][1])
        found += block.size
    return found / len(owners) if owners else 1.0


def faults_of(frames: list[Frame], size: tuple[float, float]) -> list[tuple[str, str]]:
    """What is wrong on a slide: (overflow or overlap, a sentence)."""
    faults = []
    for frame in frames:
        out = 0.0
        for box in frame.ink:
            out = max(
                out,
                frame.place[0] - box[0],
                frame.place[1] - box[1],
                box[2] - frame.place[2],
                box[3] - frame.place[3],
            )
            out = max(
                out, (SLACK + 0.1) if box[2] > size[0] + 1 or box[3] > size[1] + 1 or min(box[:2]) < -1 else 0.0
            )
        if out > SLACK:
            faults.append(("overflow", f"{frame.name}: ink {out:.1f} pt outside"))
    for index, one in enumerate(frames):
        for other in frames[index + 1 :]:
            shared = max(
                (
                    min(min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1]))
                    for a in one.ink
                    for b in other.ink
                ),
                default=0.0,
            )
            if shared > SHARED:
                faults.append(("overlap", f"{one.name} and {other.name} share {shared:.1f} pt"))
    return faults


def main(decks: Path, pdfs: Path) -> None:
    """Prints the faults of every deck."""
    total = {"decks": 0, "overflow": set(), "overlap": set(), "unread": set(), "slides": 0}
    for path in sorted(decks.glob("*.pptx")):
        target = pdfs / f"{path.stem}.pdf"
        total["decks"] += 1
        if not target.exists():
            total["unread"].add(path.stem)
            continue
        deck = Presentation(str(path))
        size = (deck.slide_width / POINT, deck.slide_height / POINT)
        document = pypdfium2.PdfDocument(str(target))
        total["slides"] += len(document)
        for number, slide in enumerate(deck.slides):
            page = document[number]
            frames = frames_of(slide)
            share = place_ink(frames, ink_of(page, size[0] / page.get_width()))
            found = faults_of(frames, size)
            if share < 0.9:  # noqa: PLR2004 - below, the measure itself can't be trusted
                found.append(("unread", f"only {share:.0%} of the words found"))
            for kind, text in found:
                total[kind].add(path.stem)
                print(
                    json.dumps(
                        {"deck": path.stem, "slide": number + 1, "fault": kind, "what": text}, ensure_ascii=False
                    )
                )
    print({key: len(value) if isinstance(value, set) else value for key, value in total.items()})


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
