"""Fits slides: pictures get smaller, type is scaled, and what still overflows is split."""

import math
from dataclasses import dataclass, field, replace

from render.frontend.element_tree import classes_of
from render.slides.arrange import growth_of
from render.slides.boxes_to_shapes import Painter
from render.slides.canvas import slide_height, slide_width
from render.slides.css import MARGIN_BOTTOM, ROOMY_STEPS, STEPS
from render.slides.geometry_checks import faults, fitted, least_height, overflow, paragraphs_of
from render.slides.layout import PLAIN, Sheet, Stage, mend_grids
from render.slides.lost_words import lacks_words
from render.slides.model import LineShape, PictureShape, Shape, Slide, TableShape, TextShape
from render.slides.place import block_of, centre, content_bottom, settle_block
from render.slides.px_to_slide import grow_chart, scaled
from render.slides.shape_fills import ground_shapes, pictures_behind
from render.slides.splitting.long_tables import spread
from render.slides.splitting.slide_content import flow
from render.slides.splitting.split_after_layout import parts_of, plan, room_below, units_of
from render.slides.splitting.split_before_layout import presplit
from render.slides.splitting.split_text import cut_text
from render.slides.splitting.wide_tables import SMALLEST_STEP, column_parts, cuts_words
from render.weasy.box_style import Gradient, Paint
from render.weasy.boxes import BoxNode
from render.weasy.grounds import Ground, flattened

PICTURES = (400, 320, 240)
SMALLEST_TYPE = 14 / 0.75
"""Body text isn't scaled below 14 points."""

_STEP_FLOOR = 0.75
_GROWTH, _FULL = 1.7, 0.93
_PASSES_MAX = 40
_DEPTH_MAX = 6
SHEETS_MAX = 3000


@dataclass(slots=True)
class Fitted:
    """A sheet that has become a slide."""

    sheet: Sheet
    slide: Slide


@dataclass(slots=True)
class _Job:
    """A sheet on its way, with the first layout of it, which a split is planned on."""

    sheet: Sheet
    first: BoxNode | None = None
    first_scale: float = 1.0
    done: Slide | None = None
    fresh: list["_Job"] = field(default_factory=list)


def fit(stage: Stage, sheets: list[Sheet]) -> list[Fitted]:
    """Lays sheets out until each of them fits.

    Args:
        stage: where they are laid out.
        sheets: in the order of the deck.

    Returns:
        Slides in order; a split sheet's parts follow each other.
    """
    jobs = [job for sheet in sheets for job in _spread(stage, sheet)]
    for passed in range(_PASSES_MAX):
        open_jobs = [job for job in jobs if job.done is None]
        if not open_jobs:
            break
        last = passed >= _PASSES_MAX - 2 or len(jobs) > SHEETS_MAX
        for job, node in zip(open_jobs, stage.lay_out([job.sheet for job in open_jobs]), strict=True):
            job.sheet.tries += 1
            _judge(stage, job, node, last=last or job.sheet.tries > 16)  # noqa: PLR2004 - more than all steps there are
        jobs = [item for job in jobs for item in (job.fresh or [job])]
    return [Fitted(job.sheet, job.done) for job in jobs if job.done is not None]


def _spread(stage: Stage, sheet: Sheet) -> list[_Job]:
    """A job for a sheet; for one with a big table the jobs of its parts, the table's own being done."""
    big = spread(stage, sheet)
    if big is None:
        return [_Job(part) for part in presplit(sheet)]
    jobs = [_Job(part) for part in presplit(big.before)] if big.before else []
    jobs += [_Job(big.sheet, done=slide) for slide in big.slides]
    return jobs + (_spread(stage, big.after) if big.after else [])


def _judge(stage: Stage, job: _Job, node: BoxNode | None, *, last: bool) -> None:
    """Accepts a layout, or changes the sheet for the next one, or splits it."""
    sheet = job.sheet
    if node is None:
        _show(stage, job, last=last)
        return
    if not sheet.wrapped:
        sheet.wrapped = True
        if sheet.trust < PLAIN and mend_grids(node) and not last:
            return
    scale = stage.scale(sheet)
    painter = Painter(node, sheet.title)
    shapes = scaled(painter.paint(), scale, node.x, node.y)
    if sheet.step == 1.0 and job.first is None:
        job.first, job.first_scale = node, scale
    over = overflow(shapes, node.height * scale)
    if sheet.fixed and not last and (over > 0 or faults(shapes)):
        sheet.fixed, job.first = False, None
        return
    if (faults(shapes) or _lost(sheet, shapes)) and sheet.trust < PLAIN and not last:
        sheet.trust += 1
        sheet.step, job.first = 1.0, None
        return
    if not last and _other_size(stage, job, shapes, over):
        return
    shapes = fitted(shapes) if over > 0 or faults(shapes) else shapes
    if lacks_words(sheet.root, shapes):
        stage.lost.append(sheet)
    _settle(stage, sheet, shapes)
    job.done = _slide(stage, sheet, node, shapes, painter.anchors)


