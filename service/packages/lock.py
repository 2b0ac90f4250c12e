"""The wheels that a list of requirements stands for, each with its hash."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from proofbox.contracts.packages.installed import InstalledPackage

_FORMAT = 2  # of overlays: a change of what is in them needs another one


@dataclass(frozen=True, slots=True)
class LockedWheel:
    """One wheel.

    Attributes:
        name: of the package, as indexes write it.
        version: of the package.
        filename: its name in the index.
        url: where it is.
        sha256: in hex; empty if the index does not give it and it was not downloaded yet.
        size_bytes: as the index gives it; None if it does not.
    """

    name: str
    version: str
    filename: str
    url: str
    sha256: str = ""
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Lock:
    """All wheels of an overlay, in the order of their names."""

    wheels: tuple[LockedWheel, ...]

    def digest(self, image_digest: str) -> str:
        """SHA-256 of what is installed and for which image, in hex; not of where it came from."""
        rows = [[wheel.name, wheel.version, wheel.filename, wheel.sha256] for wheel in self.wheels]
        return hashlib.sha256(json.dumps([_FORMAT, image_digest, rows]).encode()).hexdigest()

    @property
    def installed(self) -> list[InstalledPackage]:
        """The wheels, as an answer lists them."""
        return [
            InstalledPackage(name=wheel.name, version=wheel.version, filename=wheel.filename, sha256=wheel.sha256)
            for wheel in self.wheels
        ]

    @classmethod
    def of_installed(cls, packages: Sequence[InstalledPackage]) -> "Lock":
        """The lock of what was installed before; where the wheels are is not known."""
        wheels = [LockedWheel(each.name, each.version, each.filename, "", each.sha256) for each in packages]
        return cls(tuple(sorted(wheels, key=lambda wheel: wheel.name)))
