"""The table of contents: a field that Word can update, with its entries filled in."""

from render.docx.state import Place, State, Target
from render.docx.xml import text_elements
from render.ir import Block, Chart, Code, Contents, Diagram, Figure, Heading, PageBreak, Paragraph, Table
from render.reading.flat import walk

DEEPEST = 3
MAX_ENTRIES = 2000
_LINES = 44
_CHARACTERS = 92
_PICTURE_LINES = 16


def contents_xml(state: State, place: Place, _block: Contents) -> str:
    """The paragraphs of the table of contents."""
    targets, top = listed(state)
    title = f'<w:p><w:pPr><w:pStyle w:val="TOCHeading"/></w:pPr><w:r>{text_elements("Contents")}</w:r></w:p>'
    if not targets or place.note or state.counters.get("contents"):
        return ""
    state.number("contents")
    pages = estimated_pages(state.content.blocks)
    instruction = f' TOC \\o "{top}-{top + DEEPEST - 1}" \\h \\z \\u '
    begin = (
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
        f'<w:r><w:instrText xml:space="preserve">{instruction}</w:instrText></w:r><w:r>'
        '<w:fldChar w:fldCharType="separate"/></w:r>'
    )
    end = '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    parts = [title]
    for number, target in enumerate(targets):
        level = min(max(target.heading.level - top + 1, 1), 6)
        entry = _entry(target, pages.get(id(target.heading), 1))
        inner = (begin if number == 0 else "") + entry + (end if number == len(targets) - 1 else "")
        parts.append(f'<w:p><w:pPr><w:pStyle w:val="TOC{level}"/></w:pPr>{inner}</w:p>')
    return "".join(parts)


def listed(state: State) -> tuple[list[Target], int]:
    """The headings that are listed, and their highest level; a title that is the only one of its level is none."""
    targets = [target for target in state.headings.values() if target.text]
    tops = [target for target in targets if target.heading.level == 1]
    if len(tops) == 1 and len(targets) > 1:
        targets = [target for target in targets if target is not tops[0]]
    top = min((target.heading.level for target in targets), default=1)
    return [target for target in targets if target.heading.level < top + DEEPEST][:MAX_ENTRIES], top


def _entry(target: Target, page: int) -> str:
    # The page is an estimate until a reader lays the document out. Fields marked as outdated would make Word ask
    # whether it may update them, whenever the document is opened.
    return (
        f'<w:hyperlink w:anchor="{target.bookmark}" w:history="1">'
        f"<w:r>{text_elements(target.text)}</w:r><w:r><w:tab/></w:r>"
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
        f'<w:r><w:instrText xml:space="preserve"> PAGEREF {target.bookmark} \\h </w:instrText></w:r>'
        f'<w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>{page}</w:t></w:r>'
        '<w:r><w:fldChar w:fldCharType="end"/></w:r></w:hyperlink>'
    )


def lines_of(blocks: list[Block]) -> float:
    """About how many lines of a page blocks take."""
    return sum(_lines(block) for block in walk(blocks))


def _lines(block: Block) -> float:
    if isinstance(block, Heading):
        return 2.0
    if isinstance(block, Table):
        return block.rows * 0.4
    if isinstance(block, Figure | Diagram | Chart):
        return _PICTURE_LINES
    if isinstance(block, Code):
        return len(block.lines) * 0.8
    if isinstance(block, Paragraph):
        length = sum(len(getattr(inline, "text", "x")) for inline in block.inlines)
        return length // _CHARACTERS + 1.4
    return 0.0


def estimated_pages(blocks: list[Block]) -> dict[int, int]:
    """About the page of each heading, by ``id()``: lines of text and heights of pictures are counted."""
    pages: dict[int, int] = {}
    lines = 0.0
    for block in walk(blocks):
        if isinstance(block, PageBreak):
            lines = (lines // _LINES + 1) * _LINES
        lines += _lines(block)
        if isinstance(block, Heading):
            pages[id(block)] = int(lines // _LINES) + 1
    return pages
