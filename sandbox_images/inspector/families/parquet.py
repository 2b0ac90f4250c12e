"""Parquet tables: read by fastparquet where it is installed; elsewhere only their magic bytes can be checked."""

from __future__ import annotations

from verdict import Problem, Subject, counted

try:
    import fastparquet
except ImportError:  # an image without it still tells a Parquet file from something else
    fastparquet = None

_MAGIC = b"PAR1"
_DECODED_BYTES_MAX = 256 * 1024 * 1024
"""Row groups are decoded up to this uncompressed size; those after it are judged by the file's footer."""


def inspect(subject: Subject) -> None:
    """Read the table (``facts.rows``, ``facts.columns``); blank if it has no row."""
    if subject.head(4) != _MAGIC:
        raise subject.not_what_it_says()
    if subject.tail(4) != _MAGIC:
        raise Problem("is cut off: a Parquet table ends with PAR1")
    if fastparquet is None:
        _refuse_what_needs_reading(subject)
        return
    table = fastparquet.ParquetFile(subject.file)
    rows = int(table.count())
    subject.facts["rows"] = rows
    subject.measured_columns([str(name) for name in table.columns])
    _decode(subject, table)
    if rows == 0 and subject.must_not_be_blank():
        raise Problem("is blank: it has no row")


def _refuse_what_needs_reading(subject: Subject) -> None:
    for check in ("min_rows", "columns", "not_blank"):
        if subject.checks.get(check):
            raise Problem(f"{check} cannot be checked: this image cannot read Parquet tables")


def _decode(subject: Subject, table: fastparquet.ParquetFile) -> None:
    """Decode the row groups, each of which must hold the rows that the footer says.

    A page encoding that fastparquet does not know is no fault of the file.
    """
    budget = min(_DECODED_BYTES_MAX, subject.limits.unpacked_bytes_max)
    for number, group in enumerate(table.row_groups, start=1):
        budget -= sum(column.meta_data.total_uncompressed_size for column in group.columns)
        if budget < 0:
            return
        try:
            rows = len(table.read_row_group_file(group, table.columns, categories=None))
        except NotImplementedError:
            continue
        if rows != group.num_rows:
            claimed = counted(group.num_rows, "row")
            raise Problem(f"is damaged: row group {number:,} claims {claimed} and holds {rows:,}")
