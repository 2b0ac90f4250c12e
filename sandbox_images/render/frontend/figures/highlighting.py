"""Code blocks, coloured: ``pre.pb-code`` with spans of pygments' short classes."""

from functools import lru_cache
from xml.etree.ElementTree import Element

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound
from render.frontend.element_tree import add_class, classes_of, make, name_of

_BARE = "background:none;border:0;padding:0;margin:0;color:inherit;font-size:inherit"
"""What an author's rules for code within text is not about the element that we put into a block."""
HIGHLIGHTED_CHARACTERS_MAX = 20_000
"""A longer block is shown plain: lexers are slow, and some of them quadratic, on what isn't their language."""
DOCUMENT_CHARACTERS_MAX = 400_000
"""Characters of all the blocks of a document that are coloured; the rest are plain."""


def highlight_code(tree: Element) -> None:
    """Marks every code block and colours those with a declared language."""
    coloured = 0
    for block in tree.iter("pre"):
        code = block.find("code")
        if code is None:
            code = make("code", {"style": _BARE}, block.text)
            code.extend(block)
            block[:], block.text = [code], None
        language = _language(block) or _language(code)
        add_class(block, "pb-code")
        block.set("data-language", language)
        if language and not any(name_of(child) for child in code) and code.text:
            code.text = code.text.removesuffix("\n")
            coloured += len(code.text)
            if coloured <= DOCUMENT_CHARACTERS_MAX:
                _colour(code, language)


def _language(element: Element) -> str:
    for name in classes_of(element):
        for prefix in ("language-", "lang-"):
            if name.startswith(prefix):
                return name.removeprefix(prefix).lower()[:40]
    return (element.get("lang") or element.get("data-lang") or "").lower()[:40] if element.tag == "pre" else ""


@lru_cache(maxsize=64)
def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return None


def _colour(code: Element, language: str) -> None:
    text = code.text or ""
    lexer = _lexer(language)
    if lexer is None or len(text) > HIGHLIGHTED_CHARACTERS_MAX:
        return
    # Some lexers lose a last line that has no line end, or count on their own way to write one.
    tokens = list(lexer.get_tokens(text + "\n"))
    if "".join(value for _, value in tokens) != text + "\n":
        return
    tokens[-1] = (tokens[-1][0], tokens[-1][1].removesuffix("\n"))
    code.text = ""
    last: Element | None = None
    for token, value in tokens:
        kind = token
        while kind is not None and kind not in STANDARD_TYPES:
            kind = kind.parent
        name = STANDARD_TYPES.get(kind, "")
        if name and name not in {"w", "n"}:
            if last is not None and last.get("class") == name and not last.tail:
                last.text = (last.text or "") + value
                continue
            last = make("span", {"class": name}, value)
            code.append(last)
        elif last is None:
            code.text += value
        else:
            last.tail = (last.tail or "") + value
