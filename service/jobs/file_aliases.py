"""Under which further names the files of a call lie in OUT_DIR, so that a bare name means what its writer meant.

A file of the turn answers to its path below ``files/``. An attachment is there by its bare name as a copy: reading
it reads that file, writing to it makes a file of the turn. So is a file of an earlier turn that a program names as
in another sandbox, ``/mnt/data/a.csv``.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from proofbox.contracts.paths import FilePath, Namespace, is_turn_id
from proofbox.service.jobs.inputs import JobInputs
from proofbox.service.sandbox.port import InputFile, Job

COPIES_BYTES_MAX = 8 * 1024 * 1024
"""All copies of a call together, in memory beside what they are copies of."""
_ALIAS_BYTES_MAX = 255  # of a name that a program writes out
_OCCURRENCES_MAX = 50
# Folders in front of a name that mean no folder of their own.
_TRANSPARENT = re.compile(
    r"(?:^|[\s\"'`=(,:{}])/?(?:(?:\.|~|out|OUT_DIR|\$?\{?OUT_DIR\}?|mnt|data|user-data|outputs?|uploads|files|attachments"
    r"|home|user|tmp|workspace|app)/+)*$"
)
_FOREIGN_SANDBOX = "/mnt/"


def named_inputs(job: Job, inputs: JobInputs) -> list[InputFile]:
    """The files that are put in; for a caller's program with the further names that it may use."""
    files = list(inputs.files.values())
    if job.language in {"render", "page_text"}:
        return files
    code = job.code.decode(errors="replace")
    if inputs.workspace is not None:
        return add_workspace_copies(files, job.turn_id, code, inputs.new_attachments)
    return add_aliases(files, job.turn_id, code)


def add_aliases(inputs: Iterable[InputFile], turn_id: str, code: str) -> list[InputFile]:
    """The files of a call with their further names.

    Args:
        inputs: the files, of several with one name the preferred one first.
        turn_id: the current turn.
        code: the program, which names some of them.
    """
    files = list(inputs)
    taken = {file.path.rel for file in files if _is_own(file.path, turn_id)}
    copied, left_bytes = dict[FilePath, tuple[str, ...]](), COPIES_BYTES_MAX
    for file in _by_preference(files, turn_id):
        names = tuple(_copy_names(file.path, turn_id, code))
        if names and file.path.rel not in taken and file.size_bytes <= left_bytes:
            taken.add(file.path.rel)
            left_bytes -= file.size_bytes
            copied[file.path] = names
    return [
        replace(file, links=tuple(_link_names(file.path, turn_id)), copies=copied.get(file.path, ()))
        for file in files
    ]


def add_workspace_copies(
    inputs: Iterable[InputFile], turn_id: str, code: str, new: Collection[FilePath]
) -> list[InputFile]:
    """The files of a call with a workspace: its program starts in ``files/``, so new attachments are copied there.

    Files of the turn have no second names, which would not outlast the call.

    Args:
        inputs: the files.
        turn_id: the current turn.
        code: the program, which names some of them.
        new: the attachments that the workspace does not have yet.
    """
    files, left_bytes = add_aliases(inputs, turn_id, code), COPIES_BYTES_MAX
    taken = {file.path.rel for file in files if _is_own(file.path, turn_id)}
    copies = []
    for file in _by_preference(files, turn_id):
        path = file.path
        if path in new and path.rel not in taken and file.size_bytes <= left_bytes:
            taken.add(path.rel)
            left_bytes -= file.size_bytes
            own = FilePath(turn_id, Namespace.FILES, path.rel)
            copies.append(InputFile(own, file.source, file.size_bytes, writable=True))
    return [_without_bare_names(file, turn_id) for file in files] + copies


def _without_bare_names(file: InputFile, turn_id: str) -> InputFile:
    if file.path.namespace is Namespace.ATTACHMENTS:
        return replace(file, copies=())
    return replace(file, links=()) if file.path.turn_id == turn_id else file


def is_named(code: str, rel: str) -> bool:
    """Whether a program names a file, by its path below its folder or by the last part of that alone."""
    return any(_occurs(code, name) for name in {rel, rel.rpartition("/")[2]})


def _is_own(path: FilePath, turn_id: str) -> bool:
    return path.turn_id == turn_id and path.namespace is Namespace.FILES


def _by_preference(files: Sequence[InputFile], turn_id: str) -> list[InputFile]:
    """Attachments of the turn, then all of other turns, in their order."""
    others = [file for file in files if not _is_own(file.path, turn_id)]
    return sorted(others, key=lambda file: file.path.turn_id != turn_id)


def _link_names(path: FilePath, turn_id: str) -> Iterator[str]:
    if path.namespace is Namespace.ATTACHMENTS:
        name = f"{Namespace.ATTACHMENTS}/{path.rel}"
    elif path.turn_id == turn_id:
        name = path.rel
    else:
        return
    if _can_be_alias(path.rel):
        yield name


def _copy_names(path: FilePath, turn_id: str, code: str) -> Iterator[str]:
    rel = path.rel
    if not _can_be_alias(rel):
        return
    below_files = f"{turn_id}/{Namespace.FILES}/{rel}"
    if path.namespace is Namespace.FILES:
        # A copy below files/ changes what appending there does: only for who writes the paths of another sandbox.
        if _FOREIGN_SANDBOX in code and _occurs(code, rel):
            yield below_files
        return
    if _FOREIGN_SANDBOX in code or f"files/{rel}" in code:
        yield below_files
    yield rel


def _can_be_alias(rel: str) -> bool:
    """Whether a path may stand in OUT_DIR: what lies in the folders there that have a meaning may not."""
    head, _, rest = rel.partition("/")
    return len(rel.encode()) <= _ALIAS_BYTES_MAX and not (rest and (head == Namespace.FILES or is_turn_id(head)))


def _occurs(code: str, name: str) -> bool:
    """Whether a name stands in a program by itself, or behind a folder that adds nothing to it."""
    form = re.compile(rf"(?<![\w.-]){re.escape(name)}(?!\w|\.\w)")
    for number, found in enumerate(form.finditer(code)):
        start = found.start()
        if number >= _OCCURRENCES_MAX or code[start - 1 : start] != "/" or _TRANSPARENT.search(code[:start][-100:]):
            return True
    return False
