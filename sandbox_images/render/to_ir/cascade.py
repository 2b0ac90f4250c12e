"""The cascade: what the author's style sheets and ``style`` attributes set for each element.

The theme's own style sheets are not asked: in a DOCX its look is that of the named styles. Selectors are those of
cssselect2, as in the layout of pages; of media, ``print`` counts, and layers are taken in their order.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal
from xml.etree.ElementTree import Element

import cssselect2
import tinycss2
from render.frontend.assets import AssetRefused, read_asset
from render.frontend.sanitise import scrub_css
from render.model import Document
from render.to_ir.style import VALUE_CHARACTERS_MAX, Declarations, longhands
from tinycss2.ast import FunctionBlock

DEPTH_MAX = 8
"""Of functions within functions, and of variables within variables."""
IMPORT_DEPTH_MAX = 3
_RULES_MAX = 20_000
_TOKENS_MAX = 1000
"""A value longer than this is no colour, length or name; variables that double each other end here."""
_MEDIA = ("print", "all", "")
_EMPTY: Declarations = {}
_PLACES: tuple[Literal["before", "after"], ...] = ("before", "after")

Value = tuple[str, list[Any]]
"""A declaration: name and tokens."""
Scope = dict[str, list[Any]]
"""What variables stand for, by name with its dashes; there is no ``var()`` in it."""


@dataclass(slots=True)
class _Block:
    """The declarations of a rule: those that count as usual, and the important ones."""

    usual: list[Value] = field(default_factory=list)
    important: list[Value] = field(default_factory=list)


class Cascade:
    """The author's styles of a document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._matcher = cssselect2.Matcher()
        self._rules = 0
        self._styles: dict[Element, Declarations] = {}
        self._added: dict[tuple[Element, str], Declarations] = {}
        self._adds = False
        self._made: dict[tuple[Any, ...], tuple[Declarations, Scope]] = {}
        for element in document.tree.iter():
            if element.tag == "style":
                self._add_sheet(element.text or "", element.get("media", ""))
            elif element.tag == "link":
                self._add_file(element.get("href", ""), element.get("media", ""), 0)
        theme = {f"--pb-{name.replace('_', '-')}": value for name, value in document.theme.colours.items()}
        self._walk({name: tinycss2.parse_component_value_list(value) for name, value in theme.items()})

    def style(self, element: Element) -> Declarations:
        """What the author sets for an element itself; what it inherits is not among it."""
        return self._styles.get(element, _EMPTY)

    def added(self, element: Element, place: Literal["before", "after"]) -> Declarations:
        """The style of the text that a style sheet adds at the beginning or end of an element."""
        return self._added.get((element, place), _EMPTY)

    # ---- rules ----

    def _add_file(self, address: str, media: str, depth: int) -> None:
        if depth < IMPORT_DEPTH_MAX and address:
            try:
                data = read_asset(self._document, address).data
            except AssetRefused as refusal:
                self._document.warn(refusal.code, str(refusal), path=address[:200])
                return
            self._add_sheet(scrub_css(self._document, data.decode("utf-8", "replace")), media, depth + 1)

    def _add_sheet(self, css: str, media: str = "", depth: int = 0) -> None:
        if _is_shown(media):
            self._add_rules(tinycss2.parse_stylesheet(css, skip_comments=True, skip_whitespace=True), depth)

    def _add_rules(self, found: list[Any], depth: int) -> None:
        for rule in found:
            if rule.type == "qualified-rule":
                self._add_rule(rule)
            elif rule.type == "at-rule" and rule.lower_at_keyword == "import":
                words = [token for token in rule.prelude if token.type in {"string", "url", "ident"}]
                if words and words[0].type != "ident":
                    self._add_file(words[0].value, words[1].value if len(words) > 1 else "", depth)
            elif rule.type == "at-rule" and rule.content is not None and depth < IMPORT_DEPTH_MAX:
                name, prelude = rule.lower_at_keyword, tinycss2.serialize(rule.prelude)
                if (name == "media" and _is_shown(prelude)) or name == "layer":
                    rules = tinycss2.parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True)
                    self._add_rules(rules, depth + 1)

    def _add_rule(self, rule: Any) -> None:
        try:
            selectors = cssselect2.compile_selector_list(rule.prelude)
        except (cssselect2.SelectorError, RecursionError):
            return
        block = _block(rule.content)
        for selector in selectors:
            if selector.pseudo_element in {None, *_PLACES} and self._rules < _RULES_MAX:
                self._rules += 1
                self._adds = self._adds or selector.pseudo_element is not None
                self._matcher.add_selector(selector, block)

    # ---- elements ----

    def _walk(self, variables: Scope) -> None:
        """Gives every element its style, parents first: variables are handed down."""
        root = self._document.tree
        if not self._rules and not any("style" in element.attrib for element in root.iter()):
            return
        scopes: dict[Element | None, Scope] = {None: variables}
        for wrapper in cssselect2.ElementWrapper.from_html_root(root).iter_subtree():
            element = wrapper.etree_element
            scope = scopes[None if wrapper.parent is None else wrapper.parent.etree_element]
            attribute = element.get("style", "")
            matched = self._matched(wrapper) if self._rules else ()
            if matched or attribute:
                key = (tuple(map(id, matched)), attribute, id(scope))
                if key not in self._made:
                    self._made[key] = _made(matched, attribute, scope)
                self._styles[element], scope = self._made[key]
            scopes[element] = scope
            for place in _PLACES if self._adds else ():
                added = self._matched(wrapper, place)
                if added:
                    self._added[element, place] = _made(added, "", scope)[0]

    def _matched(self, wrapper: Any, place: str | None = None) -> tuple[_Block, ...]:
        try:
            return tuple(match[3] for match in self._matcher.match(wrapper) if match[2] == place)
        except RecursionError:
            return ()


