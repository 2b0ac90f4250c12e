"""Drafts to laid-out slides: one document with a page for each, an author's ancestors and rules around them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from render.frontend.element_tree import add_class, make
from render.model import RenderError
from render.slides.author_css import rules_of
from render.slides.canvas import slide_height, slide_width
from render.slides.css import zoom_class
from render.slides.design import Design
from render.slides.splitting.split_document import Draft
from render.weasy.boxes import BoxNode, Layouter
from render.weasy.grounds import Ground, Tile

_COLUMNS_MAX = 100
_CALM = re.compile(
    r"(?<![-\w])(?:text-align|color|background-color|font-weight|font-style|text-decoration|list-style)"
    r"\s*:[^;]*"
)
"""What of a style attribute can do no harm."""
_FAULTY_MAX = 5
"""So many rules that the engine fails on are searched for, one at a time."""
_GUTTER = 48
"""Pixels between a slide's text and a picture beside it."""
FULL, CALM, PLAIN = 0, 1, 2
"""How much of an author's rules is kept: all, all but positions, none."""


@dataclass(slots=True)
class Sheet:
    """What is laid out as one slide: a draft or a part of one.

    Attributes:
        draft: where it comes from.
        root: the slide's element; its copies of elements are its own.
        title: the title's element in it.
        step: factor of type.
        picture: greatest height of pictures in pixels, 0 for the usual.
        trust: how much of the author's rules is kept.
        show: whether display has to be forced.
        part: which part of the draft, from 0.
        depth: how often it was split.
        tries: how often it was laid out.
        wrapped: whether grids in columns were put into blocks.
        coarse: whether it was cut without layout, and so is to be split, not scaled.
        roomy: whether bigger type was tried.
        fixed: whether it is exactly as tall as a slide, as its author takes it to be; one that is too full isn't.
    """

    draft: Draft
    root: Element
    title: Element | None = None
    step: float = 1.0
    picture: int = 0
    trust: int = FULL
    show: bool = False
    part: int = 0
    depth: int = 0
    tries: int = 0
    wrapped: bool = False
    coarse: bool = False
    roomy: bool = False
    fixed: bool = False


