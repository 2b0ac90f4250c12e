"""The small parts of a DOCX file: theme, settings, fonts, properties, the frame of footnotes."""

from datetime import UTC, datetime

from render.docx.package import Part
from render.docx.styles import language_tag
from render.docx.xml import DECLARATION, NAMESPACES, attribute, escape, hexa
from render.font_families import code_face, shown_face
from render.model import Metadata, Theme
from render.to_ir.style import mix

SYMBOLS = "DejaVu Sans"
"""The font of boxes to tick; Word has another one for it, and without a name readers take that of emoji."""
_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"


def _clean(name: str) -> str:
    return attribute(name) or "Calibri"


def theme_xml(theme: Theme) -> str:
    """The theme part: colours and fonts by their roles."""
    colours = theme.colours
    dark, light = colours["text"], colours["background"]
    series = [colours[name] for name in (f"series_{index}" for index in range(1, 7)) if name in colours]
    accents = (series + [mix(colours["accent"], light, share) for share in (1, 0.85, 0.7, 0.55, 0.4, 0.3)])[:6]
    scheme = {
        "dk1": dark, "lt1": light, "dk2": colours.get("heading", dark), "lt2": colours["surface"],
        **{f"accent{index}": accent for index, accent in enumerate(accents, 1)},
        "hlink": colours["accent"], "folHlink": colours["muted"],
    }  # fmt: skip
    rows = "".join(f'<a:{name}><a:srgbClr val="{hexa(colour)}"/></a:{name}>' for name, colour in scheme.items())
    empty = '<a:ea typeface=""/><a:cs typeface=""/>'
    fonts = (
        f'<a:majorFont><a:latin typeface="{_clean(shown_face(theme.heading_font))}"/>{empty}</a:majorFont>'
        f'<a:minorFont><a:latin typeface="{_clean(shown_face(theme.body_font))}"/>{empty}</a:minorFont>'
    )
    fill = '<a:solidFill><a:schemeClr val="phClr"/></a:solidFill>'
    line = f'<a:ln w="9525">{fill}<a:prstDash val="solid"/></a:ln>'
    effect = "<a:effectStyle><a:effectLst/></a:effectStyle>"
    return (
        f'{DECLARATION}<a:theme xmlns:a="{_DRAWING}" name="{_clean(theme.name)}"><a:themeElements>'
        f'<a:clrScheme name="{_clean(theme.name)}">{rows}</a:clrScheme>'
        f'<a:fontScheme name="{_clean(theme.name)}">{fonts}'
        f'</a:fontScheme><a:fmtScheme name="Office"><a:fillStyleLst>{fill * 3}</a:fillStyleLst>'
        f"<a:lnStyleLst>{line * 3}</a:lnStyleLst><a:effectStyleLst>{effect * 3}</a:effectStyleLst>"
        f"<a:bgFillStyleLst>{fill * 3}</a:bgFillStyleLst></a:fmtScheme></a:themeElements></a:theme>"
    )


def settings_xml(language: str, *, background: bool) -> str:
    """The settings part; ``background``: the page has a colour of its own, which is shown."""
    shown = "<w:displayBackgroundShape/>" if background else ""
    tag = attribute(language_tag(language))
    return (
        f'{DECLARATION}<w:settings {NAMESPACES}><w:zoom w:percent="100"/>{shown}<w:defaultTabStop w:val="720"/>'
        '<w:characterSpacingControl w:val="doNotCompress"/>'
        '<w:footnotePr><w:footnote w:id="-1"/><w:footnote w:id="0"/></w:footnotePr>'
        '<w:compat><w:compatSetting w:name="compatibilityMode" w:uri="http://schemas.microsoft.com/office/word" '
        'w:val="15"/></w:compat>'
        f'<w:themeFontLang w:val="{tag}"/>'
        '<w:clrSchemeMapping w:bg1="light1" w:t1="dark1" w:bg2="light2" w:t2="dark2" '
        'w:accent1="accent1" w:accent2="accent2" w:accent3="accent3" w:accent4="accent4" w:accent5="accent5" '
        'w:accent6="accent6" w:hyperlink="hyperlink" w:followedHyperlink="followedHyperlink"/>'
        '<w:decimalSymbol w:val="."/><w:listSeparator w:val=","/></w:settings>'
    )


def fonts_xml(theme: Theme) -> str:
    """The font table."""
    # The alternative is for readers without the office font: the face that the image has.
    names = {_clean(shown_face(family)): _clean(family) for family in (theme.body_font, theme.heading_font)}
    mono = _clean(code_face(theme.mono_font))
    names[mono] = _clean(theme.mono_font)
    rows = "".join(
        f'<w:font w:name="{name}"><w:altName w:val="{own}"/><w:family w:val="{"modern" if name == mono else "swiss"}"/>'
        f'<w:pitch w:val="{"fixed" if name == mono else "variable"}"/></w:font>'
        for name, own in names.items()
    )
    rows += f'<w:font w:name="{SYMBOLS}"><w:altName w:val="Segoe UI Symbol"/><w:pitch w:val="variable"/></w:font>'
    return f"{DECLARATION}<w:fonts {NAMESPACES}>{rows}</w:fonts>"


def core_xml(metadata: Metadata) -> str:
    """The properties of the document."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    fields = (
        ("dc:title", metadata.title),
        ("dc:subject", metadata.subject),
        ("dc:creator", metadata.author),
        ("cp:keywords", ", ".join(metadata.keywords)),
        ("dc:language", language_tag(metadata.language)),
    )
    rows = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in fields if value)
    return (
        f"{DECLARATION}<cp:coreProperties "
        'xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/" '
        f'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">{rows}'
        f'<dcterms:created xsi:type="dcterms:W3CDTF">{now}</dcterms:created>'
        f'<dcterms:modified xsi:type="dcterms:W3CDTF">{now}</dcterms:modified></cp:coreProperties>'
    )


def app_xml() -> str:
    """Which program wrote the document."""
    space = "http://schemas.openxmlformats.org/officeDocument/2006/extended-properties"
    return f'{DECLARATION}<Properties xmlns="{space}"><Application>Proofbox</Application></Properties>'


def footnotes_xml(notes: str) -> str:
    """The footnotes part: the two separators that Word wants, and the notes."""
    shape = '<w:pPr><w:spacing w:after="0" w:line="240" w:lineRule="auto"/></w:pPr>'
    frame = "".join(
        f'<w:footnote w:type="{kind}" w:id="{number}"><w:p>{shape}<w:r><w:{kind}/></w:r></w:p></w:footnote>'
        for kind, number in (("separator", -1), ("continuationSeparator", 0))
    )
    return f"{DECLARATION}<w:footnotes {NAMESPACES}>{frame}{notes}</w:footnotes>"


def relationships(part: Part, into: dict[str, str | bytes]) -> None:
    """Adds what a part leads to, if it leads anywhere."""
    if part.links:
        folder, _, name = part.name.rpartition("/")
        into[f"{folder}/_rels/{name}.rels"] = part.relationships()
