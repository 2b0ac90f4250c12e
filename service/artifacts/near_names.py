"""What a conversation has in place of a path that leads to nothing: near names, files of a folder or a pattern."""

import difflib
import fnmatch
from collections.abc import Collection, Iterable

from proofbox.contracts.paths import FilePath, Namespace
from proofbox.service.artifacts.conversation_files import CallFiles
from proofbox.service.visible_text import list_first

_LISTED = 3
_COMPARED = 500  # names for each path that is not there
_PATH_CHARS_MAX = 120
_CUTOFF = 0.75
_WILDCARDS = frozenset("*?[")


async def describe_near(files: CallFiles, path: FilePath, turn_id: str) -> str:
    """A clause on what there is instead of a file, such as ``the conversation has files/a.csv``.

    The newest versions are named by their paths below ``files/``: by that, records of spaces know those that are
    not shown. Others are named by the paths of their turns.

    Args:
        files: those of the call.
        path: the file that is not there.
        turn_id: the turn of the call.

    Raises:
        StoreFailedError: a store failed.
    """
    newest = await files.newest_by_name(turn_id)
    known = {f"{Namespace.FILES}/{name}": name for name in newest}
    if path.turn_id != turn_id or path.namespace is not Namespace.FILES:
        of_turn = await files.by_rel(path.turn_id, path.namespace)
        of_path = {file.path: name for name, file in of_turn.items()}
        older = {at.physical: name for at, name in of_path.items() if name not in newest or newest[name].path != at}
        known = older | known
    rel = path.rel.rstrip("/")
    below = sorted(physical for physical, name in known.items() if name.startswith(f"{rel}/"))
    if below:
        return f"it is a folder with {_list(below)}; give one of them"
    if _WILDCARDS & set(rel):
        matching = sorted(physical for physical, name in known.items() if fnmatch.fnmatchcase(name, rel))
        if matching:
            return f"it is a pattern for {_list(matching)}; give one of them"
    near = _find_near(rel, known)
    if near:
        return f"the conversation has {_list(near)}"
    return f"the conversation has {_list(known)}" if known else "the conversation has no files yet"


def _find_near(rel: str, known: dict[str, str]) -> list[str]:
    """The same path in another case, the same name elsewhere, or names that are written alike."""
    last = rel.rpartition("/")[2].casefold()
    alike = [physical for physical, name in known.items() if name.casefold() == rel.casefold()]
    beside = [physical for physical, name in known.items() if name.rpartition("/")[2].casefold() == last]
    if alike or beside:
        return list(dict.fromkeys([*alike, *beside]))
    by_name: dict[str, list[str]] = {}
    for physical, name in list(known.items())[:_COMPARED]:
        by_name.setdefault(name.rpartition("/")[2].casefold(), []).append(physical)
    close = difflib.get_close_matches(last[:_PATH_CHARS_MAX], by_name, n=_LISTED, cutoff=_CUTOFF)
    return [physical for name in close for physical in by_name[name]]


def _list(paths: Collection[str] | Iterable[str]) -> str:
    return list_first([p if len(p) <= _PATH_CHARS_MAX else f"…{p[-_PATH_CHARS_MAX:]}" for p in paths], _LISTED)
