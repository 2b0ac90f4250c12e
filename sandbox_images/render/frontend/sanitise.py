"""Takes out of a tree what must not reach a layout engine, and bounds what is left.

There is no JavaScript here: scripts go, with a warning. So do frames and plugins, which would load other documents,
and the few elements and attributes that make a layout engine open files of its own accord.
"""

import json
import re
from urllib.parse import quote
from xml.etree.ElementTree import Element

from render.frontend.assets import AssetRefused, find_file, loader
from render.frontend.css_rules import without_at_rules
from render.frontend.element_tree import LITERAL, SVG, make, name_of, remove, replace, unwrap
from render.frontend.figures.svg import DrawingRefused, check_size, clean_svg
from render.frontend.front_matter import MARP_KEYS, read_settings
from render.frontend.gradient_text import plain_gradient_text
from render.frontend.html import check_elements
from render.frontend.limits_css import bound_css
from render.frontend.links import safe_link
from render.limits import DEPTH_MAX, ROWSPAN_MAX, SPAN_MAX
from render.model import Document

_SCRIPTED = frozenset({"script", "canvas", "applet"})
_EMBEDDING = frozenset({"iframe", "embed", "object", "portal", "frame", "video", "audio"})
_DROPPED = frozenset({"base", "bgsound", "param", "source", "track", "template"})
_AT_RULES = frozenset({"color-profile", "import"})
STYLE_CHECKED = 400
"""Characters from which any style attribute is checked; shorter ones if they hold what `bound_css` looks for."""
_BOUNDED = re.compile(r"--|grid|\\|(?:\(.*){9}", re.IGNORECASE)
_ADDRESS_MARKS = re.compile(r"""^\s*(?:url\()?\s*["']?|["']?\s*\)?[\s;]*$""", re.IGNORECASE)
_REMOTE = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
SPOKEN = re.compile(r"(?:speaker|presenter)?[\s_-]{0,2}notes?\s{0,9}:", re.IGNORECASE)
"""What words for the speaker begin with, in a comment or in a paragraph of Markdown."""
_DIRECTIVE = re.compile(r"\s*_?[A-Za-z][\w-]*\s*:")


def sanitise(document: Document) -> None:
    """Cleans the tree of a document in place.

    Raises:
        RenderError: ``too_many_elements``.
    """
    check_elements(sum(1 for _ in document.tree.iter()))
    stack = [document.tree]
    while stack:
        parent = stack.pop()
        for child in list(parent):
            if _judge(document, parent, child):
                stack.append(child)  # noqa: PERF401 - judging removes children
    _flatten(document)
    _clean_drawings(document)
    for element in document.tree.iter():
        _clean_attributes(document, element)


def scrub_css(document: Document, css: str) -> str:
    """Drops what WeasyPrint gives up on or what asks for another computer: ``@color-profile``, ``@import``."""

    def stays(keyword: str, text: str) -> bool:
        if keyword == "color-profile":
            document.warn("dropped_css", "@color-profile was dropped.")
            return False
        if not _REMOTE.search(text):
            return True
        url = _ADDRESS_MARKS.sub("", text)[:120]
        document.warn(
            "remote_refused", f"The style sheet {url} is on another computer and was not loaded.", url=url
        )
        return False

    return plain_gradient_text(document, without_at_rules(bound_css(document, css), _AT_RULES, stays))


def _judge(document: Document, parent: Element, child: Element) -> bool:
    """Handles one child of a parent; returns whether it stays and is to be searched."""
    name = name_of(child).rpartition("}")[2].lower()
    relations = (child.get("rel") or "").lower().split()
    if not name:
        _comment(document, parent, child)
    elif name in _SCRIPTED:
        document.warn(
            "script_ignored", f"<{name}> was ignored: documents are laid out without JavaScript.", element=name
        )
        remove(parent, child)
    elif name in _EMBEDDING:
        _drop_embedded(document, parent, child, name)
    elif (name in _DROPPED and "pb-directive" not in (child.get("class") or "")) or _is_idle(
        child, name, relations
    ):
        remove(parent, child)
    elif name == "link" and _REMOTE.match((child.get("href") or "").strip()):
        url = (child.get("href") or "")[:200]
        document.warn(
            "remote_refused", f"The style sheet {url} is on another computer and was not loaded.", url=url
        )
        remove(parent, child)
    else:
        if name == "noscript":
            child.tag = "div"
        if name == "style" and child.text:
            child.text = scrub_css(document, child.text)
        if "attachment" in relations:
            child.attrib.pop("rel", None)
        return True
    return False


def _is_idle(child: Element, name: str, relations: list[str]) -> bool:
    """Whether an element has no meaning in a document: hints for browsers, and links that would embed files."""
    if name == "link":
        return "stylesheet" not in relations
    return name == "meta" and (child.get("http-equiv") or "").lower() not in {
        "",
        "content-type",
        "content-language",
    }


