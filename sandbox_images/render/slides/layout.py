"""Drafts to laid-out slides: one document with a page for each, an author's ancestors and rules around them."""

from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from render.layout.boxes import BoxNode, Layouter
from render.slides.css import design_width, tame, zoom_class
from render.slides.model import HEIGHT, WIDTH
from render.slides.segment import Draft
from render.source.tree_edits import add_class, make

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


@dataclass(slots=True)
class Stage:
    """Where slides are laid out.

    Attributes:
        layouter: the layout engine, with the deck's rules.
        author_css: the author's rules, tamed.
        width: the width that the author designed for.
        html, body: the document's own elements, for their attributes.
    """

    layouter: Layouter
    author_css: str
    width: int
    html: dict[str, str] = field(default_factory=dict)
    body: dict[str, str] = field(default_factory=dict)

    def scale(self, sheet: Sheet) -> float:
        """Slide pixels per pixel of layout."""
        base = WIDTH / self.width if sheet.trust < PLAIN else 1.0
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
                for page in self.layouter.pages(self._document(batch[start : start + 40], plain=plain)):
                    for node in page.walk():
                        if node.principal and node.element is not None and node.element.get("data-pb-slide"):
                            boxes.setdefault(id(node.element), node)
        return [boxes.get(id(sheet.root)) for sheet in sheets]

    def _document(self, sheets: list[Sheet], *, plain: bool) -> Element:
        rules = [self._page_rules(sheet) for sheet in sheets]
        css = "" if plain else self.author_css
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
        width, height = WIDTH / scale, HEIGHT / scale
        name = f"{zoom_class(sheet.step)}"
        extra = "x" if sheet.trust == PLAIN else ""
        return (
            f"@page {name}{extra}{{size:{width:.2f}px 400000px;margin:0}}"
            f".{name}.pb-slide{{width:{width:.2f}px!important;min-height:{height:.2f}px!important}}"
            f"{f'.{name}.pb-slide{{page:{name}{extra}!important}}' if extra else ''}"
        )

    def _prepare(self, sheet: Sheet) -> None:
        """Sets the classes and styles that our rules look for."""
        root = sheet.root
        directives = sheet.draft.directives
        keep = [name for name in (root.get("class") or "").split() if not name.startswith("pb-")]
        names = ["pb-slide", zoom_class(sheet.step), f"pb-kind-{sheet.draft.kind}", *keep]
        names += [*(f"pb-class-{name}" for name in directives.classes), *directives.classes]
        names += ["active", "current", "visible"] if self.author_css and sheet.draft.authored else []
        names += [f"pb-p{sheet.picture}"] if sheet.picture else []
        names += ["pb-calm"] if sheet.trust >= CALM else []
        names += ["pb-show"] if sheet.show else []
        root.set("class", " ".join(dict.fromkeys(names)))
        root.set("data-pb-slide", "1")
        if sheet.trust == PLAIN:
            for element in root.iter():
                if not element.get("data-pb"):
                    element.attrib.pop("style", None)
        _paint_root(root, {"color": directives.colour, "background": directives.background})
        if sheet.title is not None:
            add_class(sheet.title, "pb-title")


def _paint_root(root: Element, colours: dict[str, str]) -> None:
    """What Marp was told of a slide's colours, once."""
    style = root.get("style", "")
    for name, value in colours.items():
        if value and value not in style:
            style = f"{style};{name}:{value}"
    if style:
        root.set("style", style)


def wrap_grids(box: BoxNode) -> bool:
    """Puts grids and rows in a column of flexible items into blocks: there the engine gets their heights right.

    Returns:
        Whether something was wrapped, so that the slide has to be laid out again.
    """
    wrapped = False
    for node in list(box.walk()):
        if node.kind != "flex" or not node.look.stacked or node.element is None:
            continue
        inner = {
            id(child.element) for child in node.children if child.kind in {"grid", "flex"} and not child.out_of_flow
        }
        for index, child in enumerate(list(node.element)):
            if id(child) in inner and child is not node.element:
                wrapper = make("div", {"style": "width:100%"}, None, child)
                wrapper.tail, child.tail = child.tail, None
                node.element[index] = wrapper
                wrapped = True
    return wrapped


def author_rules(tree: Element) -> tuple[str, int]:
    """The rules of a document's ``style`` elements, fit for slides, and the width they're designed for.

    Style attributes are tamed in place.
    """
    css = "\n".join(element.text or "" for element in tree.iter("style") if not element.get("data-pb"))
    inline = "".join(f"{{{element.get('style')}}}" for element in tree.iter() if element.get("style"))
    width = design_width(css + inline)
    for element in tree.iter():
        style = element.get("style")
        if style:
            element.set("style", tame(style, width))
    return tame(css, width), width
