"""Hints of a report: what a program that met a missing file or library can write in its place."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from proofbox.contracts.artifacts import Contract
from proofbox.contracts.codes import RuntimeCode, VerdictCode
from proofbox.contracts.tools import Language
from proofbox.service.execution.missing_libraries import (
    HOW_TO_LIST,
    INSTALLERS,
    SUBSTITUTES,
    asks_what_is_installed,
    missing_command,
    missing_module,
    missing_package,
)
from proofbox.service.execution.program_habits import habit_hints, offline_hint
from proofbox.service.jobs.runner import JobResult
from proofbox.service.jobs.verdicts import Verdict
from proofbox.service.sandbox.port import FileState
from proofbox.service.sandbox.program_output import program_output, stderr_text

HINTS_MAX = 5
_FILES_LISTED = 5
_NAME_CHARS_MAX = 200
_SHORT_CHARS = 10  # too few for the message of an error
_TAIL_CHARS = 16_000

_QUOTED = r"(?P<{0}>'(?:[^'\n]{{1,1024}})'|\"(?:[^\"\n]{{1,1024}})\")"
_CANNOT = r"(?:[Cc]an(?:not|'t)|[Cc]ould(?:n't| not))"
_NO_FILE = re.compile(
    r"No such file or directory: (?:b?" + _QUOTED.format("python") + r")"
    r"|ENOENT: no such file or directory, \w+ " + _QUOTED.format("node") + ""
    rf"|{_CANNOT} (?:access|open|read|stat|remove|create regular file|create directory)(?: file)?"
    r" [`']?(?P<tool>[^'`\n]{1,1024}?)'?(?: for reading)?: (?:\[Errno 2\] )?No such file or directory"
    rf"|^(?:[^\n:]{{1,200}}: )?(?:line \d+: )?(?!{_CANNOT} )(?P<shell>[^\n:]{{1,1024}}): No such file or directory"
    r"|^tar: (?P<tar>[^\n:]{1,1024}): Cannot open: No such file or directory"
    r"|^unzip: +cannot find or open (?P<zip>[^\n,]{1,1024}),"
    r"|\[Errno 2\] Failed to open local file " + _QUOTED.format("pyarrow") + ""
    r"|^[\w.]{0,100}PackageNotFoundError: Package not found at " + _QUOTED.format("office") + ""
    r"|^FileNotFoundError: (?P<bare>[^\s\['\":]{1,1024}?)(?: not found\.)?$",
    re.MULTILINE,
)
_NOT_WRITABLE = re.compile(
    r"(?:Read-only file system|Permission denied): (?:b?" + _QUOTED.format("python") + r")"
    r"|^(?:[^\n:]{1,200}: )?(?:line \d+: )?(?!cannot )(?P<shell>[^\n:]{1,1024})"
    r": (?:Read-only file system|Permission denied)"
    r"|cannot \w+(?: \w+){0,2} [`'](?P<tool>[^'`\n]{1,1024})': (?:Read-only file system|Permission denied)",
    re.MULTILINE,
)
_NO_MODULE = re.compile(r"(?:No module named|Missing optional dependency) (?P<name>'?[\w.-]{1,200}'?)")
_NO_PACKAGE = re.compile(r"Cannot find (?:module|package) '(?P<name>@?[\w./-]{1,200})'")  # of Node.js
_NO_COMMAND = re.compile(r"(?P<name>pip3?|conda|apt|apt-get|npm|uv): (?:command )?not found")
_NO_TOOL = re.compile(
    r"(?P<shell>[\w.+-]{1,100}): command not found"
    r"|^(?:/bin/)?sh: (?:line )?\d+: (?P<sh>[\w.+-]{1,100}): not found$"
    r"|\bspawn(?:Sync)? (?P<node>[\w.+-]{1,100}) ENOENT",
    re.MULTILINE,
)
_RUNS_A_COMMAND = "_execute_child"  # stands in what subprocess.py shows of where it failed
_NO_FOLDER = re.compile(r"Cannot save file into a non-existent directory: " + _QUOTED.format("pandas"))
_OTHER_ERRORS = (
    (
        re.compile(r"requires the Kaleido package"),
        f"the library kaleido is not installed; use {SUBSTITUTES['kaleido']}",
    ),
    (
        re.compile(r"sqlite3\.OperationalError: unable to open database file"),
        "the folder of the database does not exist or is read-only; open a copy in files/ or in /tmp",
    ),
    (
        re.compile(r"are the same file|SameFileError"),
        "a file of this turn has two names, its bare one and files/<name>; it need not be copied",
    ),
)
_PICTURES = (".png", ".jpg", ".jpeg", ".svg", ".pdf", ".webp", ".gif", ".tif", ".tiff")
_WAYS_TO_SAVE = (  # endings of a promised file, of what was shown, and how it is saved
    (_PICTURES, ".png", "plt.savefig('{0}'), or save('{0}') of a picture"),
    ((".html", ".htm"), ".html", "fig.write_html('{0}'), or save('{0}')"),
    (_PICTURES, ".html", "it as a page, fig.write_html(…), or draw with matplotlib and plt.savefig('{0}')"),
)
_OF_OTHER_TURN = re.compile(r"(?:^|/)turn_[A-Za-z0-9_.-]+/(?:files|attachments)/")


@dataclass(frozen=True, slots=True)
class RanProgram:
    """A program that ran, and what its hints depend on.

    Attributes:
        code: the program.
        language: of the tool that was called.
        turn_id: the current turn.
        contract: what the call promises.
        result: how it ended.
        verdicts: what became of the promised files.
        known_paths: physical paths of the conversation's files, of several with one name the preferred one first.
        libraries: name and version of the libraries that are installed; None if that is not known.
        shown: physical paths of the files with what it showed.
        has_network: the call asked for a network.
        has_index: calls may have packages installed.
    """

    code: str
    language: Language
    turn_id: str
    contract: Contract
    result: JobResult
    verdicts: Sequence[Verdict]
    known_paths: Sequence[str] = ()
    libraries: Mapping[str, str] | None = None
    shown: Sequence[str] = ()
    has_network: bool = False
    has_index: bool = False


def build_hints(
    text: str,
    known_paths: Sequence[str],
    libraries: Mapping[str, str] | None,
    turn_id: str = "",
    *,
    has_index: bool = False,
    code: str = "",
) -> list[str]:
    """What to write in place of what was not found, one sentence each, at most `HINTS_MAX`.

    Args:
        text: the end of what the program wrote.
        known_paths: as in `RanProgram`.
        libraries: as in `RanProgram`.
        turn_id: the current turn; files of it are named as the program names them, ``files/…``.
        has_index: as in `RanProgram`.
        code: the program, which may ask what is installed.
    """
    text = text[-_TAIL_CHARS:]
    hints: dict[str, None] = {}
    for found in _NO_FILE.finditer(text):
        if f"'{_path_of(found)}' is not a valid package style" not in text:
            hints.setdefault(
                _missing_path(_path_of(found), found.lastgroup == "python", text, known_paths, turn_id)
            )
    for found in _NO_TOOL.finditer(text):
        hints.setdefault(missing_command(_quote(_path_of(found))))
    for found in _NO_FOLDER.finditer(text):
        hints.setdefault(f"the folder {_quote(_path_of(found))} does not exist; write results to files/<name>")
    for found in _NOT_WRITABLE.finditer(text):
        hints.setdefault(_not_writable(_path_of(found)))
    for form in (_NO_MODULE, _NO_COMMAND):
        for found in form.finditer(text):
            name = found["name"].strip("'")
            own = None if name in INSTALLERS else _own_module(name, known_paths, turn_id)
            is_asked = asks_what_is_installed(code)
            hints.setdefault(own or missing_module(name, libraries, has_index=has_index, is_asked=is_asked))
    for found in _NO_PACKAGE.finditer(text):
        hints.setdefault(missing_package(found["name"]))
    hints.update(dict.fromkeys(hint for form, hint in _OTHER_ERRORS if form.search(text)))
    found_hints = [hint for hint in hints if hint][:HINTS_MAX]
    if libraries and any(hint.endswith(" is not installed") for hint in found_hints):  # with no word of what to use
        found_hints = [*found_hints[: HINTS_MAX - 1], HOW_TO_LIST]
    return found_hints


def run_hints(ran: RanProgram) -> list[str]:
    """The hints of a run: on promised files that lie elsewhere, on habits, then on what its output names."""
    promises = ran.contract.promises
    hints = [
        f"{promise.path.physical} was written to {place}/{promise.path.rel}; write it to files/{promise.path.rel}"
        for index, place in ran.result.collected.taken_in
        if index < len(promises) and (promise := promises[index])
    ]
    written = [found.path.physical for found in ran.result.collected.found if found.state is FileState.FILE]
    hints += [
        elsewhere_hint(verdict.path.physical, written) or ""
        for verdict in ran.verdicts
        if verdict.code is VerdictCode.MISSING_FILE and verdict.promise is not None and not verdict.promise.is_glob
    ]
    failure = ran.result.failure
    for text in _list_searched_ends(ran.contract, ran.result, ran.verdicts):
        if failure is not None:
            hints += habit_hints(
                ran.code,
                ran.language,
                text,
                has_network=ran.has_network,
                timed_out=failure.code is RuntimeCode.TIMEOUT,
            )
        hints += build_hints(
            text, ran.known_paths, ran.libraries, ran.turn_id, has_index=ran.has_index, code=ran.code
        )
    if failure is None and not ran.has_network:
        printed = program_output(ran.result.outcome.output).combined
        hints.append(offline_hint(printed, ran.language) if len(printed) > _SHORT_CHARS else "")
    hints = [hint for hint in dict.fromkeys(hints) if hint][:HINTS_MAX]
    missing = _missing_names(ran.verdicts)
    if (hint := _save_what_is_shown(missing, ran.shown)) is not None:
        return [hint, *hints][:HINTS_MAX]
    return hints if hints or failure is not None else _where_to_write(missing)


def _missing_names(verdicts: Sequence[Verdict]) -> list[str]:
    return [
        verdict.promise.path.rel
        for verdict in verdicts
        if verdict.code is VerdictCode.MISSING_FILE and verdict.promise is not None and not verdict.promise.is_glob
    ]


def _save_what_is_shown(missing: Sequence[str], shown: Sequence[str]) -> str | None:
    """How a promised picture is saved that was only shown; None if none is missing, or nothing was shown."""
    for suffixes, of_shown, how in _WAYS_TO_SAVE:
        rel = next((rel for rel in missing if rel.lower().endswith(suffixes)), None)
        if rel is not None and any(path.endswith(of_shown) for path in shown):
            return f"{_quote(rel)} was shown and not saved; write {how.format(_quote(f'files/{rel}'))}"
    return None


def _where_to_write(missing: Sequence[str]) -> list[str]:
    """Where a promised file belongs that a run did not write, though it ended well; nothing if none is missing."""
    if missing and "*" in missing[0]:
        return [f"{_quote(missing[0])} is a pattern; promise it as glob in place of filename"]
    return [f"{_quote(rel.rpartition('/')[2])} was not written; write it to files/{rel}" for rel in missing[:1]]


def names_missing_library(contract: Contract, result: JobResult, verdicts: Sequence[Verdict]) -> bool:
    """Whether a hint of a run will be on a library or an installer that a program did not find."""
    texts = _list_searched_ends(contract, result, verdicts)
    return any(form.search(text) for text in texts for form in (_NO_MODULE, _NO_COMMAND))


def _list_searched_ends(contract: Contract, result: JobResult, verdicts: Sequence[Verdict]) -> list[str]:
    """The ends of what a program wrote that are searched for errors.

    What a program prints of an error that it caught is read where the run did not end well, or only explored.
    """
    output = result.outcome.output
    texts = [stderr_text(output)]
    is_missing = any(verdict.code is VerdictCode.MISSING_FILE for verdict in verdicts)
    if is_missing or result.failure is not None or not contract.promises:
        texts.append(program_output(output).combined)
    return [text[-_TAIL_CHARS:] for text in texts]


def elsewhere_hint(promised: str, others: Iterable[str]) -> str | None:
    """Where a file lies that has the name of a promised one that is missing; None if there is none.

    Args:
        promised: the physical path of the promised file.
        others: physical paths of files that the program wrote.
    """
    name = promised.rpartition("/")[2]
    written = [path for path in others if path != promised]
    for is_alike in (_has_name, _has_stem):
        found = next((path for path in written if is_alike(path, name)), None)
        if found is not None:
            return f"{_quote(name)} was not written, but {found}; promise that, or write {_below_files(promised)}"
    return None


def missing_path_hints(missing: Sequence[str], known_paths: Sequence[str]) -> list[str]:
    """What to write in place of paths that the code names and the conversation does not have."""
    hints = []
    known = {_below_files(path) or path: path for path in known_paths[:500]}  # whatever their turns
    for path in missing:
        wanted = (_below_files(path) or path)[:_NAME_CHARS_MAX]
        close = difflib.get_close_matches(wanted, known, n=1, cutoff=0.8)
        hints += [f"the conversation has {_quote(known[close[0]])}"] if close else []
    hints.append("write new files to files/<name>; folders of other turns can only be read")
    return hints[:HINTS_MAX]


def _has_name(path: str, name: str) -> bool:
    return path.rpartition("/")[2].lower() == name.lower()


def _has_stem(path: str, name: str) -> bool:
    """Whether two names differ in their extension alone, as ``chart.jpg`` and ``chart.jpeg`` do."""
    return path.rpartition("/")[2].rpartition(".")[0].lower() == name.rpartition(".")[0].lower()


def _path_of(found: re.Match[str]) -> str:
    return next(text for text in found.groupdict().values() if text).strip("'\"`")


def _missing_path(path: str, of_python: bool, text: str, known_paths: Sequence[str], turn_id: str) -> str:
    """The hint on what was not found: a file, or the command of a program that runs others."""
    is_bare = of_python and "." not in path and "/" not in path
    if is_bare and _RUNS_A_COMMAND in text:
        return missing_command(_quote(path))
    hint = _missing_file(path, known_paths, turn_id)
    if is_bare and "Traceback" not in text:
        return f"{hint}; a command {_quote(path)} is not installed either"
    return hint


def _missing_file(path: str, known_paths: Sequence[str], turn_id: str) -> str:
    shown, name = _quote(path), path.rstrip("/").rpartition("/")[2]
    by_name: dict[str, list[str]] = {}
    for known in known_paths:
        by_name.setdefault(known.rpartition("/")[2].lower(), []).append(known)
    near = by_name.get(name.lower())
    if near is None and "." in name:
        close = difflib.get_close_matches(name.lower()[:_NAME_CHARS_MAX], list(by_name)[:500], n=1, cutoff=0.8)
        near = by_name[close[0]] if close else None
    if near:
        places = [_as_written(known, turn_id) for known in near[:_FILES_LISTED]]
        if shown in places:  # a relative path, of a program in another folder
            return f"the program's folder has no {shown}; write /mnt/data/{shown}"
        return f"{shown} does not exist; the conversation has {', '.join(places)}"
    if path.startswith(("/", "~")) and "." in name:
        return f"{shown} does not exist; write results to files/{_quote(name)}"
    if not known_paths:
        return f"{shown} does not exist; the conversation has no files yet"
    listed = ", ".join(_as_written(known, turn_id) for known in known_paths[:_FILES_LISTED])
    more = len(known_paths) - _FILES_LISTED
    return f"{shown} does not exist; the conversation has {listed}" + (f" and {more} more" if more > 0 else "")


def _not_writable(path: str) -> str:
    name = _quote(path.rstrip("/").rpartition("/")[2])
    if _OF_OTHER_TURN.search(path):
        return f"{_quote(path)} belongs to another turn and is read-only; write to files/{name}"
    return f"{_quote(path)} cannot be written to; write results to files/<name>, other files to /tmp"


def _own_module(name: str, known_paths: Sequence[str], turn_id: str) -> str | None:
    """Where a file of the conversation lies that is imported by this name; None if there is none."""
    top = name.partition(".")[0]
    for rel in dict.fromkeys((f"{name.replace('.', '/')}.py", f"{top}.py", f"{top}/__init__.py")):
        path = next((path for path in known_paths if path.endswith(f"/{rel}")), None)
        if path is not None:
            written = _as_written(path, turn_id)
            folder = _as_written(path.removesuffix(f"/{rel}") + "/", turn_id).rstrip("/")
            return f"the conversation has {written}; before the import write sys.path.insert(0, {folder!r})"
    return None


def _as_written(physical: str, turn_id: str) -> str:
    """A path as a program of the turn names it."""
    own = f"{turn_id}/files/"
    return _quote(_below_files(physical) if turn_id and physical.startswith(own) else physical)


def _below_files(physical: str) -> str:
    return physical.partition("/")[2]


def _quote(text: str) -> str:
    """A name on one line, of bounded length."""
    line = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return line if len(line) <= _NAME_CHARS_MAX else "…" + line[-_NAME_CHARS_MAX + 1 :]
