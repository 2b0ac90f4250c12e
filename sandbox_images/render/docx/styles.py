"""The style sheet of DOCX files: named styles in the theme's fonts and colours."""

from render.docx.xml import DECLARATION, NAMESPACES, attribute, hexa
from render.font_families import code_face
from render.model import Theme

HEADING_SIZES = (48, 32, 26, 23, 22, 22)
"""Half points, by level."""
_BODY_SIZE = 22
_SMALL_SIZE = 18
_LANGUAGES = {
    "en": "en-US", "de": "de-DE", "fr": "fr-FR", "es": "es-ES", "it": "it-IT", "pt": "pt-PT", "nl": "nl-NL",
    "pl": "pl-PL", "ru": "ru-RU", "uk": "uk-UA", "sv": "sv-SE", "da": "da-DK", "fi": "fi-FI", "nb": "nb-NO",
    "no": "nb-NO", "cs": "cs-CZ", "sk": "sk-SK", "hu": "hu-HU", "ro": "ro-RO", "bg": "bg-BG", "el": "el-GR",
    "tr": "tr-TR", "ar": "ar-SA", "he": "he-IL", "fa": "fa-IR", "ur": "ur-PK", "hi": "hi-IN", "th": "th-TH",
    "vi": "vi-VN", "id": "id-ID", "ja": "ja-JP", "ko": "ko-KR", "zh": "zh-CN", "bn": "bn-BD", "ta": "ta-IN",
}  # fmt: skip
_EAST = frozenset({"ja", "ko", "zh"})
_BIDI = frozenset({"ar", "he", "fa", "ur", "hi", "th"})


def language_tag(language: str) -> str:
    """A language with its country, as Word names it."""
    return _LANGUAGES.get(language.lower(), language) or "en-US"


def language_xml(language: str) -> str:
    """``w:lang`` of a text: the language counts for letters of its own kind."""
    tag = attribute(language_tag(language))
    short = tag.split("-")[0].lower()
    if short in _EAST:
        return f'<w:lang w:val="en-US" w:eastAsia="{tag}" w:bidi="ar-SA"/>'
    if short in _BIDI:
        return f'<w:lang w:val="en-US" w:eastAsia="zh-CN" w:bidi="{tag}"/>'
    return f'<w:lang w:val="{tag}" w:eastAsia="zh-CN" w:bidi="ar-SA"/>'


def _fonts(kind: str) -> str:
    return (
        f'<w:rFonts w:asciiTheme="{kind}HAnsi" w:hAnsiTheme="{kind}HAnsi" '
        f'w:eastAsiaTheme="{kind}EastAsia" w:cstheme="{kind}Bidi"/>'
    )


def mono(theme: Theme) -> str:
    """The font of code."""
    name = attribute(code_face(theme.mono_font))
    return f'<w:rFonts w:ascii="{name}" w:hAnsi="{name}" w:cs="{name}"/>'


def size_xml(half_points: int) -> str:
    """The size of type."""
    return f'<w:sz w:val="{half_points}"/><w:szCs w:val="{half_points}"/>'


def _style(kind: str, name: str, inner: str, *, own: str = "", default: bool = False) -> str:
    identity = own or name.replace(" ", "").replace("heading", "Heading").replace("toc", "TOC")
    marks = ' w:default="1"' if default else ""
    return f'<w:style w:type="{kind}"{marks} w:styleId="{identity}"><w:name w:val="{name}"/>{inner}</w:style>'


def _paragraph(name: str, pPr: str = "", rPr: str = "", *, own: str = "", links: str = "") -> str:  # noqa: N803
    """A paragraph style; ``links`` are its uiPriority and the like, in the order of the schema."""
    inner = '<w:basedOn w:val="Normal"/>' + links
    inner += f"<w:pPr>{pPr}</w:pPr>" if pPr else ""
    inner += f"<w:rPr>{rPr}</w:rPr>" if rPr else ""
    return _style("paragraph", name, inner, own=own)


def _colour(theme: Theme, name: str) -> str:
    return f'<w:color w:val="{hexa(theme.colours.get(name, theme.colours["text"]))}"/>'


