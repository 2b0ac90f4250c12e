"""The paths that a text of a model may name, the likeliest first."""

import re
from urllib.parse import unquote

from proofbox.contracts.logical_paths import LogicalPath, TurnPath, parse
from proofbox.contracts.paths import (
    FilePath,
    Namespace,
    UnsafePathError,
    in_turn,
    is_turn_id,
    unquoted,
    without_output_place,
)

_LOGICAL = ("ar:", "fi:", "so:", "su:", "tc:", "sk:")
_ATTACHMENTS = "attachments/"
# Where other sandboxes keep what the user sent.
_UPLOADS = re.compile(r"/mnt/user-data/uploads/+")


def possible_paths(text: str, turn_id: str) -> list[LogicalPath]:
    """The logical paths that a text may mean: itself, or a file or an attachment of the current turn.

    Args:
        text: a logical, a physical, a bare or a ``files/`` path, also below the folder of another sandbox;
            ``ar:<turn>.artifacts.<path>`` names a file, too.
        turn_id: the current turn.

    Raises:
        UnsafePathError: it is not a path.
    """
    found = list(_paths_of(text, turn_id))
    plain = unquote(text)
    if plain != text:
        try:
            found += _paths_of(plain, turn_id)
        except UnsafePathError:
            return found
    return found


def _paths_of(text: str, turn_id: str) -> list[LogicalPath]:
    text = unquoted(text)
    if text.startswith(_LOGICAL):
        path = parse(text)
        is_artifact = isinstance(path, TurnPath) and path.kind == "artifact"
        return [path, *_files(path.item_id, path.turn_id)] if is_artifact and isinstance(path, TurnPath) else [path]
    bare = without_output_place(text)
    uploaded = _UPLOADS.match(bare)
    if uploaded is not None:
        bare = text = bare[uploaded.end() :]
    head, _, rest = bare.removeprefix("./").partition("/")
    if is_turn_id(head) and rest.partition("/")[0] in set(Namespace):
        return [FilePath.from_physical(bare)]
    files = _files(text, turn_id)
    return [*files] if uploaded is None else [*reversed(files)]


def _files(text: str, turn_id: str) -> list[FilePath]:
    """The file and the attachment of a turn that a bare path may mean."""
    file = in_turn(text, turn_id).file
    rel = file.rel.removeprefix(_ATTACHMENTS)
    return [file, FilePath(turn_id, Namespace.ATTACHMENTS, rel)] if file.turn_id == turn_id else [file]
