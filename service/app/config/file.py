"""Reads a configuration file: TOML with the names of the settings in lower case, in sections or without."""

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pydantic_settings import BaseSettings

from proofbox.service.app.config.mistakes import Mistake
from proofbox.service.app.config.names import nearest_name
from proofbox.service.app.config.secret_files import FILE_SUFFIX, SecretFileError, file_settings, read_secret
from proofbox.service.app.config.sections import SECTION_NAMES
from proofbox.service.app.config.values import check_value, is_secret

_FILE_BYTES_MAX = 1024 * 1024
_TABLE = re.compile(r"\s*\[+\s*([A-Za-z0-9_-]+)")
_KEY = re.compile(r"\s*([A-Za-z0-9_-]+)\s*[=.]")
_LINE_IN_ERROR = re.compile(r" \(at line (\d+), column \d+\)$")
_NO_FILE = "correct the path, or unset PROOFBOX_CONFIG"
_NO_SETTING = "correct or remove it; docs/settings.md lists the settings"


@dataclass(slots=True)
class ConfigFile:
    """A configuration file that was read.

    Attributes:
        path: where it is.
        values: the usable values, by settings; secrets of ``…_file`` settings are read.
        lines: the lines of these settings.
        mistakes: what is wrong with the file.
        refused: settings of the file whose values are wrong.
    """

    path: Path
    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)

    def place(self, line: int | None) -> str:
        """The file with a line, for people."""
        return f"{self.path}, line {line}" if line else f"{self.path}"


@dataclass(frozen=True, slots=True)
class _Entry:
    key: str
    value: Any
    line: int | None


def read_config_file(path: Path, model: type[BaseSettings]) -> ConfigFile:
    """Read a file, and list all that is wrong with it; nothing is raised.

    Args:
        path: the file.
        model: the class of the settings.
    """
    found = ConfigFile(path)
    try:
        text = _read_text(path)
        parsed = tomllib.loads(text)
    except OSError as exc:
        found.mistakes.append(Mistake(str(path), "", f"cannot be read: {exc.strerror}", _NO_FILE))
        return found
    except UnicodeDecodeError:
        found.mistakes.append(Mistake(str(path), "", "is not UTF-8", "save it as UTF-8"))
        return found
    except tomllib.TOMLDecodeError as exc:
        found.mistakes.append(_syntax_mistake(found, str(exc)))
        return found
    for entry in _entries(found, parsed, _find_lines(text), model):
        _take(found, entry, model)
    return found


def _read_text(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(_FILE_BYTES_MAX + 1)
    if len(data) > _FILE_BYTES_MAX:
        raise OSError(0, f"it has more than {_FILE_BYTES_MAX} bytes")
    return data.decode("utf-8")


def _syntax_mistake(found: ConfigFile, text: str) -> Mistake:
    match = _LINE_IN_ERROR.search(text)
    line = int(match[1]) if match else None
    problem = _LINE_IN_ERROR.sub("", text)
    return Mistake(found.place(line), "", f"is not TOML: {problem}", "correct the line; text needs quotes")


def _find_lines(text: str) -> dict[tuple[str, str], int]:
    """The lines of keys, by table and key, and of tables, by their name and nothing."""
    lines: dict[tuple[str, str], int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if match := _TABLE.match(line):
            table = match[1]
            lines.setdefault((table, ""), number)
            if inner := re.match(r"\s*\[+\s*[A-Za-z0-9_-]+\s*\.\s*([A-Za-z0-9_-]+)", line):
                lines.setdefault((table, inner[1]), number)
        elif match := _KEY.match(line):
            lines.setdefault((table, match[1]), number)
            lines.setdefault((match[1], ""), number)
    return lines


def _entries(
    found: ConfigFile,
    parsed: dict[str, Any],
    lines: dict[tuple[str, str], int],
    model: type[BaseSettings],
) -> Iterator[_Entry]:
    """All settings of the file, those of sections too; a table that is neither is a mistake."""
    known = {*model.model_fields, *file_settings(model)}
    for key, value in parsed.items():
        if isinstance(value, dict) and key in SECTION_NAMES:
            for name, inner in value.items():
                yield _Entry(name, inner, lines.get((key, name)))
        elif isinstance(value, dict) and key not in known:
            line = lines.get((key, ""))
            near = nearest_name(key, {*SECTION_NAMES, *known})
            remedy = f"did you mean {near}?" if near else f"sections are {', '.join(sorted(SECTION_NAMES))}"
            found.mistakes.append(Mistake(found.place(line), f"[{key}]", "not a section", remedy))
        else:
            yield _Entry(key, value, lines.get(("", key)) or lines.get((key, "")))


def _take(found: ConfigFile, entry: _Entry, model: type[BaseSettings]) -> None:
    key, where, value = entry.key, found.place(entry.line), _with_whole_numbers(entry.value)
    setting = key.removesuffix(FILE_SUFFIX) if key in file_settings(model) else key
    if setting not in model.model_fields:
        near = nearest_name(key, {*model.model_fields, *file_settings(model)})
        remedy = f"did you mean {near}?" if near else _NO_SETTING
        found.mistakes.append(Mistake(where, key, "not a setting", remedy))
        return
    if setting in found.lines:
        problem = f"is set twice, also in line {found.lines[setting]}"
        found.mistakes.append(Mistake(where, key, problem, "keep one of the two"))
        return
    found.lines[setting] = entry.line or 0
    if key != setting:
        if not isinstance(value, str):
            found.mistakes.append(Mistake(where, key, "must be the path of a file, as text", "write it in quotes"))
            found.refused.add(setting)
            return
        try:
            value = read_secret(Path(value))
        except SecretFileError as exc:
            found.mistakes.append(Mistake(where, key, str(exc), "correct the path or the file"))
            found.refused.add(setting)
            return
    elif is_secret(model, setting) and isinstance(value, str) and _holds_secret(value):
        problem = "is a secret, which does not belong into this file"
        remedy = f"put it into a file of its own, named by {key}{FILE_SUFFIX}, or set PROOFBOX_{key.upper()}"
        found.mistakes.append(Mistake(where, key, problem, remedy))
        found.refused.add(setting)
        return
    if mistake := check_value(model, setting, value, is_text=key != setting):
        found.mistakes.append(Mistake(where, key, *mistake))
        found.refused.add(setting)
        return
    found.values[setting] = json.loads(json.dumps(value, default=str))


def _with_whole_numbers(value: Any) -> Any:
    """A value of TOML with 4 in place of 4.0: programs that make such files, as Helm, know no whole numbers."""
    if isinstance(value, dict):
        return {name: _with_whole_numbers(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_whole_numbers(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _holds_secret(value: str) -> bool:
    """Whether text is a secret: all but the URL of a database without a password."""
    try:
        parts = urlsplit(value)
        return bool(value) and (parts.scheme == "" or bool(parts.password) or "password" in parse_qs(parts.query))
    except ValueError:
        return True