def _is_shown(media: str) -> bool:
    return any(part.strip().lower() in _MEDIA for part in media.split(","))


@lru_cache(maxsize=4096)
def _attribute_block(style: str) -> _Block:
    return _block(tinycss2.parse_blocks_contents(style[:VALUE_CHARACTERS_MAX]))


def _block(content: list[Any]) -> _Block:
    nodes = content
    if not any(getattr(node, "type", "") == "declaration" for node in content):
        nodes = tinycss2.parse_blocks_contents(content)
    block = _Block()
    for node in nodes:
        if node.type == "declaration":
            name = node.name if node.name.startswith("--") else node.lower_name
            (block.important if node.important else block.usual).append((name, node.value))
    return block


def _made(matched: tuple[_Block, ...], attribute: str, scope: Scope) -> tuple[Declarations, Scope]:
    """The style of an element, and the variables that hold within it."""
    values = list(_in_order(matched, _attribute_block(attribute) if attribute else _Block()))
    own = {name: tokens for name, tokens in values if name.startswith("--")}
    if own:
        scope = _resolved(own, scope)
    style: Declarations = {}
    for name, tokens in values:
        if not name.startswith("--"):
            known = _substituted(tokens, scope)
            if known is not None:
                style.update(longhands(name, known))
    return style, scope


def _in_order(matched: tuple[_Block, ...], attribute: _Block) -> Iterator[Value]:
    """Declarations, the weightiest last; rules come in the order of their specificity."""
    blocks = (*matched, attribute)
    for block in blocks:
        yield from block.usual
    for block in blocks:
        yield from block.important


def _resolved(own: Scope, scope: Scope) -> Scope:
    """The variables within an element: its own ones, each taken apart once, over those around it."""
    result = {name: tokens for name, tokens in scope.items() if name not in own}
    waiting = dict(own)
    for _ in range(DEPTH_MAX):
        for name, tokens in list(waiting.items()):
            names = {found for found in _names(tokens) if found in waiting and found != name}
            if not names:
                known = _substituted(tokens, result)
                del waiting[name]
                if known is not None:
                    result[name] = known
    return result


def _names(tokens: list[Any], depth: int = 0) -> Iterator[str]:
    """The variables that tokens ask for."""
    for token in tokens:
        if token.type == "function" and depth < DEPTH_MAX:
            if token.lower_name == "var":
                yield from (part.value for part in token.arguments[:2] if part.type == "ident")
            yield from _names(token.arguments, depth + 1)


def _substituted(tokens: list[Any], scope: Scope, depth: int = 0) -> list[Any] | None:
    """Tokens with every ``var()`` replaced; None if one of them stands for nothing, which voids a declaration."""
    if all(token.type != "function" for token in tokens):
        return tokens[:_TOKENS_MAX]
    result: list[Any] = []
    for token in tokens:
        if token.type != "function":
            result.append(token)
            continue
        inner = None
        if token.lower_name == "var":
            inner = _variable(token.arguments, scope, depth)
            result += inner or []
        elif depth < DEPTH_MAX:
            inner = _substituted(token.arguments, scope, depth + 1)
            result.append(FunctionBlock(token.source_line, token.source_column, token.name, inner))
        if inner is None or len(result) > _TOKENS_MAX:
            return None
    return result


def _variable(arguments: list[Any], scope: Scope, depth: int) -> list[Any] | None:
    name = next((token.value for token in arguments if token.type == "ident"), "")
    if name in scope:
        return scope[name]
    commas = [index for index, part in enumerate(arguments) if part == ","]
    return _substituted(arguments[commas[0] + 1 :], scope, depth + 1) if commas and depth < DEPTH_MAX else None