@dataclass(slots=True)
class Stage:
    """Where slides are laid out.

    Attributes:
        layouter: the layout engine, with the deck's rules.
        author_css: the author's rules, tamed.
        width: the width that the author designed for.
        html, body: the document's own elements, for their attributes.
        paper: ``rrggbb`` of the ground that a slide has of its own accord.
        design: what the document settles itself.
        dropped: rules that could not be laid out, and were left out.
        plain_css: rules of slides whose author's rules are of no use.
        lost: slides that lack most of their words.
    """

    layouter: Layouter
    author_css: str
    width: float
    html: dict[str, str] = field(default_factory=dict)
    body: dict[str, str] = field(default_factory=dict)
    paper: str = "ffffff"
    design: Design = field(default_factory=Design)
    dropped: list[str] = field(default_factory=list)
    plain_css: str = ""
    lost: list[Sheet] = field(default_factory=list)

    def scale(self, sheet: Sheet) -> float:
        """Slide pixels per pixel of layout."""
        base = slide_width() / self.width if sheet.trust < PLAIN else 1.0
        return base * sheet.step

    def lay_out(self, sheets: list[Sheet]) -> list[BoxNode | None]:
        """Lays slides out.

        Returns:
            The box of each slide's root, None for one that isn't shown.
        """
        boxes: dict[int, BoxNode] = {}
        for plain in (False, True):
            batch = [sheet for sheet in sheets if (sheet.trust == PLAIN) == plain]
            for start in range(0, len(batch), 40):
                for page in self._pages(batch[start : start + 40], plain=plain):
                    for node in _roots(page):
                        boxes.setdefault(id(node.element), node)
        return [boxes.get(id(sheet.root)) for sheet in sheets]

    def _pages(self, sheets: list[Sheet], *, plain: bool) -> list[BoxNode]:
        """Lays slides out; a rule of the author's that makes the engine fail is left out, and noted.

        Raises:
            Exception: what the engine raises on rules that no single one of is at fault.
        """
        for _ in range(_FAULTY_MAX):
            try:
                return self.layouter.pages(self._document(sheets, plain=plain))
            except (MemoryError, RenderError):
                raise
            except Exception:
                if plain or not self._drop_faulty(sheets):
                    raise
        return self.layouter.pages(self._document(sheets, plain=plain))

    def _drop_faulty(self, sheets: list[Sheet]) -> bool:
        """Takes out the rule that makes the engine fail; False if it fails without any of them, too."""
        rules, css = rules_of(self.author_css), self.author_css
        faulty = next((sheet for sheet in sheets if self._fails([sheet])), None)
        tried = [faulty] if faulty is not None else sheets
        least, most = 0, len(rules)
        self.author_css = ""
        hopeless = self._fails(tried)
        while not hopeless and most - least > 1:
            middle = (least + most) // 2
            self.author_css = "\n".join(rules[:middle])
            least, most = (least, middle) if self._fails(tried) else (middle, most)
        if hopeless or not rules:
            self.author_css = css
            return False
        self.dropped.append(" ".join(rules[most - 1].split())[:200])
        self.author_css = "\n".join(rules[: most - 1] + rules[most:])
        return True

    def _fails(self, sheets: list[Sheet]) -> bool:
        try:
            self.layouter.pages(self._document(sheets, plain=False))
        except Exception:  # noqa: BLE001 - the engine fails with all kinds of errors on hostile styles
            return True
        return False

    def _document(self, sheets: list[Sheet], *, plain: bool) -> Element:
        rules = [self._page_rules(sheet) for sheet in sheets]
        css = self.plain_css if plain else self.author_css
        style = make("style", None, css + "\n" + "\n".join(sorted(set(rules))))
        html = make("html", dict(self.html), None, make("head", None, None, style))
        body = make("body", {} if plain else dict(self.body))
        body.set("data-pb-chain", "1")
        html.append(body)
        chain: tuple[Element, ...] = ()
        place = body
        for sheet in sheets:
            wanted = () if plain else tuple(item for item in sheet.draft.chain if item.tag not in {"body", "html"})
            if [id(item) for item in wanted] != [id(item) for item in chain] or place is body:
                chain, place = wanted, body
                for item in wanted:
                    inner = make(str(item.tag) if item.tag != "section" else "div", dict(item.attrib))
                    inner.set("data-pb-chain", "1")
                    place.append(inner)
                    place = inner
            self._prepare(sheet)
            place.append(sheet.root)
        return html

    def _page_rules(self, sheet: Sheet) -> str:
        scale = self.scale(sheet)
        width, height = slide_width() / scale, slide_height() / scale
        name = f"{zoom_class(sheet.step)}"
        extra = "x" if sheet.trust == PLAIN else ""
        return (
            f"@page {name}{extra}{{size:{width:.2f}px 400000px;margin:0}}"
            f".{name}.pb-slide{{width:{width:.2f}px!important;min-height:{height:.2f}px!important}}"
            f".{name}.pb-slide.pb-fixed{{height:{height:.2f}px!important}}"
            f"{f'.{name}.pb-slide{{page:{name}{extra}!important}}' if extra else ''}"
        )

    def _prepare(self, sheet: Sheet) -> None:
        """Sets the classes and styles that our rules look for."""
        root = sheet.root
        directives = sheet.draft.directives
        given = (root.get("class") or "").split()
        keep = [name for name in given if not name.startswith("pb-") or name.startswith("pb-l-")]
        names = ["pb-slide", zoom_class(sheet.step), f"pb-kind-{sheet.draft.kind}", *keep]
        names += [*(f"pb-class-{name}" for name in directives.classes), *directives.classes]
        names += ["active", "current", "visible"] if self.author_css and sheet.draft.authored else []
        names += [f"pb-p{sheet.picture}"] if sheet.picture else []
        names += ["pb-calm"] if sheet.trust >= CALM else []
        names += ["pb-show"] if sheet.show else []
        names += ["pb-fixed"] if sheet.fixed else []
        names += ["pb-coloured"] if directives.colour else []
        names += ["pb-grounded"] if own_ground(sheet.draft) else []
        root.set("class", " ".join(dict.fromkeys(names)))
        root.set("data-pb-slide", "1")
        if sheet.trust == PLAIN:
            for element in root.iter():
                style = element.get("style")
                if style and not element.get("data-pb"):
                    element.set("style", ";".join(_CALM.findall(style)))
        own = root.attrib.setdefault("data-pb-own", root.get("style") or "")
        own = ";".join(_CALM.findall(own)) if sheet.trust == PLAIN else own
        wanted = {"color": directives.colour, "background-color": directives.background}
        wanted["background-image"] = directives.image
        backdrops = sheet.draft.backdrops
        if backdrops.side:
            wanted[f"padding-{backdrops.side}"] = (
                f"{(slide_width() * backdrops.share + _GUTTER) / self.scale(sheet):.1f}px"
            )
        rules = "".join(f";{name}:{value}" for name, value in wanted.items() if value)
        if own or rules:
            root.set("style", own + rules)
        if sheet.title is not None:
            add_class(sheet.title, "pb-title")