def _headings(theme: Theme) -> list[str]:
    styles = []
    for level, size in enumerate(HEADING_SIZES, 1):
        before = (360, 400, 320, 280, 240, 240)[level - 1]
        border = (
            "<w:pBdr>"
            f'<w:bottom w:val="single" w:sz="4" w:space="3" w:color="{hexa(theme.colours["border"])}"/></w:pBdr>'
        )
        shape = (
            f"<w:keepNext/><w:keepLines/>{border if level == 2 else ''}"  # noqa: PLR2004
            f'<w:spacing w:before="{before}" w:after="100" w:line="259" w:lineRule="auto"/>'
            f'<w:outlineLvl w:val="{level - 1}"/>'
        )
        tone = "muted" if level > 4 else "heading" if "heading" in theme.colours else "text"  # noqa: PLR2004
        look = f"{_fonts('major')}<w:b/><w:bCs/>{_colour(theme, tone)}{size_xml(size)}"
        links = '<w:next w:val="Normal"/><w:uiPriority w:val="9"/><w:qFormat/>'
        styles.append(_paragraph(f"heading {level}", shape, look, links=links))
    return styles


def _contents(theme: Theme, width: int) -> list[str]:
    styles = [
        _paragraph(
            "TOC Heading", '<w:keepNext/><w:spacing w:before="240" w:after="120"/>',
            f"{_fonts('major')}<w:b/><w:bCs/>{_colour(theme, 'heading')}{size_xml(26)}",
            links='<w:next w:val="Normal"/><w:uiPriority w:val="39"/><w:qFormat/>',
        )
    ]  # fmt: skip
    for level in range(1, 7):
        tab = f'<w:tabs><w:tab w:val="right" w:leader="dot" w:pos="{width}"/></w:tabs>'
        shape = f'{tab}<w:spacing w:after="50"/><w:ind w:left="{(level - 1) * 260}"/>'
        styles.append(_paragraph(f"toc {level}", shape, links='<w:uiPriority w:val="39"/>'))
    return styles


def _texts(theme: Theme) -> list[str]:
    muted = _colour(theme, "muted")
    edge = f"{muted}{size_xml(17)}"

    def spaced(before: int, after: int, line: int = 0) -> str:
        lines = f' w:line="{line}" w:lineRule="auto"' if line else ""
        return f'<w:spacing w:before="{before}" w:after="{after}"{lines}/>'

    def links(priority: int, *, quick: bool = False) -> str:
        return f'<w:uiPriority w:val="{priority}"/>' + ("<w:qFormat/>" if quick else "")

    code = f"{spaced(0, 0, 252)}<w:contextualSpacing/>"
    code_look = f"{mono(theme)}<w:noProof/>{size_xml(17)}"
    caption, caption_look = f"<w:keepLines/>{spaced(60, 160)}", f"{muted}{size_xml(_SMALL_SIZE)}"
    bold = "<w:b/><w:bCs/>"
    title = f"{_fonts('major')}{bold}{_colour(theme, 'heading')}"
    return [
        _paragraph(
            "Title", f"<w:keepNext/>{spaced(0, 120, 259)}", title + size_xml(56), links=links(10, quick=True)
        ),
        _paragraph("Subtitle", f"<w:keepNext/>{spaced(0, 120)}", muted + size_xml(28), links=links(11, quick=True)),
        _paragraph("Byline", spaced(0, 400), muted, links="<w:qFormat/>"),
        _paragraph("Cover Title", f"<w:keepNext/>{spaced(3600, 200, 259)}", title + size_xml(72)),
        _paragraph("List Paragraph", spaced(0, 60), links=links(34, quick=True)),
        _paragraph("Quote", "", muted, links=links(29, quick=True)),
        _paragraph("caption", caption, caption_look, own="Caption", links=links(35, quick=True)),
        _paragraph("Table Text", spaced(30, 30, 252), size_xml(19)),
        _style("paragraph", "Table Header", f'<w:basedOn w:val="TableText"/><w:rPr>{bold}</w:rPr>'),
        _style("paragraph", "Table Text Small", f'<w:basedOn w:val="TableText"/><w:rPr>{size_xml(14)}</w:rPr>'),
        _style("paragraph", "Table Header Small", f'<w:basedOn w:val="TableTextSmall"/><w:rPr>{bold}</w:rPr>'),
        _paragraph("Code Block", code, code_look, links="<w:qFormat/>"),
        _paragraph("Definition Term", f"<w:keepNext/>{spaced(80, 20)}", bold),
        _paragraph("Definition", spaced(0, 80)),
        _paragraph("footnote text", spaced(0, 40, 240), size_xml(_SMALL_SIZE), own="FootnoteText", links=links(99)),
        _paragraph("header", spaced(0, 0), edge, own="Header", links=links(99)),
        _paragraph("footer", spaced(0, 0), edge, own="Footer", links=links(99)),
    ]


