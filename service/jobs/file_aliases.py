"""Where the files of a call lie in OUT_DIR, and what its program may put in front of their names.

The working directory is the workspace: each name once, as its newest version. The path of the turn that a version
came from lies outside of it. What a name means does not depend on the text of the program; only whether such a
further path is there, and whether it is a copy, does.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from proofbox.contracts.paths import FilePath, Namespace
from proofbox.service.jobs.inputs import JobInputs
from proofbox.service.sandbox.port import InputFile, Job

COPIES_BYTES_MAX = 8 * 1024 * 1024
"""All copies of a call together, in memory beside what they are copies of; what is larger has a second name."""
_OCCURRENCES_MAX = 50
# Folders in front of a name that mean no folder of their own.
_TRANSPARENT = re.compile(
    r"(?:^|[\s\"'`=(,:{}])/?(?:(?:\.|~|out|OUT_DIR|\$?\{?OUT_DIR\}?|mnt|data|user-data|outputs?|uploads|files|attachments"
    r"|home|user|tmp|workspace|app)/+)*$"
)
_NAMES_A_TURN = re.compile(r"(?<![\w.-])turn_(?P<turn>[A-Za-z0-9_.-]*)|(?<![\w.-])attachments(?![\w-])")
# In front of a name, as an argument, or as a word of a shell: no key of a dictionary, no word of a text.
_FOLDER = (
    r"(?<![\w.-]){0}/|[(/,+=]\s*[rbf]?(?P<quote>[\"']){0}(?P=quote)(?!\s*[:\]])"
    r"|(?:^|[;&|]\s*)\s*(?:cd|ls|find|du|zip|tar|cp|mv|rm|mkdir|cat|grep|tree)\b[^\n;&|]*\s{0}(?=$|[\s;&|)/])"
)
_FOLDERS = {name: re.compile(_FOLDER.format(name), re.MULTILINE) for name in (Namespace.FILES.value, "attachments")}
_OWN_PROGRAMS = frozenset({"render", "page_text", "inventory"})
_SCRIPTS = (".py", ".sh", ".js", ".mjs", ".cjs", ".ts", ".ipynb")


def placed(job: Job, inputs: JobInputs) -> tuple[Job, list[InputFile]]:
    """The program with the folders that it puts in front of names, and the files where they are put in."""
    if job.language in _OWN_PROGRAMS:
        return job, list(inputs.files.values())
    text = "\n".join(_texts(job))
    return replace(job, spellings=_spellings(text, {*inputs.turns, job.turn_id})), _place(job, inputs, text)


def _place(job: Job, inputs: JobInputs, text: str) -> list[InputFile]:
    """The files, each where it lies, with the further path that it has."""
    rels = inputs.rels
    names_turn = _NAMES_A_TURN.search(text) is not None
    # A script of the workspace that the program starts may name what it does not.
    has_path = names_turn or any(rel.endswith(_SCRIPTS) for rel in inputs.names)
    left_bytes = COPIES_BYTES_MAX if names_turn else 0
    files = []
    for physical, file in inputs.files.items():
        rel = rels.get(physical)
        if rel is None:
            files.append(file)
            continue
        place = FilePath(job.turn_id, Namespace.FILES, rel)
        further = (physical,) if has_path and place != file.path else ()
        is_copied = bool(further) and file.size_bytes <= left_bytes
        left_bytes -= file.size_bytes if is_copied else 0
        links, copies = ((), further) if is_copied else (further, ())
        files.append(replace(file, path=place, writable=True, links=links, copies=copies))
    return files


def _spellings(text: str, turns: set[str]) -> tuple[str, ...]:
    """The folders that a program puts in front of names: ``files``, ``attachments``, and some turns."""
    found = [name for name, form in _FOLDERS.items() if form.search(text)]
    named = {match["turn"] for match in _NAMES_A_TURN.finditer(text)} - {None}
    # Of a name that the program builds, as in f"turn_{n}", any turn may be meant.
    every = any(f"turn_{begin}" not in turns for begin in named)
    found += [turn for turn in sorted(turns) if every or turn.removeprefix("turn_") in named]
    return tuple(found)


def _texts(job: Job) -> Iterator[str]:
    yield job.code.decode(errors="replace")
    yield job.stdin.decode(errors="replace")
    yield from (f'"{value}"' for value in (*job.args, *job.env.values()))
    if not job.cwd.startswith(f"{job.turn_id}/"):
        yield job.cwd


def is_named(code: str, rel: str) -> bool:
    """Whether a program names a file, by its path below its folder or by the last part of that alone."""
    return any(name in code and _occurs(code, name) for name in {rel, rel.rpartition("/")[2]})


def _occurs(code: str, name: str) -> bool:
    """Whether a name stands in a program by itself, or behind a folder that adds nothing to it."""
    form = re.compile(rf"(?<![\w.-]){re.escape(name)}(?!\w|\.\w)")
    for number, found in enumerate(form.finditer(code)):
        start = found.start()
        if number >= _OCCURRENCES_MAX or code[start - 1 : start] != "/" or _TRANSPARENT.search(code[:start][-100:]):
            return True
    return False