def _comment(document: Document, parent: Element, child: Element) -> None:
    """Drops a comment; in a Marp deck it is a directive, or else a speaker note, as ``notes:`` is in any deck."""
    text = (child.text or "").strip()
    spoken = SPOKEN.match(text)
    marp = document.tree.get("data-marp") == "true"
    shown = document.request.output != "pptx" or not (marp or spoken)
    if shown or not text or name_of(parent) in LITERAL:
        remove(parent, child)
        return
    text = text[spoken.end() :].strip() if spoken else text
    if not spoken and _DIRECTIVE.match(text):
        value = read_settings(text)
        if value and all(key.lstrip("_$") in MARP_KEYS for key in value):
            row = json.dumps(value, default=str)
            replace(parent, child, make("template", {"class": "pb-directive", "data-directive": row}))
            return
    replace(parent, child, make("aside", {"class": "pb-notes"}, None, make("p", None, text)))


def _drop_embedded(document: Document, parent: Element, child: Element, name: str) -> None:
    """A frame or plugin: what it holds for readers without it stays; else its place shows what was there."""
    path = (child.get("src") or child.get("data") or "")[:300]
    document.warn(
        "embed_ignored",
        f"<{name}> was ignored: a document shows no other documents or players.",
        element=name,
        path=path,
    )
    if name != "iframe" and (any(name_of(item) not in _DROPPED for item in child) or (child.text or "").strip()):
        child.tag = "div" if name == "object" else "span"
        child.attrib.clear()
        unwrap(parent, child)
    elif _REMOTE.match(path):
        replace(parent, child, make("a", {"href": path}, child.get("title") or path))
    else:
        replace(
            parent,
            child,
            make("span", {"class": "pb-missing", "data-path": path}, child.get("title") or path or name),
        )


def _flatten(document: Document) -> None:
    """Unwraps elements that are nested too deep; their text stays."""
    stack: list[tuple[Element, int]] = [(document.tree, 0)]
    while stack:
        element, depth = stack.pop()
        if depth < DEPTH_MAX:
            stack.extend((child, depth + 1) for child in element)
        elif len(element):
            document.warn("nesting_flattened", f"Elements nested deeper than {DEPTH_MAX} levels were flattened.")
            _raise_text(element)


def _clean_drawings(document: Document) -> None:
    """Makes the drawings that stand in the document harmless; one beyond bounds leaves a note of itself."""
    for parent in list(document.tree.iter()):
        for child in [item for item in parent if name_of(item) in {f"{SVG}svg", "svg"}]:
            if name_of(parent).startswith(SVG):
                continue
            try:
                check_size(child)
            except DrawingRefused as refusal:
                document.warn("asset_refused", f"A drawing was left out: {refusal}.")
                replace(parent, child, make("span", {"class": "pb-missing"}, "Drawing left out"))
                continue
            clean_svg(child, loader(document))


def _raise_text(element: Element) -> None:
    """Makes all that is below an element its text, line by line, without recursion."""
    texts = [text for text in element.itertext() if text]
    element[:] = []
    element.text = " ".join(texts) if len(texts) > 1 else "".join(texts)


def _clean_attributes(document: Document, element: Element) -> None:
    name = name_of(element).rpartition("}")[2].lower()
    for key in list(element.attrib):
        plain = key.rpartition("}")[2].lower()
        if plain.startswith("on") or plain in {
            "action",
            "formaction",
            "ping",
            "srcdoc",
            "background",
            "srcset",
            "nonce",
            "data-pb",
        }:
            _drop_attribute(element, key, plain)
        elif plain == "href" and name in {"a", "area"}:
            _clean_link(document, element, key)
        elif plain == "style" and (
            len(element.attrib[key]) > STYLE_CHECKED or _BOUNDED.search(element.attrib[key])
        ):
            element.set(key, bound_css(document, element.attrib[key]))
        if plain == "style":
            element.set(key, plain_gradient_text(document, element.attrib[key], attribute=True))
    for key, most in (("colspan", SPAN_MAX), ("rowspan", ROWSPAN_MAX), ("span", SPAN_MAX)):
        if key in element.attrib:
            digits = re.match(r"\s*(\d{1,9})", element.attrib[key])
            element.set(key, str(min(int(digits[1]), most) if digits else 1))


def _drop_attribute(element: Element, key: str, plain: str) -> None:
    """Takes an attribute away; an image that has only a ``srcset`` keeps its first candidate."""
    value = element.attrib.pop(key)
    if plain == "srcset" and name_of(element) == "img" and not element.get("src"):
        element.set("src", value.split(",")[0].strip().split(" ")[0])


def _file_here(document: Document, href: str) -> str | None:
    """The address of a file of the conversation that a link names as one of a sandbox; None if there is none."""
    if not href.lower().startswith(("sandbox:", "fi:")):
        return None
    try:
        return quote(find_file(document.request, href.strip()))
    except AssetRefused:
        return None


def _clean_link(document: Document, element: Element, key: str) -> None:
    href = element.attrib[key]
    retained = safe_link(href) or _file_here(document, href)
    if retained is not None:
        element.set(key, retained)
    else:
        del element.attrib[key]
        document.warn(
            "link_dropped",
            "A link that is not to a web page, a mail address or a place here was dropped.",
            href=href[:100],
        )