def _show(stage: Stage, job: _Job, *, last: bool) -> None:
    """Tries to show a slide that has no box: it waits for a script, or the author's rules put it elsewhere."""
    sheet = job.sheet
    if sheet.show and sheet.trust < PLAIN and not last:
        sheet.trust += 1
    elif sheet.show:
        if lacks_words(sheet.root, []):
            stage.lost.append(sheet)
        job.done = Slide(sheet.draft.kind)
    sheet.show = True


def _settle(stage: Stage, sheet: Sheet, shapes: list[Shape]) -> None:
    """Gives what a slide leaves free to its chart, or to both sides of its content."""
    if sheet.picture and not sheet.draft.authored:
        grow_chart(shapes)
    if any("reveal" in classes_of(item) for item in sheet.draft.chain) and not any(shape.free for shape in shapes):
        centre(shapes)
    elif not stage.design.styled and sheet.draft.kind == "content" and not sheet.draft.backdrops.pictures:
        settle_block(shapes)


def _slide(stage: Stage, sheet: Sheet, node: BoxNode, shapes: list[Shape], anchors: set[str]) -> Slide:
    """The slide of shapes that fit, with what is behind them."""
    layers = flattened((Paint(stage.paper), *node.grounds))
    behind = _behind(sheet, node, layers)
    return Slide(
        sheet.draft.kind,
        shapes=[*behind, *shapes],
        background=layers[0] if isinstance(layers[0], Paint | Gradient) else None,
        pictured=any(isinstance(shape, PictureShape) and shape.width >= slide_width() - 1 for shape in behind),
        anchors=anchors,
        zoom=sheet.step,
    )


def _other_size(stage: Stage, job: _Job, shapes: list[Shape], over: float) -> bool:
    """Tries another size for a slide that is too full or nearly empty; False if there is none to try."""
    sheet = job.sheet
    if sheet.step > 1.0 and (over > 0 or faults(shapes) or content_bottom(shapes) > slide_height() - MARGIN_BOTTOM):
        sheet.step = next((step for step in (*ROOMY_STEPS, 1.0) if step < sheet.step), 1.0)
        return True
    if not stage.design.styled and _is_sparse(sheet, shapes):
        sheet.roomy, sheet.step = True, _roomy_step(shapes, growth_of(sheet.root))
        if sheet.step > 1.0:
            return True
    if cuts_words(shapes) and sheet.step <= 1.0 and sheet.depth < _DEPTH_MAX and _narrower(job):
        return True
    return over > 0 and _retry(job, shapes, over)


def _narrower(job: _Job) -> bool:
    """Makes a table smaller whose columns break words, or spreads its columns over slides; False if neither helps."""
    sheet = job.sheet
    steps = [step for step in STEPS if SMALLEST_STEP <= step < sheet.step]
    if steps:
        sheet.step = steps[min(1, len(steps) - 1)]
        return True
    parts = column_parts(sheet.root, sheet.title)
    for index, (root, title) in enumerate(parts):
        depth = sheet.depth + 1
        fresh = replace(sheet, root=root, title=title, step=1.0, part=index, depth=depth, tries=0, fixed=False)
        job.fresh.append(_Job(fresh))
    return bool(parts)


def _is_sparse(sheet: Sheet, shapes: list[Shape]) -> bool:
    """Whether a slide has nothing but a few lines of text, which can be bigger."""
    if sheet.roomy or sheet.step != 1.0 or sheet.depth or sheet.picture or sheet.draft.kind != "content":
        return False
    kinds = (LineShape, TextShape, TableShape)
    return bool(block_of(shapes)) and all(isinstance(shape, kinds) for shape in block_of(shapes))


def _roomy_step(shapes: list[Shape], most: float) -> float:
    """The largest factor of type that a slide's content has room for: wrapped text grows in both directions."""
    block = block_of(shapes)
    top, bottom = min(shape.y for shape in block), content_bottom(shapes)
    lowest = slide_height() - MARGIN_BOTTOM
    share = (bottom - top) / (lowest - top)
    steps = [step for step in ROOMY_STEPS if step <= most and share * step**_GROWTH < _FULL]
    return next((step for step in steps if _has_room(block, step, lowest)), 1.0)


def _has_room(block: list[Shape], step: float, lowest: float) -> bool:
    """Whether larger type may fit: no frame is certain to run off the slide, as one whose lines all wrap does."""
    frames = [shape for shape in block if isinstance(shape, TextShape)]
    return all(frame.y + least_height(frame.paragraphs, frame.height, step) <= lowest for frame in frames)


def _lost(sheet: Sheet, shapes: list[Shape]) -> bool:
    """Whether most of the words aren't to be seen: hidden, or of no size."""
    wanted = sum(len(text) for item in flow(sheet.root) for text in (item.text or "").split())
    frames = [shape.paragraphs for shape in shapes if isinstance(shape, TextShape)]
    frames += [cell.paragraphs for shape in shapes if isinstance(shape, TableShape) for cell in shape.cells]
    got = sum(
        len(piece.text) for paragraphs in frames for para in paragraphs for piece in para.pieces if piece.size >= 1
    )
    return got < wanted * 0.5


