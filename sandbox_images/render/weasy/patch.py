"""Changes to functions of other packages, all of which can be taken back.

A process that has rendered may go on as a program of somebody else, who imports the package as it is: see
`render.warm_up`.
"""

from typing import Any

_ABSENT = object()
_originals: dict[tuple[Any, str], Any] = {}


def change(owner: Any, name: str, value: Any) -> None:
    """Puts a value in the place of a class's or module's own; again is no harm."""
    _originals.setdefault((owner, name), vars(owner).get(name, _ABSENT))
    setattr(owner, name, value)


def take_back() -> None:
    """Undoes all changes."""
    for (owner, name), original in _originals.items():
        if original is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, original)
    _originals.clear()
