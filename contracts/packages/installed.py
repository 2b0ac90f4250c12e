"""The packages that were installed for a call."""

from typing import Annotated

from pydantic import Field

from proofbox.contracts.wire_model import WireModel


class InstalledPackage(WireModel):
    """A package that was installed for the program of a call."""

    name: str
    """Its name."""
    version: str
    """Its version."""
    filename: str
    """The name of its wheel."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """The SHA-256 of the wheel."""
