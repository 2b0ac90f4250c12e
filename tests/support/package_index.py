"""A package index on the loopback interface, with wheels that the test makes."""

import hashlib
import io
import json
import zipfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from proofbox.service.access.quotas import PackageAllowance
from proofbox.service.identity import Principal
from proofbox.service.packages.downloads import Downloads
from proofbox.service.packages.installer import InstallerParts, PackageInstaller
from proofbox.service.packages.limits import InstallLimits
from proofbox.service.packages.overlays import Overlays
from proofbox.service.packages.places import InstallPlaces
from proofbox.service.packages.resolutions import Resolutions
from proofbox.service.packages.resolver import Index, Resolver, ResolverLimits
from proofbox.service.packages.target import Target
from proofbox.service.web.client.resolver import SystemResolver
from proofbox.service.web.client.tls import loaded_when_asked, read_roots
from tests.support.web_server import WebServer, response, web_server

MIB = 1024 * 1024
JSON = "application/vnd.pypi.simple.v1+json"


def caller(tenant: str, key_id: str | None = None) -> Principal:
    """Who asks for packages."""
    return Principal(tenant, "default", "registered", "user", key_id)


TARGET = Target("sha256:1", "3.13.5", "x86_64", 41, {"numpy": "2.3.1", "pandas": "2.2.3"})


def metadata(name: str, version: str, requires: Sequence[str] = (), python: str = "") -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {each}" for each in requires]
    lines += [f"Requires-Python: {python}"] if python else []
    return "\n".join([*lines, "", ""])


def wheel_bytes(
    name: str,
    version: str,
    files: Mapping[str, bytes | str] | None = None,
    *,
    requires: Sequence[str] = (),
    members: Sequence[tuple[zipfile.ZipInfo, bytes]] = (),
) -> bytes:
    """A wheel; ``members`` are further ones, whatever they are."""
    stem = f"{name.replace('-', '_')}-{version}.dist-info"
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        placed = dict(files or {f"{name.replace('-', '_')}.py": f"VERSION = {version!r}\n"})
        placed[f"{stem}/METADATA"] = metadata(name, version, requires)
        placed[f"{stem}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        placed[f"{stem}/RECORD"] = "".join(f"{path},,\n" for path in (*placed, f"{stem}/RECORD"))
        for path, content in placed.items():  # of one time, so that the same wheel has the same hash
            archive.writestr(zipfile.ZipInfo(path), content, zipfile.ZIP_DEFLATED)
        for info, content in members:
            archive.writestr(info, content)
    return target.getvalue()


@dataclass
class PackageIndex:
    """An index that runs.

    Attributes:
        server: its server; its answers can be replaced.
        pages: the links of each package.
    """

    server: WebServer
    pages: dict[str, list[str]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.server.url("/simple")

    @property
    def asked(self) -> list[str]:
        """The paths that were asked for, in order."""
        return [head.split(" ")[1] for head in self.server.requests]

    def add(
        self,
        name: str,
        version: str,
        files: Mapping[str, bytes | str] | None = None,
        *,
        requires: Sequence[str] = (),
        tags: str = "py3-none-any",
    ) -> str:
        """Adds a wheel; gives its SHA-256."""
        return self.add_wheel(name, version, wheel_bytes(name, version, files, requires=requires), tags, requires)

    def add_wheel(
        self, name: str, version: str, content: bytes, tags: str = "py3-none-any", requires: Sequence[str] = ()
    ) -> str:
        """Adds a wheel of these bytes, with metadata of its own, as PEP 658 has them; gives its SHA-256."""
        filename = f"{name.replace('-', '_')}-{version}-{tags}.whl"
        sha256 = hashlib.sha256(content).hexdigest()
        self.server.answers[f"/files/{filename}"] = response(content, "application/octet-stream")
        facts = metadata(name, version, requires).encode()
        self.server.answers[f"/files/{filename}.metadata"] = response(facts, "application/octet-stream")
        self.link(name, f"{filename}#sha256={sha256}", "data-dist-info-metadata='true'")
        return sha256

    def announce(self, name: str, version: str, size: int | None = None, **more: object) -> None:
        """Lists one wheel as JSON, with its size, in place of the page of links; ``more``: other fields of it."""
        filename = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
        content = self.server.answers[f"/files/{filename}"].partition(b"\r\n\r\n")[2]
        facts = {
            "filename": filename,
            "url": self.server.url(f"/files/{filename}"),
            "hashes": {"sha256": hashlib.sha256(content).hexdigest()},
            "core-metadata": True,
            "size": len(content) if size is None else size,
        }
        page = {"meta": {"api-version": "1.1"}, "name": name, "versions": [version], "files": [{**facts, **more}]}
        self.server.answers[f"/simple/{name}/"] = response(json.dumps(page).encode(), JSON)

    def link(self, name: str, target: str, attributes: str = "") -> None:
        """Adds a link to the page of a package."""
        filename = target.partition("#")[0]
        self.pages.setdefault(name, []).append(f"<a href='/files/{target}' {attributes}>{filename}</a><br>")
        page = f"<!DOCTYPE html><html><body>{''.join(self.pages[name])}</body></html>"
        self.server.answers[f"/simple/{name}/"] = response(page.encode())


@asynccontextmanager
async def package_index() -> AsyncIterator[PackageIndex]:
    """An index without packages, but for those of the target's image."""
    async with web_server() as server:
        index = PackageIndex(server)
        for name, version in TARGET.libraries.items():
            index.add(name, version)
        yield index


def resolver(
    index: PackageIndex,
    *,
    time_s: float = 30,
    bytes_max: int = 32 * MIB,
    most: int = 10,
    memory_bytes: int = 2048 * MIB,
    ca_file: Path | None = None,
) -> Resolver:
    return Resolver(
        Index(index.url), ResolverLimits(time_s, bytes_max, most, memory_bytes), lambda: read_roots(ca_file)
    )


def installer(  # noqa: PLR0913 - its limits
    index: PackageIndex,
    folder: Path,
    *,
    bytes_max: int = 4 * MIB,
    cache_bytes: int = 64 * MIB,
    files_max: int = 100,
    resolution_s: float = 3_600,
    target: Target = TARGET,
    allowed: Sequence[str] = (),
    time_s: float = 30,
    places: InstallPlaces | None = None,
    of_caller: Callable[[str], PackageAllowance] = lambda _: PackageAllowance(),
    count_max: int = 10,
    ca_file: Path | None = None,
) -> PackageInstaller:
    """An installer that is open."""
    overlays = Overlays(folder, "mounted", cache_bytes)

    async def of_image() -> Target:
        return target

    parts = InstallerParts(
        resolver(index, time_s=time_s, ca_file=ca_file),
        Downloads(Index(index.url), SystemResolver(), (), loaded_when_asked(ca_file)),
        overlays,
        Resolutions(overlays.resolutions, index.url, resolution_s),
        places or InstallPlaces(2, 40),
        of_image,
    )
    made = PackageInstaller(parts, InstallLimits(time_s, bytes_max, files_max, count_max), allowed, of_caller)
    made.open()
    return made
