"""How often slides are laid out until they fit, and the bound that spares a layout."""

from pathlib import Path

import pytest
from render.frontend.pipeline import open_document
from render.model import RenderRequest
from render.pptx.drawingml_style import slide_theme
from render.slides.boxes_to_shapes import Painter
from render.slides.css import ROOMY_STEPS, deck_css
from render.slides.design import Design
from render.slides.fit import fit
from render.slides.geometry_checks import least_height, paragraphs_of
from render.slides.layout import Sheet, Stage
from render.slides.model import Shape
from render.slides.prepare_tree import drafts_of
from render.slides.px_to_slide import scaled
from render.slides.splitting.slide_content import title_of
from render.weasy.boxes import BoxNode, Layouter

TEXT = "Words that fill more than one line of a slide when they are repeated often enough. "
ITEMS = "".join(f"- point number {number}\n" for number in range(20))
ROWS = "".join(f"| {TEXT * (number % 3)} | {number} |\n" for number in range(9))
SMALLER = 0.75


class WatchedStage(Stage):
    """A stage that lists the sizes of type it laid out."""

    steps: list[float]

    def lay_out(self, sheets: list[Sheet]) -> list[BoxNode | None]:
        self.steps = [*getattr(self, "steps", []), *(sheet.step for sheet in sheets)]
        return super().lay_out(sheets)


def stage_and_sheets(source: str, root: Path) -> tuple[WatchedStage, list[Sheet]]:
    document = open_document(RenderRequest("pptx", "markdown", source, str(root), "deck.pptx"))
    layouter = Layouter(deck_css(slide_theme(document.theme), Design(), 1280), None, None)
    stage = WatchedStage(layouter, "", 1280)
    return stage, [Sheet(draft, draft.root, title_of(draft.root)) for draft in drafts_of(document)]


def painted(stage: Stage, sheet: Sheet, step: float) -> tuple[list[Shape], float]:
    """The shapes of a sheet in a size of type, and where the lowest ends."""
    sheet.step = step
    (node,) = stage.lay_out([sheet])
    assert node is not None
    shapes = scaled(Painter(node, sheet.title).paint(), stage.scale(sheet), node.x, node.y)
    return shapes, max(shape.bottom for shape in shapes)


def test_a_slide_that_no_size_of_type_fits_is_split_without_a_layout_of_smaller_type(tmp_path: Path) -> None:
    stage, sheets = stage_and_sheets(f"## Points\n\n{ITEMS}", tmp_path)
    slides = fit(stage, sheets)
    assert len(slides) == 2
    assert stage.steps == [1.0, 1.0, 1.0]


def test_a_slide_that_smaller_type_fits_is_not_split(tmp_path: Path) -> None:
    items = "".join(ITEMS.splitlines(keepends=True)[:13])
    stage, sheets = stage_and_sheets(f"## Points\n\n{items}", tmp_path)
    (slide,) = fit(stage, sheets)
    assert slide.slide.zoom == min(stage.steps) < 1.0


@pytest.mark.parametrize("source", [ITEMS, f"{TEXT * 9}\n\n{TEXT * 5}", f"| What | Count |\n|---|---|\n{ROWS}"])
def test_the_least_height_of_smaller_type_is_not_more_than_its_layout_takes(source: str, tmp_path: Path) -> None:
    stage, (sheet,) = stage_and_sheets(f"## Points\n\n{source}", tmp_path)
    shapes, height = painted(stage, sheet, 1.0)
    _, smaller = painted(stage, sheet, SMALLER)
    assert height * SMALLER * SMALLER / 2 < least_height(paragraphs_of(shapes), height, SMALLER) <= smaller + 1


def test_type_does_not_grow_to_a_size_in_which_the_lines_are_certain_to_wrap(tmp_path: Path) -> None:
    items = "".join(f"- {TEXT}Again and again.\n" for _ in range(6))
    stage, sheets = stage_and_sheets(f"## Points\n\n{items}", tmp_path)
    (slide,) = fit(stage, sheets)
    assert 1.0 < slide.slide.zoom < max(ROOMY_STEPS)
    assert stage.steps == [1.0, slide.slide.zoom]
