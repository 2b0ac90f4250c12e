"""Where the files of a call lie in OUT_DIR.

The working directory is the workspace: each name once, as its newest version. The path of the turn that a version
came from lies outside of it. What a name means does not depend on the text of the program; only whether such a
further path is there, and whether it is a copy, does.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from proofbox.contracts.paths import FilePath, Namespace, is_turn_id
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
_TURNS_MAX = 20
_DIGITS_MAX = 9
_OWN_PROGRAMS = frozenset({"render", "page_text", "inventory"})
_SCRIPTS = (".py", ".sh", ".js", ".mjs", ".cjs", ".ts", ".ipynb")


def placed(job: Job, inputs: JobInputs) -> list[InputFile]:
    """The files of a program, each where it lies, with the further path that it has."""
    if job.language in _OWN_PROGRAMS:
        return list(inputs.files.values())
    text = "\n".join(_texts(job))
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


def _texts(job: Job) -> Iterator[str]:
    yield job.code.decode(errors="replace")
    yield job.stdin.decode(errors="replace")
    yield from (f'"{value}"' for value in (*job.args, *job.env.values()))
    if not job.cwd.startswith(f"{job.turn_id}/"):
        yield job.cwd


def turns_named(code: str, turn_id: str) -> list[str]:
    """The other turns that a program names without the rest of a path, as it joins or computes that.

    Of a name that it builds, as in ``f"turn_{n}"``, the turns before the current one are meant, by their numbers.
    """
    named, builds = dict[str, None](), False
    for found in _NAMES_A_TURN.finditer(code):
        if found["turn"] is None or code.startswith(("/files", "/attachments"), found.end()):
            continue
        named.setdefault(found[0])
        builds = builds or found["turn"] == "" or code.startswith(("{", "*", "?", "["), found.end())
    number = turn_id.removeprefix("turn_")
    if builds and number.isascii() and number.isdecimal() and len(number) <= _DIGITS_MAX:
        before = range(int(number) - 1, max(-1, int(number) - 1 - _TURNS_MAX), -1)
        named.update(dict.fromkeys(f"turn_{at}" for at in before))
    return [turn for turn in named if turn != turn_id and is_turn_id(turn)][:_TURNS_MAX]


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
