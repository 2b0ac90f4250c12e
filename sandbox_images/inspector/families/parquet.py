"""Parquet tables: read by pyarrow where it is installed; elsewhere only their magic bytes can be checked."""

from __future__ import annotations

from model import Problem, Subject, counted

try:
    from pyarrow import parquet
except ImportError:  # an image without it still recognises a Parquet file
    parquet = None

_MAGIC = b"PAR1"
_DECODED_BYTES_MAX = 256 * 1024 * 1024
"""Row groups are decoded up to this uncompressed size; those after it are judged by the file's footer."""
_BATCH_ROWS = 16_384


def inspect(subject: Subject) -> None:
    """Read the table (``facts.rows``, ``facts.columns``); blank if it has no row."""
    if subject.head(4) != _MAGIC:
        raise subject.wrong_format()
    if subject.tail(4) != _MAGIC:
        raise Problem("is cut off: a Parquet table ends with PAR1")
    if parquet is None:
        _refuse_what_needs_reading(subject)
        return
    # Threads would each take part of the memory that a judge may have.
    with parquet.ParquetFile(subject.file, pre_buffer=False) as table:
        rows = int(table.metadata.num_rows)
        subject.facts["rows"] = rows
        subject.measured_columns([str(name) for name in table.schema_arrow.names])
        _decode(subject, table)
    if rows == 0 and subject.must_not_be_blank():
        raise Problem("is blank: it has no row")


def _refuse_what_needs_reading(subject: Subject) -> None:
    for check in ("min_rows", "columns", "not_blank"):
        if subject.checks.get(check):
            raise Problem(f"{check} cannot be checked: this image cannot read Parquet tables")


def _decode(subject: Subject, table: parquet.ParquetFile) -> None:
    """Decode the row groups, each of which must hold the rows that the footer declares.

    A file whose page encoding pyarrow does not know is not broken.
    """
    budget = min(_DECODED_BYTES_MAX, subject.limits.unpacked_bytes_max)
    for number in range(table.metadata.num_row_groups):
        group = table.metadata.row_group(number)
        budget -= group.total_byte_size
        if budget < 0:
            return
        try:
            batches = table.iter_batches(_BATCH_ROWS, row_groups=[number], use_threads=False)
            rows = sum(batch.num_rows for batch in batches)
        except NotImplementedError:
            continue
        if rows != group.num_rows:
            claimed = counted(group.num_rows, "row")
            raise Problem(f"is damaged: row group {number + 1:,} claims {claimed} and holds {rows:,}")
