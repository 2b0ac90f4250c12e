"""What can be shown of a file without opening it: tables, its versions, and the difference of two versions."""

from typing import Literal

from proofbox.contracts.wire_model import WireModel

TABLE_ROWS_MAX = 200
"""The rows of a table's preview."""
TABLE_COLUMNS_MAX = 50
"""The columns of a table's preview."""


class TablePreview(WireModel):
    """The first rows of a table: of a CSV, TSV or Parquet file, or of a sheet of a workbook."""

    sheets: list[str]
    """The names of all sheets; empty for a file that has none."""
    page: int
    """Which sheet is shown, 1 for the first."""
    rows: list[list[str]]
    """The first rows with the text of their cells, the heading among them; a formula without a value as ``=…``."""
    rows_total: int
    """How many rows the table has."""
    columns_total: int
    """How many columns it has."""


class FileVersion(WireModel):
    """One version of a file or attachment."""

    version: int
    """1 for the first."""
    mime: str
    """Its media type."""
    size_bytes: int
    """Its size."""
    sha256: str
    """Its SHA-256, in hex."""
    visibility: Literal["external", "internal"]
    """Whether it is hosted for the user."""
    description: str
    """What it is; may be empty."""
    tool_call_id: str | None = None
    """The call that made it; null for an attachment."""
    created: str
    """When it was stored: UTC, RFC 3339, ``Z``."""
    removed: bool
    """Whether a program removed the file from its turn after this version."""


class VersionPage(WireModel):
    """A page of the versions of a file, the newest first."""

    logical_path: str
    """Its path on the timeline."""
    physical_path: str
    """Its path relative to OUT_DIR."""
    versions: list[FileVersion]
    """The versions."""
    more: bool
    """Whether there are older ones: ask again with ``before`` set to the last version."""


class FileDifference(WireModel):
    """What changed between two versions of a file, by the lines of their text."""

    logical_path: str
    """Its path on the timeline."""
    from_version: int
    """The older version."""
    to_version: int
    """The newer version."""
    identical: bool
    """Whether both have the same bytes."""
    added: int
    """Lines that only the newer one has."""
    removed: int
    """Lines that only the older one has."""
    text: str
    """The changes as a unified diff; empty if the text is the same."""
    truncated: bool
    """Whether the diff was too long and its end is left out."""