def _behind(sheet: Sheet, node: BoxNode, layers: tuple[Ground, ...]) -> list[Shape]:
    """The pictures behind a slide: its element's own, and those that Marp was given."""
    found = pictures_behind(node)
    for shape in found:
        shape.x, shape.y, shape.width, shape.height = 0.0, 0.0, slide_width(), slide_height()
    rest = node.grounds[1:] if found and node.grounds and isinstance(node.grounds[0], Paint) else node.grounds
    found += ground_shapes(rest if found else layers[1:], slide_width(), slide_height())
    backdrops = sheet.draft.backdrops
    count = len(backdrops.pictures)
    left = slide_width() * (1 - backdrops.share) if backdrops.side == "right" else 0.0
    for index, (element, fit) in enumerate(backdrops.pictures):
        wide, tall = slide_width() * backdrops.share, float(slide_height())
        x, y = left, 0.0
        if backdrops.stacked:
            tall /= count
            y = index * tall
        else:
            wide /= count
            x += index * wide
        alt = element.get("alt") or ""
        found.append(PictureShape(x, y, wide, tall, element=element, alt=alt, decorative=True, fit=fit))
    return found


def _retry(job: _Job, shapes: list[Shape], over: float) -> bool:
    """Makes a sheet that overflows smaller or splits it; False if nothing is left to try."""
    sheet = job.sheet
    if _smaller_pictures(sheet, over):
        job.first = None
        return True
    floor = max(_STEP_FLOOR, min(1.0, SMALLEST_TYPE / max(1.0, _body_size(shapes) / sheet.step)))
    emergency = sheet.depth >= _DEPTH_MAX or sheet.step < _STEP_FLOOR
    if not emergency:
        ratio = slide_height() / (slide_height() + over)
        guess = min(1.0, math.sqrt(ratio) + 0.06) * sheet.step
        steps = [step for step in STEPS if floor - 1e-6 <= step < sheet.step and step <= guess]
        hopeful = math.sqrt(ratio) * sheet.step >= floor - 0.04 and (
            sheet.draft.authored
            or least_height(paragraphs_of(shapes), slide_height() + over, floor / sheet.step) <= slide_height()
        )
        if steps and not sheet.coarse and hopeful:
            sheet.step = steps[0]
            return True
        if _split(job):
            return True
    if sheet.trust < PLAIN:
        sheet.trust, sheet.step, job.first = PLAIN, 1.0, None
        return True
    lower = [step for step in STEPS if step < sheet.step]
    if not lower:
        return False
    sheet.step = lower[0]
    return True


def _smaller_pictures(sheet: Sheet, over: float) -> bool:
    """Pictures and charts give way first."""
    current = sheet.picture or 470
    if sheet.step < 1.0 or current <= PICTURES[-1]:
        return False
    if not any(
        item.tag in {"img", "svg"} or "pb-chart" in classes_of(item)
        for item in sheet.root.iter()
        if isinstance(item.tag, str)
    ):
        return False
    wanted = [size for size in PICTURES if size < current and size <= current - over]
    sheet.picture = wanted[0] if wanted else PICTURES[-1]
    return True


def _body_size(shapes: list[Shape]) -> float:
    """The size that most of the text has, in slide pixels."""
    weights: dict[float, int] = {}
    for shape in shapes:
        if isinstance(shape, TextShape) and shape.role not in {"title", "code", "footnotes"}:
            for para in shape.paragraphs:
                for piece in para.pieces:
                    weights[round(piece.size, 1)] = weights.get(round(piece.size, 1), 0) + len(piece.text)
    return max(weights, key=lambda size: weights[size]) if weights else 26.0


def _split(job: _Job) -> bool:
    """Splits a sheet at the edges of its units, or within its text if it is one unit."""
    sheet, node = job.sheet, job.first
    if node is None:
        sheet.step = 1.0
        return sheet.tries < 12  # noqa: PLR2004 - laid out once more at full size, to be split then
    probe = units_of(node, sheet.title, 1e9)
    if not probe:
        return False
    top = min(unit.top for unit in probe) - node.y
    bottom = [
        child for child in node.children if child.element is not None and "pb-bottom" in classes_of(child.element)
    ]
    margin = MARGIN_BOTTOM + sum(child.height for child in bottom) * job.first_scale + (20 if bottom else 0)
    room = room_below(top, job.first_scale, margin)
    units = units_of(node, sheet.title, room)
    cut = plan(units, room)
    parts = parts_of(sheet.root, sheet.title, cut) if cut.count > 1 else []
    if len(parts) < 2:  # noqa: PLR2004 - one part is no split
        height = max(unit.bottom for unit in units) - min(unit.top for unit in units)
        parts = cut_text(sheet.root, sheet.title, math.ceil(height / room * 1.15))
    if len(parts) < 2:  # noqa: PLR2004
        return False
    for index, (root, title) in enumerate(parts):
        fresh = replace(
            sheet,
            root=root,
            title=title,
            step=1.0,
            part=index,
            depth=sheet.depth + 1,
            tries=0,
            coarse=False,
            fixed=sheet.draft.authored,
            picture=0,
        )
        job.fresh.append(_Job(fresh))
    return True
