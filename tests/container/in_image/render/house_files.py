"""House templates as people make them in Word and PowerPoint, and packages that attack."""

import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import docx
import pptx
from docx.oxml import parse_xml as word_xml
from docx.oxml.ns import qn
from docx.shared import Mm, Pt, RGBColor
from pptx.opc.constants import RELATIONSHIP_TYPE as RT
from pptx.util import Emu

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
TABLE_STYLE = (
    f'<w:style {_W} w:type="table" w:customStyle="1" w:styleId="HouseTable"><w:name w:val="House Table"/>'
    '<w:basedOn w:val="TableNormal"/><w:tblStylePr w:type="firstRow"><w:tcPr><w:shd w:val="clear" w:color="auto" '
    'w:fill="0B6E4F"/></w:tcPr></w:tblStylePr></w:style>'
)


def word_template(path: Path, *, body: tuple[str, ...] = ("Old words",), german: bool = False) -> Path:
    """A DOCX of 216 by 279 mm with green headings, a table style, a header and a footer."""
    made = docx.Document()
    section = made.sections[0]
    section.page_width, section.page_height, section.left_margin = Mm(216), Mm(279), Mm(35)
    heading = made.styles["Heading 1"]
    heading.font.color.rgb, heading.font.size = RGBColor(0x0B, 0x6E, 0x4F), Pt(24)
    made.styles.element.append(word_xml(TABLE_STYLE))
    section.header.paragraphs[0].text = "{{title}} of Larkfield"
    section.footer.paragraphs[0].text = "Larkfield Partners"
    for text in body:
        made.add_paragraph(text)
    if german:  # Word names its styles in English, with ids in the language of the program
        heading.element.set(qn("w:styleId"), "berschrift1")
    made.save(str(path))
    return path


def slide_template(path: Path, *, wide: bool = False, points: int = 2400) -> Path:
    """A PPTX with eleven layouts in green Georgia, with two slides of its own; 4:3 unless ``wide``."""
    made = pptx.Presentation()
    if wide:
        made.slide_width, made.slide_height = Emu(12_192_000), Emu(6_858_000)
    part = made.slide_master.part.part_related_by(RT.THEME)
    theme = re.sub(r'(<a:(?:major|minor)Font>\s*<a:latin typeface=")[^"]*', r"\1Georgia", part.blob.decode())
    theme = re.sub("<a:accent1>.*?</a:accent1>", '<a:accent1><a:srgbClr val="0B6E4F"/></a:accent1>', theme)
    part._blob = theme.encode()
    sizes = made.slide_master._element.findall(".//{*}bodyStyle/{*}lvl1pPr/{*}defRPr")
    sizes[0].set("sz", str(points))
    for layout in (0, 1):
        made.slides.add_slide(made.slide_layouts[layout]).shapes.title.text = "Old words"
    made.save(str(path))
    return path


def changed(path: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """A package with other parts, in place."""
    with zipfile.ZipFile(path) as package:
        parts = {name: package.read(name) for name in package.namelist()}
    change(parts)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        for name, data in parts.items():
            package.writestr(name, data)
    return path


def linked(parts: dict[str, bytes], part: str, kind: str, target: str, *, external: bool = False) -> None:
    """Adds a relationship to a part, with the id ``rIdEvil``."""
    folder, _, name = part.rpartition("/")
    rels = f"{folder}/_rels/{name}.rels"
    mode = ' TargetMode="External"' if external else ""
    kind = kind if ":" in kind else f"http://schemas.openxmlformats.org/officeDocument/2006/relationships/{kind}"
    row = f'<Relationship Id="rIdEvil" Type="{kind}" Target="{target}"{mode}/></Relationships>'
    parts[rels] = parts[rels].replace(b"</Relationships>", row.encode())


def typed(parts: dict[str, bytes], part: str, mime: str) -> None:
    """Gives a part a media type."""
    row = f'<Override PartName="/{part}" ContentType="{mime}"/></Types>'
    parts["[Content_Types].xml"] = parts["[Content_Types].xml"].replace(b"</Types>", row.encode())


def unpacked(path: Path) -> dict[str, bytes]:
    """The parts of a package."""
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as package:
        assert package.testzip() is None
        return {name: package.read(name) for name in package.namelist()}
