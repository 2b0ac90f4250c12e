"""Looks the pinned packages up in a copy of an advisory database; asks no network.

The copy is the archive of the ecosystem PyPI that OSV publishes: a ZIP archive with one JSON document for each
advisory, in the format of https://ossf.github.io/osv-schema/.
"""

import argparse
import json
import re
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

FOUND, FAILED = 1, 2
"""Exit statuses: advisories were found, nothing could be checked."""
_ECOSYSTEM = "PyPI"
_CONTINUED = re.compile(r"\\\n")
_FILES = re.compile(r"(-[rce]|--requirement|--constraint|--editable)\b")  # what is in them would not be checked
_OPTION = re.compile(r"\s--?[a-z].*")
_SUMMARY_CHARS_MAX = 120


class AdvisoryError(Exception):
    """The check cannot be made; the message is for the maintainer."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A package in one version.

    Attributes:
        file: the requirements file that names it.
        name: its name in the canonical form.
        version: its version.
    """

    file: Path
    name: str
    version: Version


@dataclass(frozen=True, slots=True)
class Finding:
    """An advisory that affects a pinned package.

    Attributes:
        pin: the package.
        ids: the id of the advisory and its aliases.
        summary: what it says.
        fixed: the versions that are not affected any more, as far as it names them.
    """

    pin: Pin
    ids: tuple[str, ...]
    summary: str
    fixed: tuple[str, ...]

    def line(self) -> str:
        """The finding as one line."""
        mended = f"; fixed in {', '.join(self.fixed)}" if self.fixed else "; no fixed version is named"
        return f"{self.pin.file}: {self.pin.name} {self.pin.version}: {' '.join(self.ids)}: {self.summary}{mended}"


def pins_of(file: Path) -> list[Pin]:
    """The packages of a requirements file.

    Raises:
        AdvisoryError: the file cannot be read, or a package in it has no exact version.
    """
    try:
        text = _CONTINUED.sub(" ", file.read_text())
    except OSError as exc:
        raise AdvisoryError(f"{file}: cannot be read ({exc.strerror}); give an existing file") from exc
    pins = []
    for line in text.splitlines():
        stated = _OPTION.sub("", line.partition(" #")[0]).strip()
        if not stated or stated.startswith("#") or (stated.startswith("-") and not _FILES.match(stated)):
            continue
        try:
            required = Requirement(stated)
            [version] = required.specifier
            exact = Version(version.version) if version.operator in {"==", "==="} else None
        except (InvalidRequirement, InvalidVersion, ValueError):
            exact = None
        if exact is None:
            raise AdvisoryError(f"{file}: '{stated}' is not pinned; give one exact version, as name==1.2.3")
        pins.append(Pin(file, canonicalize_name(required.name), exact))
    return pins


def advisories_in(database: Path) -> Iterator[dict[str, Any]]:
    """The advisories of a copy that were not withdrawn.

    Raises:
        AdvisoryError: there is no copy, or it is none.
    """
    try:
        with zipfile.ZipFile(database) as archive:
            names = [name for name in archive.namelist() if name.endswith(".json")]
            if not names:
                raise AdvisoryError(f"{database}: there is no advisory in it; {_RENEW}")
            for name in names:
                advisory = json.loads(archive.read(name))
                if not advisory.get("withdrawn"):
                    yield advisory
    except FileNotFoundError as exc:
        raise AdvisoryError(f"{database}: there is no copy of the advisory database; {_RENEW}") from exc
    except (OSError, zipfile.BadZipFile, ValueError, AttributeError) as exc:
        raise AdvisoryError(f"{database}: cannot be read as an archive of advisories ({exc}); {_RENEW}") from exc


_RENEW = "download OSV's archive of PyPI and give its path as DB=…, see docs/dependencies.md"


