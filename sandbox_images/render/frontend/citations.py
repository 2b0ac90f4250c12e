"""Citation tokens to numbered links, and the list of what was cited."""

import re
from bisect import bisect_left, bisect_right
from urllib.parse import quote
from xml.etree.ElementTree import Element

from render.frontend.element_tree import LITERAL, Pieces, body_of, edit_texts, make, parents_of
from render.model import Document, Source

TOKEN = re.compile(r"\[\[\s*[sS]\s*:\s*([0-9][0-9\s,;\u2010-\u2015-]{0,400})\]\]")
_RANGE = re.compile(r"(\d+)\s*[-\u2010-\u2015]\s*(\d+)|(\d+)")
SID_DIGITS_MAX = 12
PICTURE_ENDS = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".bmp", ".tif", ".tiff", ".svg")
UNRESOLVED_MAX = 20
"""Of a range past the pool so many are named; the rest is one 'and so on'."""


def resolve_citations(document: Document) -> None:
    """Replaces the tokens of a document and appends its list of sources, if the request wants it."""
    _Citations(document).resolve()
    wanted = "include_sources_slide" if document.request.output == "pptx" else "include_sources_section"
    if document.cited and document.request.options.get(wanted, document.request.output in {"pdf", "docx", "xlsx"}):
        body_of(document.tree).append(sources_section(document.cited))


def sources_section(cited: list[Source]) -> Element:
    """The list of sources: number, title, link; never where a file is hosted."""
    section = make("section", {"class": "pb-sources"}, None, make("h2", {"id": "pb-sources"}, "Sources"))
    rows = make("ol")
    for number, source in enumerate(cited, 1):
        row = make("li", {"id": f"pb-source-{number}", "value": str(number)})
        title = source.title or source.url or source.path or f"Source {source.sid}"
        if link_of(source):
            row.append(make("a", {"href": link_of(source)}, title))
            if source.title and source.url:
                row.append(make("span", {"class": "pb-source-url"}, f" {source.url}"))
        else:
            row.text = title
        rows.append(row)
    section.append(rows)
    return section


def link_of(source: Source) -> str:
    """The link of a source: pages of the web only, so no address of a store gets into a document."""
    url = (source.url or "").strip()
    return url if re.match(r"https?://", url, re.IGNORECASE) else ""


class _Citations:
    def __init__(self, document: Document) -> None:
        self.document = document
        self.pool = {source.sid: source for source in document.request.sources}
        self.sids = sorted(self.pool)
        self.numbers: dict[int, int] = {}
        self.parents: dict[Element, Element] = {}

    def resolve(self) -> None:
        tree = self.document.tree
        if not any("[[" in text for text in tree.itertext()):
            return
        self.parents = parents_of(tree)
        if self.document.request.output != "xlsx":
            for paragraph in list(tree.iter("p")):
                self.show_picture(paragraph)
        edit_texts(body_of(tree), LITERAL, self.split)

    def show_picture(self, paragraph: Element) -> None:
        """Makes a figure of a paragraph that is the citation of a picture and nothing else."""
        match = TOKEN.fullmatch((paragraph.text or "").strip()) if not len(paragraph) else None
        source = self.pool.get(int(match[1])) if match and match[1].strip().isdecimal() else None
        if source is None or not (source.path or "").lower().endswith(PICTURE_ENDS):
            return
        picture = make("img", {"src": quote(source.path or ""), "alt": source.title or "image"})
        caption = make("figcaption", None, f"{source.title} {paragraph.text}".strip())
        self.parents[paragraph][list(self.parents[paragraph]).index(paragraph)] = figure = make("figure")
        figure.extend([picture, caption])
        figure.tail = paragraph.tail
        self.parents |= {picture: figure, caption: figure, figure: self.parents[paragraph]}

    def split(self, text: str, parent: Element) -> Pieces | None:
        if "[[" not in text or not TOKEN.search(text):
            return None
        pieces: Pieces = []
        end = 0
        for match in TOKEN.finditer(text):
            pieces.append(text[end : match.start()])
            pieces.append(self.mark(match, self.in_link(parent)))
            end = match.end()
        pieces.append(text[end:])
        return pieces

    def in_link(self, element: Element | None) -> bool:
        while element is not None:
            if element.tag == "a":
                return True
            element = self.parents.get(element)
        return False

    def mark(self, match: re.Match[str], in_link: bool) -> Element:
        found, lost = self.read(match[1])
        if lost:
            self.document.warn(
                "unresolved_citation",
                f"{match[0]} names sources that are not in the pool: {', '.join(lost)}.",
                sids=lost,
            )
        if not found:
            return make("span", {"class": "pb-unresolved"}, f"[{', '.join(lost) or '?'}?]")
        group = make("span", {"class": "pb-cites"}, "[")
        for sid in found:
            if len(group):
                group[-1].tail = ", "
            group.append(self.link(sid, in_link))
        group[-1].tail = "".join(f", {sid}?" for sid in lost) + "]"
        return group

    def link(self, sid: int, in_link: bool) -> Element:
        source = self.pool[sid]
        if sid not in self.numbers:
            self.document.cited.append(source)
            self.numbers[sid] = len(self.document.cited)
        number = self.numbers[sid]
        attributes = {"class": "pb-cite", "data-sid": str(sid)}
        if in_link:
            return make("span", attributes, str(number))
        attributes["href"] = link_of(source) or f"#pb-source-{number}"
        if source.title:
            attributes["title"] = source.title
        return make("a", attributes, str(number))

    def read(self, text: str) -> tuple[list[int], list[str]]:
        """The sids of a token that the pool has, in order and once each, and those that it hasn't."""
        found: dict[int, None] = {}
        lost: list[str] = []
        for match in _RANGE.finditer(text):
            numbers = [part for part in match.groups() if part]
            if any(len(part) > SID_DIGITS_MAX for part in numbers):
                lost.append(match[0][:40])
                continue
            first, last = min(map(int, numbers)), max(map(int, numbers))
            known = self.sids[bisect_left(self.sids, first) : bisect_right(self.sids, last)]
            found.update(dict.fromkeys(known))
            gaps = last - first + 1 - len(known)
            if gaps and gaps <= UNRESOLVED_MAX and last - first <= UNRESOLVED_MAX + len(known):
                lost.extend(str(sid) for sid in range(first, last + 1) if sid not in self.pool)
            elif gaps:
                lost.append(f"{first}\u2013{last}")
        return list(found), lost