def own_ground(draft: Draft) -> bool:
    """Whether its directives give a slide a ground."""
    return bool(draft.directives.background or draft.directives.image or draft.backdrops.pictures)


def _roots(page: BoxNode) -> Iterator[BoxNode]:
    """The boxes of the slides on a page; behind each is what is behind the elements around it, too."""
    stack: list[tuple[BoxNode, tuple[Ground, ...]]] = [(page, ())]
    while stack:
        node, below = stack.pop()
        if node.principal and node.element is not None and node.element.get("data-pb-slide"):
            node.grounds = (*below, *node.grounds)
            yield node
            continue
        around = (*below, *(ground for ground in node.grounds if not isinstance(ground, Tile)))
        around = node.grounds if node is page else around
        stack.extend((child, around) for child in reversed(node.children))


def mend_grids(box: BoxNode) -> bool:
    """Helps the engine with grids: columns that fit by themselves are counted, grids in a column get blocks around.

    Returns:
        Whether something was changed, so that the slide has to be laid out again.
    """
    changed = False
    for node in list(box.walk()):
        if node.element is None:
            continue
        if node.kind == "grid" and node.principal:
            changed = _count_columns(node, node.element) or changed
        elif node.kind == "flex" and node.look.stacked:
            changed = _wrap_rows(node, node.element) or changed
    return changed


def _count_columns(node: BoxNode, element: Element) -> bool:
    fitting = node.look.fitting_columns
    if fitting is None:
        return False
    least, gap, fit = fitting
    count = int((node.inner_width + gap + 0.5) // (least + gap))
    items = sum(1 for child in node.children if not child.out_of_flow)
    count = max(1, min(count, items if fit else count, _COLUMNS_MAX))
    element.set("style", f"{element.get('style') or ''};grid-template-columns:repeat({count},1fr)")
    return True


def _wrap_rows(node: BoxNode, element: Element) -> bool:
    """Puts grids and rows in a column of flexible items into blocks: there the engine gets their heights right."""
    inner = {
        id(child.element)
        for child in node.children
        if (child.kind == "grid" or (child.kind == "flex" and not child.look.stacked))
        and not child.out_of_flow
        and not child.look.grows  # it takes the height that is left, which a block around it would not hand on
    }
    wrapped = False
    for index, child in enumerate(list(element)):
        if id(child) in inner and child is not element:
            wrapper = make("div", {"style": "width:100%"}, None, child)
            wrapper.tail, child.tail = child.tail, None
            element[index] = wrapper
            wrapped = True
    return wrapped
