"""The table of contents: a field that Word can update, with its entries filled in."""

from render.docx.height_estimate import pages_of
from render.docx.pages import page_of
from render.docx.writer_state import Place, State, Target
from render.docx.xml import text_elements
from render.ir import Contents, Paragraph

DEEPEST = 3
MAX_ENTRIES = 2000
_TWIPS_PER_POINT = 20


def contents_xml(state: State, place: Place, _block: Contents) -> str:
    """The paragraphs of the table of contents."""
    targets, top = listed(state)
    title = f'<w:p><w:pPr><w:pStyle w:val="TOCHeading"/></w:pPr><w:r>{text_elements("Contents")}</w:r></w:p>'
    if not targets or place.note or state.counters.get("contents"):
        return ""
    state.number("contents")
    page = page_of(state.document.request.options)
    text = page.text_width / _TWIPS_PER_POINT, page.text_height / _TWIPS_PER_POINT
    pages = pages_of(state.content.blocks, text, len(targets))
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
    titled = any(
        isinstance(block, Paragraph) and block.style in {"Title", "CoverTitle"} for block in state.content.blocks
    )
    if len(tops) == 1 and len(targets) > 1 and not titled:
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
