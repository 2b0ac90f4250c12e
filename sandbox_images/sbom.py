"""Prints the sandbox image's bill of materials: CycloneDX 1.5 as JSON, on standard output.

It runs inside the image while that is built, with the image's own Python, and lists what is really installed:
Debian packages as dpkg knows them and Python distributions as `importlib.metadata` finds them. The same content
gives the same bytes, so it holds no time stamp and its serial number is a digest of the components.
"""

import json
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote

Component = dict[str, Any]

DPKG_FIELDS = (
    "db:Status-Status",
    "Package",
    "Version",
    "Architecture",
    "source:Package",
    "source:Version",
    "binary:Summary",
)
# A `License:` line of a machine-readable Debian copyright file names the licence; its text follows, indented.
DEBIAN_LICENCE = re.compile(r"^License:[ \t]*(\S[^\n]*)$", re.MULTILINE)
# Older Python metadata has the whole licence text in the field that is meant for its name.
LICENCE_NAME_CHARACTERS_MAX = 80


def debian_release() -> str:
    """The major version of Debian, such as `13`."""
    release = Path("/etc/os-release").read_text(encoding="utf-8")
    found = re.search(r'^VERSION_ID="?([^"\n]+)', release, re.MULTILINE)
    return found.group(1) if found else "unknown"


def debian_licences(package: str) -> list[str]:
    """The licence names of a Debian package, sorted; empty where its copyright file is prose."""
    path = Path("/usr/share/doc", package, "copyright")
    if not path.is_file():
        return []
    return sorted(
        {name.strip() for name in DEBIAN_LICENCE.findall(path.read_text(encoding="utf-8", errors="replace"))}
    )


def debian_components() -> Iterator[Component]:
    """One component for each installed Debian package.

    Raises:
        subprocess.CalledProcessError: dpkg's database cannot be read.
    """
    line = "\t".join(f"${{{field}}}" for field in DPKG_FIELDS) + "\n"
    listed = subprocess.run(  # noqa: S603
        ["/usr/bin/dpkg-query", "-W", "-f", line], check=True, capture_output=True, text=True
    ).stdout
    distro = f"debian-{debian_release()}"
    for row in listed.splitlines():
        status, package, version, architecture, source, source_version, summary = row.split("\t")
        if status != "installed":
            continue
        purl = f"pkg:deb/debian/{quote(package)}@{quote(version, safe='')}?arch={architecture}&distro={distro}"
        component: Component = {
            "type": "library",
            "bom-ref": purl,
            "name": package,
            "version": version,
            "description": summary,
            "purl": purl,
            "properties": [
                {"name": "proofbox:origin", "value": "debian"},
                {"name": "proofbox:source", "value": f"{source} {source_version}"},
            ],
        }
        licences = debian_licences(package)
        if licences:
            component["licenses"] = [{"license": {"name": name}} for name in licences]
        yield component


def stated(about: metadata.PackageMetadata, field: str) -> str:
    """One field of a Python distribution's metadata, empty where it is missing."""
    return about[field].strip() if field in about else ""


def python_licences(about: metadata.PackageMetadata) -> list[dict[str, Any]]:
    """The licence of a Python distribution as CycloneDX writes it: an SPDX expression if the package has one."""
    expression = stated(about, "License-Expression")
    if expression:
        return [{"expression": expression}]
    names = [
        classifier.rpartition(" :: ")[2]
        for classifier in about.get_all("Classifier") or []
        if classifier.startswith("License :: ")
    ]
    name = stated(about, "License")
    if not names and name and "\n" not in name and len(name) <= LICENCE_NAME_CHARACTERS_MAX:
        names = [name]
    return [{"license": {"name": name}} for name in sorted(set(names))]


def python_components() -> Iterator[Component]:
    """One component for each Python distribution that the image's interpreter can import."""
    for distribution in metadata.distributions():
        about = distribution.metadata
        name = re.sub(r"[-_.]+", "-", about["Name"]).lower()
        purl = f"pkg:pypi/{name}@{quote(distribution.version, safe='')}"
        component: Component = {
            "type": "library",
            "bom-ref": purl,
            "name": name,
            "version": distribution.version,
            "purl": purl,
            "properties": [{"name": "proofbox:origin", "value": "python"}],
        }
        summary = stated(about, "Summary")
        if summary:
            component["description"] = summary
        licences = python_licences(about)
        if licences:
            component["licenses"] = licences
        yield component


def bill_of_materials() -> dict[str, Any]:
    """The whole document, components sorted by package URL."""
    components = sorted([*debian_components(), *python_components()], key=lambda component: component["purl"])
    digest = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(components, sort_keys=True))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{digest}",
        "version": 1,
        "metadata": {
            "component": {"type": "container", "bom-ref": "proofbox-sandbox", "name": "proofbox-sandbox"},
            "tools": {"components": [{"type": "application", "name": "proofbox sbom.py"}]},
        },
        "components": components,
    }


if __name__ == "__main__":
    json.dump(bill_of_materials(), sys.stdout, indent=1)
    sys.stdout.write("\n")