def _characters(theme: Theme) -> list[str]:
    ground = hexa(theme.colours["code_background"])
    based = '<w:basedOn w:val="DefaultParagraphFont"/>'
    return [
        _style("character", "Hyperlink", f'{based}<w:uiPriority w:val="99"/><w:rPr>{_colour(theme, "accent")}'
               '<w:u w:val="single"/></w:rPr>'),
        _style("character", "footnote reference", f'{based}<w:uiPriority w:val="99"/><w:rPr>'
               '<w:vertAlign w:val="superscript"/></w:rPr>', own="FootnoteReference"),
        _style("character", "Inline Code", f'{based}<w:qFormat/><w:rPr>{mono(theme)}<w:noProof/>'
               f'{size_xml(19)}<w:shd w:val="clear" w:color="auto" w:fill="{ground}"/></w:rPr>'),
    ]  # fmt: skip


def _tables(theme: Theme) -> list[str]:
    border = hexa(theme.colours["border"])
    edges = "".join(
        f'<w:{side} w:val="single" w:sz="4" w:space="0" w:color="{border}"/>'
        for side in ("top", "bottom", "insideH")
    )
    normal = (
        '<w:uiPriority w:val="99"/><w:semiHidden/><w:unhideWhenUsed/><w:tblPr>'
        '<w:tblInd w:w="0" w:type="dxa"/><w:tblCellMar>'
        '<w:top w:w="0" w:type="dxa"/><w:left w:w="108" w:type="dxa"/><w:bottom w:w="0" w:type="dxa"/>'
        '<w:right w:w="108" w:type="dxa"/></w:tblCellMar></w:tblPr>'
    )
    grid = (
        f'<w:basedOn w:val="TableNormal"/><w:tblPr><w:tblBorders>{edges}</w:tblBorders><w:tblCellMar>'
        '<w:top w:w="30" w:type="dxa"/><w:left w:w="108" w:type="dxa"/><w:bottom w:w="30" w:type="dxa"/>'
        '<w:right w:w="108" w:type="dxa"/></w:tblCellMar></w:tblPr>'
    )
    return [
        _style("table", "Normal Table", normal, own="TableNormal", default=True),
        _style("table", "Report Table", grid),
    ]


def styles_xml(theme: Theme, language: str, width: int) -> str:
    """The styles part; ``width`` is that of the text, in twips."""
    defaults = (
        f"<w:docDefaults><w:rPrDefault><w:rPr>{_fonts('minor')}{_colour(theme, 'text')}{size_xml(_BODY_SIZE)}"
        f"{language_xml(language)}</w:rPr></w:rPrDefault><w:pPrDefault><w:pPr>"
        '<w:spacing w:after="130" w:line="283" w:lineRule="auto"/></w:pPr></w:pPrDefault></w:docDefaults>'
    )
    hidden = "<w:semiHidden/><w:unhideWhenUsed/>"
    styles = [
        _style("paragraph", "Normal", "<w:qFormat/>", default=True),
        _style("character", "Default Paragraph Font", f'<w:uiPriority w:val="1"/>{hidden}', default=True),
        _style("numbering", "No List", f'<w:uiPriority w:val="99"/>{hidden}', default=True),
        *_headings(theme), *_contents(theme, width), *_texts(theme), *_characters(theme), *_tables(theme),
    ]  # fmt: skip
    return f"{DECLARATION}<w:styles {NAMESPACES}>{defaults}{''.join(styles)}</w:styles>"
