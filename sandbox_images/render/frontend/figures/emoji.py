"""Emoji clusters get a span of their own with the emoji font.

The font is named nowhere else: it has digits, ``#`` and ``*`` of its own, and in a list of fonts it would set those
of the text too.
"""

import re
from xml.etree.ElementTree import Element

from render.frontend.element_tree import Pieces, body_of, classes_of, edit_texts, make

FONT = "Noto Color Emoji"

_PICTURE = (
    "\u231a\u231b\u23e9-\u23ec\u23f0\u23f3\u25fd\u25fe\u2614\u2615\u2648-\u2653\u267f\u2693\u26a1\u26aa\u26ab\u26bd\u26be"
    "\u26c4\u26c5\u26ce\u26d4\u26ea\u26f2\u26f3\u26f5\u26fa\u26fd\u2705\u270a\u270b\u2728\u274c\u274e\u2753-\u2755\u2757"
    "\u2795-\u2797\u27b0\u27bf\u2b1b\u2b1c\u2b50\u2b55\U0001f004\U0001f0cf\U0001f18e\U0001f191-\U0001f19a\U0001f201"
    "\U0001f21a\U0001f22f\U0001f232-\U0001f236\U0001f238-\U0001f23a\U0001f250\U0001f251\U0001f300-\U0001f64f"
    "\U0001f680-\U0001f6ff\U0001f7e0-\U0001f7eb\U0001f7f0\U0001f90c-\U0001f9ff\U0001fa70-\U0001faff"
)
"""Characters that are drawn as emoji unless styled otherwise."""
_SIGN = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f"
    "\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f170-\U0001f251"
)
"""Characters that are drawn as emoji if U+FE0F follows."""
_MODIFIER = "\ufe0f?[\U0001f3fb-\U0001f3ff]?[\U000e0020-\U000e007f]*"
_ONE = f"(?:[{_PICTURE}](?!\ufe0e){_MODIFIER}|[{_SIGN}]\ufe0f|[\u261d\u26f9\u270a-\u270d][\U0001f3fb-\U0001f3ff])"
_CLUSTER = re.compile(
    f"(?:[\U0001f1e6-\U0001f1ff]{{2}}|[0-9#*]\ufe0f?\u20e3|{_ONE}(?:\u200d(?:{_ONE}|[{_SIGN}]\ufe0f?))*)"
)
_QUICK = re.compile(f"[{_PICTURE}\ufe0f\u20e3\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff]")


def wrap_emoji(tree: Element) -> None:
    """Wraps every emoji cluster of the body in ``span.pb-emoji``; a row of them shares one span."""
    if any(_QUICK.search(text) for text in tree.itertext()):
        edit_texts(body_of(tree), {"script", "style", "template", "textarea", "title"}, _split)


def _split(text: str, parent: Element) -> Pieces | None:
    if not _QUICK.search(text) or "pb-emoji" in classes_of(parent):
        return None
    pieces: Pieces = []
    end = 0
    for match in _CLUSTER.finditer(text):
        last = pieces[-1] if pieces else None
        if match.start() == end and last is not None and not isinstance(last, str):
            last.text = (last.text or "") + match[0]
        else:
            pieces.append(text[end : match.start()])
            pieces.append(make("span", {"class": "pb-emoji"}, match[0]))
        end = match.end()
    return [*pieces, text[end:]] if pieces else None
