"""What packages are installed for: the Python, the machine and the libraries of the sandbox image."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from packaging.specifiers import SpecifierSet
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.version import InvalidVersion, Version

# What the resolver has names for.
_RESOLVED_GLIBC = (17, 28, *range(31, 41))
_OLDEST_GLIBC = 5
_LEGACY = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}


@dataclass(frozen=True, slots=True)
class Target:
    """What a wheel has to fit.

    Attributes:
        image_digest: the id of the sandbox image.
        python: the version of its Python, such as ``3.13.5``.
        machine: its processor, such as ``x86_64``.
        glibc: the minor version of its C library: 41 for 2.41.
        libraries: version by name of what is installed in the image.
    """

    image_digest: str
    python: str
    machine: str
    glibc: int
    libraries: Mapping[str, str]

    @property
    def resolver_platform(self) -> str:
        """The platform as the resolver names it."""
        minor = max((known for known in _RESOLVED_GLIBC if known <= self.glibc), default=_RESOLVED_GLIBC[0])
        return f"{self.machine}-manylinux_2_{minor}"

    def tags(self) -> list[Tag]:
        """The tags of wheels that fit, best first."""
        major, minor = (int(part) for part in self.python.split(".")[:2])
        platforms = []
        for glibc in range(self.glibc, _OLDEST_GLIBC - 1, -1):
            platforms.append(f"manylinux_2_{glibc}_{self.machine}")
            if glibc in _LEGACY:
                platforms.append(f"{_LEGACY[glibc]}_{self.machine}")
        platforms.append(f"linux_{self.machine}")
        version = (major, minor)
        own = cpython_tags(version, [f"cp{major}{minor}"], platforms)
        return [*own, *compatible_tags(version, f"cp{major}{minor}", platforms)]

    def unchanged(self, asked: Mapping[str, SpecifierSet]) -> dict[str, str]:
        """Version by name of the libraries that stay: all but those that are asked for in another version."""
        found = {}
        for name, text in self.libraries.items():
            try:
                version = Version(text)
            except InvalidVersion:
                continue
            if name not in asked or asked[name].contains(version, prereleases=True):
                found[name] = text
        return found

    def replaced(self, names: Sequence[str]) -> list[str]:
        """Which of these packages the image has, in another version."""
        return [name for name in names if name in self.libraries]
