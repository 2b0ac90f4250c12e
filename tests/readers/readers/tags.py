"""The structure tree of a tagged PDF with its text, as Poppler reads it."""

import re
import subprocess
from pathlib import Path
from typing import Any

_ROLE = re.compile(r"([A-Z][A-Za-z0-9]*)(?: <[^>]*>)?(?: \((?:block|inline)\))?:?")
_ATTRIBUTE = re.compile(r"/(\w+) (.*)")


def tree(path: Path) -> list[Any]:
    """The root of the tree as ``[role, {attribute: value}, [child or text, …]]``; its role is ``Root``.

    A PDF without tags has a root without children; of one that cannot be read the root holds why, as text.
    """
    root: list[Any] = ["Root", {}, []]
    done = subprocess.run(["pdfinfo", "-struct-text", path], capture_output=True, check=False)
    if done.returncode:
        root[2].append(done.stderr.decode(errors="replace").strip())
        return root
    # Poppler indents each level by two columns, and attributes by three more than their element.
    stack: list[tuple[int, list[Any]]] = [(-1, root)]
    for line in done.stdout.decode(errors="replace").splitlines():
        content = line.lstrip(" ")
        depth = len(line) - len(content)
        if (attribute := _ATTRIBUTE.fullmatch(content)) and depth % 2:
            stack[-1][1][1][attribute[1]] = attribute[2]
            continue
        while len(stack) > 1 and stack[-1][0] >= depth:
            stack.pop()
        if role := _ROLE.fullmatch(content):
            element: list[Any] = [role[1], {}, []]
            stack[-1][1][2].append(element)
            stack.append((depth, element))
        elif content.startswith('"'):
            stack[-1][1][2].append(content[1:].removesuffix('"'))
    return root
