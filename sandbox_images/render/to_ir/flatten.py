"""Blocks as inlines, for places that hold no blocks: headings, captions, terms, slide titles."""

from collections.abc import Iterator

from render.ir import (
    Block,
    Box,
    Callout,
    Chart,
    Code,
    Columns,
    Definition,
    DefinitionList,
    Diagram,
    Figure,
    FormulaBlock,
    Heading,
    Inline,
    LineBreak,
    ListBlock,
    ListItem,
    Paragraph,
    Quote,
    Run,
    Sources,
    SpeakerNotes,
    Table,
)  # fmt: skip

_Step = Block | ListItem | Definition


def flat(blocks: list[Block]) -> list[Inline]:
    """All inlines of blocks, in order, parted by line breaks."""
    result: list[Inline] = []
    for part in paragraphs(blocks):
        if result:
            result.append(LineBreak())
        result.extend(part)
    return result


def plain(inlines: list[Inline]) -> str:
    """The text of inlines; a line break is a blank."""
    return "".join(
        inline.text if isinstance(inline, Run) else " " if isinstance(inline, LineBreak) else ""
        for inline in inlines
    ).strip()


def walk(blocks: list[Block]) -> Iterator[Block]:
    """All blocks within blocks, in order, themselves included."""
    waiting: list[_Step] = list(reversed(blocks))
    while waiting:
        step = waiting.pop()
        if not isinstance(step, ListItem | Definition):
            yield step
        waiting.extend(reversed(_inner(step)))


def paragraphs(blocks: list[Block]) -> Iterator[list[Inline]]:
    """The inlines of every paragraph within blocks, in order; none is empty."""
    waiting: list[_Step] = list(reversed(blocks))
    while waiting:
        step = waiting.pop()
        yield from (part for part in _own(step) if part)
        waiting.extend(reversed(_inner(step)))


def _own(step: _Step) -> list[list[Inline]]:
    if isinstance(step, Heading | Paragraph):
        return [step.inlines]
    if isinstance(step, Code):
        return [list(line) for line in step.lines]
    if isinstance(step, Figure):
        return [[step.image], step.caption]
    if isinstance(step, FormulaBlock):
        return [[step.formula]]
    if isinstance(step, Definition):
        return [step.term]
    if isinstance(step, Table):
        return [step.caption]
    if isinstance(step, Callout | Chart) and step.title:
        return [[Run(step.title, bold=True)]]
    if isinstance(step, Diagram):
        return [[Run(step.alt)]] if step.alt else []
    if isinstance(step, Sources):
        return [[Run(source.title)] for source in step.sources]
    return []


def _inner(step: _Step) -> list[_Step]:
    if isinstance(step, ListItem | Definition | Quote | Callout | Box | SpeakerNotes):
        return list(step.blocks)
    if isinstance(step, ListBlock | DefinitionList):
        return list(step.items)
    if isinstance(step, Table):
        return [block for cell in step.cells for block in cell.blocks]
    if isinstance(step, Columns):
        return [block for column in step.columns for block in column]
    return []
