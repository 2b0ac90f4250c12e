"""Mermaid diagrams, drawn without a browser: ``figure.pb-diagram`` with an SVG picture."""

import json
import re
from typing import Any
from xml.etree.ElementTree import Element

from render.frontend.element_tree import SVG, classes_of, make, name_of, parents_of, replace
from render.frontend.figures.code_palette import is_dark
from render.frontend.figures.svg_image import picture_of
from render.frontend.figures.svg_styles import inline_styles
from render.model import Document, Theme

SOURCE_CHARACTERS_MAX = 60_000
KANBAN_REPEATS_MAX = 5
"""Lines of a kanban of equal text; the time to draw it doubles with each."""
FONT = "Noto Sans"
_FONT_FAMILY = re.compile(r"font-family:\s*(?:&quot;|[^;<>{}])*?(?=[;<>{}]|(?<!,)\"[\s/>])")
_BARE = re.compile(
    r"\s*(?:%%[^\n]*\n\s*)*(?:(?:graph|flowchart) (?:TD|TB|BT|RL|LR)\b|"
    r"(?:sequenceDiagram|classDiagram|erDiagram|gitGraph|mindmap)\s*\n)"
)
_FONT_ATTRIBUTE = re.compile(r'font-family="[^"]*"')
_SIZE = re.compile(r'\s(?:width|height)="[^"]*"')
_LABEL = re.compile(r'(source-classes="[^"]* labelBkg"><rect) x="(-?[\d.]+)"( y="[^"]*") width="([\d.]+)"')
_BESIDE_LABEL = 5.0
"""How far the ground of a line's label reaches beyond its text, in px."""
_VIEW = re.compile(r'viewBox="\S+ \S+ (\S+) (\S+)"')


def is_diagram(text: str) -> bool:
    """Whether a text, taken as a whole, is Mermaid."""
    return _BARE.match(text) is not None


def draw_diagrams(document: Document) -> None:
    """Replaces Mermaid blocks by their pictures; one that cannot be drawn stays as code, with a warning."""
    parents = parents_of(document.tree)
    for block in list(document.tree.iter()):
        source = source_of(block)
        if not source or block not in parents:
            continue
        try:
            svg = draw(source, document.theme)
        except Exception as exc:  # noqa: BLE001 - a native library: each of its failures is a diagram not drawn
            message = str(exc).strip().splitlines()[0][:300] if str(exc).strip() else "unknown"
            document.warn("diagram_failed", f"A Mermaid diagram could not be drawn: {message}")
            code = make("code", {"class": "language-mermaid"}, source)
            replace(parents[block], block, make("pre", None, None, code))
            continue
        figure = make("figure", {"class": "pb-diagram", "data-source": source})
        figure.append(picture_of(svg, f"Diagram: {' '.join(source.split())[:180]}"))
        replace(parents[block], block, figure)


def source_of(block: Element) -> str:
    """The Mermaid source of a block, or an empty string."""
    if block.tag not in {"pre", "div"}:
        return ""
    names = set(classes_of(block))
    code = block.find("code") if block.tag == "pre" else None
    if code is not None:
        names |= set(classes_of(code))
    if not names & {"mermaid", "language-mermaid", "lang-mermaid"} or any(
        name_of(c).startswith(SVG) for c in block.iter()
    ):
        return ""
    return "".join((code if code is not None else block).itertext()).strip()[:SOURCE_CHARACTERS_MAX]


def draw(source: str, theme: Theme) -> str:
    """The SVG of a diagram, in the font and the colours of the theme.

    Raises:
        ValueError: what is wrong with the source, in mermaid's words.
        ParseError: what was drawn is no XML.
    """
    lines = [line.strip() for line in source.splitlines() if line.strip()]
    if "kanban" in lines and len(lines) - len(set(lines)) > KANBAN_REPEATS_MAX:
        raise ValueError(f"more than {KANBAN_REPEATS_MAX} lines of the kanban are the same")
    if "%%{" not in source and not source.lstrip().startswith("---"):
        source = f"%%{{init: {json.dumps(_variables(theme))}}}%%\n{source}"
    import mmdr  # noqa: PLC0415 - 5 MB that most documents don't need

    svg: str = mmdr.render(source).svg()
    svg = _FONT_ATTRIBUTE.sub(f'font-family="{FONT}"', _FONT_FAMILY.sub(f"font-family:'{FONT}',sans-serif", svg))
    svg = _LABEL.sub(_wider, svg)
    view = _VIEW.search(svg)
    if view:
        root, rest = svg.split(">", 1)
        size = f' width="{float(view[1]):.1f}" height="{float(view[2]):.1f}"'
        svg = f"{_SIZE.sub('', root)}{size}>{rest}"
    return inline_styles(svg)


def _wider(found: re.Match[str]) -> str:
    left, width = float(found[2]) - _BESIDE_LABEL, float(found[4]) + 2 * _BESIDE_LABEL
    return f'{found[1]} x="{left:g}"{found[3]} width="{width:g}"'


def _variables(theme: Theme) -> dict[str, Any]:
    """Mermaid's own theme variables."""
    colours = theme.colours
    return {
        "theme": "base",
        "look": "classic",
        "fontFamily": FONT,
        "themeVariables": {
            "fontFamily": FONT,
            "darkMode": is_dark(colours["background"]),
            "background": colours["background"],
            "primaryColor": colours["surface"],
            "primaryTextColor": colours["text"],
            "primaryBorderColor": colours["accent"],
            "secondaryColor": colours["code_background"],
            "tertiaryColor": colours["surface"],
            "lineColor": colours["muted"],
            "textColor": colours["text"],
            "useGradient": False,
            "edgeLabelBackground": colours["background"],
            "clusterBkg": colours["background"],
            "clusterBorder": colours["border"],
            "noteBkgColor": colours["surface"],
            "noteTextColor": colours["text"],
            "noteBorderColor": colours["border"],
        },
    }
