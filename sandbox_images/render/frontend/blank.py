"""Documents that show nothing: distinguished from those whose author draws with styles alone."""

from render.frontend.element_tree import body_of, name_of
from render.model import Document

_UNSEEN = frozenset({"script", "style", "template", "title", "head"})
_DRAWN = frozenset({
    "audio", "canvas", "embed", "hr", "iframe", "img", "input", "math", "meter", "object", "picture", "progress",
    "svg", "table", "video",
})  # fmt: skip
_STYLED = frozenset({"style", "class", "id", "bgcolor", "background"})
"""Attributes by which an element without content can still be seen."""


def warn_blank(document: Document) -> None:
    """Adds the warning ``blank_document`` if the body has neither text nor anything that is drawn."""
    stack = [body_of(document.tree)]
    while stack:
        element = stack.pop()
        name = name_of(element).rpartition("}")[2]
        if name in _DRAWN or _STYLED & element.attrib.keys() or (element.text or "").strip():
            return
        for child in element:
            if (child.tail or "").strip():
                return
            if name_of(child) and name_of(child) not in _UNSEEN:
                stack.append(child)
    document.warn("blank_document", "The content has neither text nor pictures, so the file is blank.")
