"""Edits of an ElementTree that the standard library leaves to its users: parents, text nodes, unwrapping."""

from collections.abc import Callable, Iterable, Iterator
from xml.etree.ElementTree import Element

SVG = "{http://www.w3.org/2000/svg}"
MATHML = "{http://www.w3.org/1998/Math/MathML}"

LITERAL = frozenset({"code", "pre", "kbd", "samp", "script", "style", "textarea", "template", "title"})
"""Elements whose text is never read as markup of ours."""


def name_of(element: Element) -> str:
    """The tag, or an empty string for comments and processing instructions, whose tag is a function."""
    return element.tag if isinstance(element.tag, str) else ""


def parents_of(root: Element) -> dict[Element, Element]:
    """The parent of every element below ``root``."""
    return {child: parent for parent in root.iter() for child in parent}


def classes_of(element: Element) -> list[str]:
    """The classes of an element."""
    return (element.get("class") or "").split()


def add_class(element: Element, name: str) -> None:
    """Adds a class, once."""
    names = classes_of(element)
    if name not in names:
        element.set("class", " ".join([*names, name]))


def remove_class(element: Element, name: str) -> None:
    """Takes a class off."""
    names = [other for other in classes_of(element) if other != name]
    if names:
        element.set("class", " ".join(names))
    else:
        element.attrib.pop("class", None)


def text_of(element: Element) -> str:
    """The text of an element with blanks collapsed."""
    return " ".join("".join(element.itertext()).split())


def make(
    tag: str, attributes: dict[str, str] | None = None, text: str | None = None, *children: Element
) -> Element:
    """An element in one expression."""
    element = Element(tag, attributes or {})
    element.text = text
    element.extend(children)
    return element


def body_of(tree: Element) -> Element:
    """The ``body``, which an HTML parser always makes; a frameset has none, and gets an empty one."""
    body = tree.find("body")
    if body is None:
        body = make("body")
        tree.append(body)
    return body


def head_of(tree: Element) -> Element:
    """The ``head``, which an HTML parser always makes."""
    head = tree.find("head")
    if head is None:
        head = make("head")
        tree.insert(0, head)
    return head


def add_text_before(parent: Element, index: int, text: str | None) -> None:
    """Puts text right before the child at ``index``."""
    if not text:
        return
    if index == 0:
        parent.text = (parent.text or "") + text
    else:
        parent[index - 1].tail = (parent[index - 1].tail or "") + text


def remove(parent: Element, child: Element) -> None:
    """Removes a child; the text behind it stays."""
    index = list(parent).index(child)
    add_text_before(parent, index, child.tail)
    parent.remove(child)
    child.tail = None


def replace(parent: Element, child: Element, other: Element) -> None:
    """Puts ``other`` in the place of ``child``, with the text behind it."""
    index = list(parent).index(child)
    other.tail = child.tail
    child.tail = None
    parent[index] = other


def unwrap(parent: Element, child: Element) -> None:
    """Puts what an element holds in its place."""
    index = list(parent).index(child)
    inner = list(child)
    add_text_before(parent, index, child.text)
    if inner:
        inner[-1].tail = (inner[-1].tail or "") + (child.tail or "")
        parent[index : index + 1] = inner
    else:
        add_text_before(parent, index, child.tail)
        parent.remove(child)
    child.tail = None


def walk_but(root: Element, skipped: Iterable[str]) -> Iterator[Element]:
    """Elements in document order, without those of the named tags, ``span.pb-math`` and what is below them.

    The children are listed before they are visited, so an element's children may be replaced while it is visited.
    """
    names = frozenset(skipped)
    stack = [root]
    while stack:
        element = stack.pop()
        name = name_of(element)
        if not name or name in names or name.startswith(("{", "svg")) or "pb-math" in (element.get("class") or ""):
            continue
        yield element
        stack.extend(reversed(element))


Pieces = list["str | Element"]


def edit_texts(root: Element, skipped: Iterable[str], split: Callable[[str, Element], Pieces | None]) -> None:
    """Replaces text nodes by pieces of text and elements.

    Args:
        root: where to start.
        skipped: tags below which nothing is touched.
        split: gets a text node and its parent; gives the pieces, or None to leave it alone.
    """
    for element in list(walk_but(root, skipped)):
        children = list(element)
        pieces = split(element.text, element) if element.text else None
        changed = pieces is not None
        row: Pieces = pieces if pieces is not None else [element.text or ""]
        for child in children:
            row.append(child)
            tail, child.tail = child.tail, None
            pieces = split(tail, element) if tail else None
            if pieces is not None:
                changed = True
                row.extend(pieces)
            elif tail:
                row.append(tail)
        if changed:
            _fill(element, row)
        else:
            _fill_tails(row)


def _fill_tails(row: Pieces) -> None:
    """Gives the tails back to children that stay where they are."""
    last: Element | None = None
    for piece in row:
        if not isinstance(piece, str):
            last = piece
        elif last is not None:
            last.tail = (last.tail or "") + piece


def _fill(element: Element, row: Pieces) -> None:
    element[:] = []
    element.text = None
    for piece in row:
        if isinstance(piece, str):
            add_text_before(element, len(element), piece)
        else:
            element.append(piece)
