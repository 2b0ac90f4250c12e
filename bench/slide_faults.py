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

GAP = 8.0
"""Points between two letters that are not of one word."""
READ, TRUSTED = 0.75, 0.95
"""The share of letters that a measure has to find to count, and of words for it to go by words."""

PooledContainer = tuple[float, float, float, float]
"""Left, top, right, bottom, in points from the slide's upper left corner."""


@dataclass
class Frame:
    """A shape with words: its place, what it says, and where its words were found."""

    name: str
    place: PooledContainer
    words: list[str]
    ink: list[PooledContainer] = field(default_factory=list)


def words_of(text: str) -> list[str]:
    """Words as both sides can have them: letters and digits, without case or composed forms."""
    return re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", text).casefold())


def frames_of(slide: Any) -> list[Frame]:
    """The frames and tables of a slide, in painting order."""
    found = []
    for shape in slide.shapes:
        if shape._element.xpath("string(.//p:cNvPr/@hidden)") == "1":  # noqa: SLF001
            continue
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


def ink_of(page: Any, scale: float) -> list[tuple[str, PooledContainer]]:
    """The letters and digits of a page, a blank between words, and the area of their ink."""
    text = page.get_textpage()
    tall = page.get_height() * scale
    found: list[tuple[str, PooledContainer]] = []
    before: PooledContainer | None = None
    for index in range(text.count_chars()):
        letters = words_of(text.get_text_range(index, 1))
        left, bottom, right, top = (value * scale for value in text.get_charbox(index))
        box = (left, tall - top, right, tall - bottom)
        apart = before is not None and (box[1] > before[3] or box[0] > before[2] + GAP or box[2] < before[0] - GAP)
        if found and (not letters or apart):
            found.append((" ", box))
        if letters:
            found.extend((letter, box) for letter in letters[0])
            before = box
    return found


def _joined(letters: list[tuple[str, PooledContainer]]) -> list[tuple[str, PooledContainer]]:
    """Letters as words."""
    words: list[tuple[str, PooledContainer]] = []
    fresh = True
    for letter, box in letters:
        if letter == " ":
            fresh = True
        elif fresh:
            words.append((letter, box))
            fresh = False
        else:
            word, area = words[-1]
            ends = (max(area[2], box[2]), max(area[3], box[3]))
            words[-1] = (word + letter, (min(area[0], box[0]), min(area[1], box[1]), *ends))
    return words


def place_ink(frames: list[Frame], ink: list[tuple[str, PooledContainer]]) -> float:
    """Gives each frame the ink of its words; returns the share of the words that was found.

    Where lines are broken within words, or frames touch, the two sides have different words: then letters are
    compared.
    """
    share = _align([(word, frame) for frame in frames for word in frame.words], _joined(ink))
    if share >= TRUSTED:
        return share
    for frame in frames:
        frame.ink.clear()
    letters = [(letter, frame) for frame in frames for word in frame.words for letter in word]
    return _align(letters, [(letter, box) for letter, box in ink if letter != " "])


def _align(owners: list[tuple[str, Frame]], ink: list[tuple[str, PooledContainer]]) -> float:
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
            if share < READ:
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
