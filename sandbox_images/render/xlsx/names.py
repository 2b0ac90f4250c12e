"""Names of sheets: from the request, captions and headings, in the form that Excel takes."""

import re

from render.xlsx.limits import cut

NAME_CHARACTERS_MAX = 31
_FORBIDDEN = re.compile(r"[\[\]:*?/\\\x00-\x1f]")
_RESERVED = frozenset({"history"})


def clean_name(text: str) -> str:
    """A text as the name of a sheet; empty if nothing is left of it."""
    name = " ".join(_FORBIDDEN.sub(" ", text).split())
    start = cut(name, NAME_CHARACTERS_MAX)
    if start != name:
        start = start.rpartition(" ")[0] if " " in start[NAME_CHARACTERS_MAX // 2 :] else start
    return start.strip("' ")


def fits(text: str) -> bool:
    """Whether a name shows all of a text."""
    return clean_name(text) == " ".join(text.split())


class SheetNames:
    """Gives each sheet a name of its own."""

    def __init__(self) -> None:
        self.taken: dict[str, str] = {}
        self._asked: dict[str, str] = {}

    @property
    def known(self) -> dict[str, str]:
        """The names by themselves and by what they were made of, in lower case."""
        return {**self._asked, **self.taken}

    def give(self, *wanted: str) -> str:
        """The first of some names that is not blank, with a number behind it if another sheet has it."""
        asked = next((text for text in wanted if clean_name(text)), "Sheet")
        name = clean_name(asked)
        number, free = 1, name
        while free.lower() in self.taken or free.lower() in _RESERVED:
            number += 1
            end = f" {number}"
            free = cut(name, NAME_CHARACTERS_MAX - len(end)).rstrip() + end
        self.taken[free.lower()] = free
        self._asked.setdefault(asked.lower(), free)
        return free