def findings(pins: Sequence[Pin], advisories: Iterable[Mapping[str, Any]]) -> list[Finding]:
    """The advisories that affect pinned packages, by file, package and id."""
    by_name: dict[str, list[Pin]] = {}
    for pin in pins:
        by_name.setdefault(pin.name, []).append(pin)
    found: dict[tuple[Pin, str], Finding] = {}
    for advisory in advisories:
        for affected in advisory.get("affected", ()):
            package = affected.get("package", {})
            if package.get("ecosystem") != _ECOSYSTEM:
                continue
            for pin in by_name.get(canonicalize_name(str(package.get("name", ""))), ()):
                if is_affected(pin.version, affected):
                    found[pin, advisory["id"]] = _finding(pin, advisory, affected)
    return sorted(found.values(), key=lambda each: (str(each.pin.file), each.pin.name, each.ids))


def _finding(pin: Pin, advisory: Mapping[str, Any], affected: Mapping[str, Any]) -> Finding:
    events = [event for each in affected.get("ranges", ()) for event in each.get("events", ())]
    fixed = dict.fromkeys(str(event["fixed"]) for event in events if "fixed" in event)
    text = str(advisory.get("summary") or advisory.get("details") or "no summary")
    ids = (str(advisory["id"]), *map(str, advisory.get("aliases", ())))
    return Finding(pin, ids, " ".join(text.split())[:_SUMMARY_CHARS_MAX], tuple(fixed))


def is_affected(version: Version, affected: Mapping[str, Any]) -> bool:
    """Whether one entry of ``affected`` of an advisory has a version: it is listed, or lies in a range."""
    if version in {listed for text in affected.get("versions", ()) if (listed := _version(text)) is not None}:
        return True
    return any(
        _is_in_range(version, each.get("events", ()))
        for each in affected.get("ranges", ())
        if each.get("type") in {"ECOSYSTEM", "SEMVER"}  # the others are commits
    )


def _is_in_range(version: Version, events: Iterable[Mapping[str, str]]) -> bool:
    """The evaluation of the schema: of the events up to the version the last one decides."""
    steps: list[tuple[Version, bool]] = []
    ends: dict[str, Callable[[Version], bool]] = {
        "introduced": lambda at: version >= at,
        "fixed": lambda at: version >= at,
        "last_affected": lambda at: version > at,
        "limit": lambda at: version >= at,
    }
    for event in events:
        for kind, text in event.items():
            at = Version("0.dev0") if text == "0" else _version(text)
            if kind in ends and at is not None and ends[kind](at):
                steps.append((at, kind == "introduced"))
    return max(steps, default=(version, False), key=lambda step: step[0])[1]


def _version(text: object) -> Version | None:
    try:
        return Version(str(text))
    except InvalidVersion:
        return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Checks requirements files; prints what was found.

    Returns:
        0 if nothing was found, `FOUND`, or `FAILED`.
    """
    parser = argparse.ArgumentParser(prog="advisories", description=__doc__)
    parser.add_argument("--database", type=Path, required=True, help="the copy of OSV's archive of PyPI")
    parser.add_argument("--accept", action="append", default=[], help="an id that is known and no finding")
    parser.add_argument("files", type=Path, nargs="+", help="requirements files with exact versions")
    given = parser.parse_args(arguments)
    newest = ""
    known = 0

    def counted() -> Iterator[dict[str, Any]]:
        nonlocal newest, known
        for advisory in advisories_in(given.database):
            newest = max(newest, str(advisory.get("modified", "")))
            known += 1
            yield advisory

    try:
        pins = [pin for file in given.files for pin in pins_of(file)]
        found = [each for each in findings(pins, counted()) if not set(each.ids) & set(given.accept)]
    except AdvisoryError as exc:
        print(f"advisories: {exc}", file=sys.stderr)
        return FAILED
    for each in found:
        print(each.line())
    print(
        f"advisories: {len(pins)} packages in {len(given.files)} files, {known} advisories up to "
        f"{newest[:10] or 'no date'}, {len(found)} found"
    )
    return FOUND if found else 0


if __name__ == "__main__":
    sys.exit(main())
