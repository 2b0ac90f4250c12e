"""Code blocks: lines of runs."""

from render.ir import Inline, LineBreak, Run


def lines(inlines: list[Inline]) -> list[list[Run]] | None:
    """Splits what stood in a ``pre`` at its line breaks; None if there is more in it than text."""
    result: list[list[Run]] = [[]]
    for inline in inlines:
        if isinstance(inline, LineBreak):
            result.append([])
        elif isinstance(inline, Run):
            result[-1].append(inline)
        else:
            return None
    while len(result) > 1 and not result[-1]:
        result.pop()
    return result
