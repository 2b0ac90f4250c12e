"""What tests ask of a written deck: its words in reading order, what overlaps, what leaves the slide."""

import re
import zipfile
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from pptx import Presentation
from pptx.util import Emu

SLACK = Emu(9525 * 3)


def open_deck(path: Path) -> Any:
    return Presentation(str(path))


def is_hidden(shape: Any) -> bool:
    return bool(shape._element.xpath("string(.//p:cNvPr/@hidden)") == "1")


def shown(slide: Any) -> list[Any]:
    """The shapes of a slide without the title that only screen readers read."""
    return [shape for shape in slide.shapes if not is_hidden(shape)]


def shape_words(shape: Any) -> list[str]:
    if shape.has_text_frame:
        if (
            shape.is_placeholder
            and shape.placeholder_format.type is not None
            and "SLIDE_NUMBER" in str(shape.placeholder_format.type)
        ):
            return []
        return words(shape.text_frame.text)
    if getattr(shape, "has_table", False) and shape.has_table:
        found = []
        for row in shape._element.graphic.graphicData.tbl.tr_lst:
            for cell in row.tc_lst:
                if cell.get("hMerge") is None and cell.get("vMerge") is None:
                    found += words(
                        "\n".join("".join(t.text or "" for t in p.iter("{*}t")) for p in cell.iter("{*}p"))
                    )
        return found
    return []


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())


def deck_words(deck: Any) -> list[str]:
    return [word for slide in deck.slides for shape in shown(slide) for word in shape_words(shape)]


def found_share(wanted: list[str], got: list[str]) -> float:
    """The share of wanted words that are there in order."""
    if not wanted:
        return 1.0
    if len(wanted) > 4000:
        return float(wanted == [word for word in got if word in set(wanted)])
    matcher = SequenceMatcher(None, wanted, got, autojunk=False)
    return sum(block.size for block in matcher.get_matching_blocks()) / len(wanted)


def holds_content(shape: Any) -> bool:
    if shape.has_text_frame:
        return bool(shape.text_frame.text.strip()) and not shape.name.startswith("Slide Number")
    return bool(getattr(shape, "has_table", False) or getattr(shape, "has_chart", False))


def place(shape: Any) -> tuple[int, int, int, int]:
    return shape.left, shape.top, shape.left + shape.width, shape.top + shape.height


def geometry_faults(deck: Any) -> list[str]:
    faults = []
    for number, slide in enumerate(deck.slides, 1):
        shapes = shown(slide)
        for shape in shapes:
            left, top, right, bottom = place(shape)
            if not holds_content(shape) and shape._element.xpath("./p:spPr/a:prstGeom[@prst!='rect']"):
                continue  # an ornament, which the slide's edge cuts
            if (
                left < -SLACK
                or top < -SLACK
                or right > deck.slide_width + SLACK
                or bottom > deck.slide_height + SLACK
            ):
                faults.append(f"slide {number}: {shape.name} leaves the slide")
        solid = [shape for shape in shapes if holds_content(shape)]
        for index, one in enumerate(solid):
            for other in solid[index + 1 :]:
                a, b = place(one), place(other)
                if min(a[2], b[2]) - max(a[0], b[0]) > 2 * SLACK and min(a[3], b[3]) - max(a[1], b[1]) > 2 * SLACK:
                    faults.append(f"slide {number}: {one.name} over {other.name}")
    return faults


def part(path: Path, name: str) -> str:
    with zipfile.ZipFile(path) as package:
        return package.read(name).decode("utf-8")
