"""Rows of the sources pool as the texts that ``react.read`` shows."""

from proofbox.contracts.blocks import TEXT_BYTES_MAX
from proofbox.contracts.logical_paths import SourcesPath
from proofbox.contracts.tool_call_request import SourceRow
from proofbox.service.jobs.path_mentions import id_ranges
from proofbox.service.react.read_items import Loaded, ShownBlock, fingerprint_text
from proofbox.service.timeline.block_writer import embedded_text

_ROW_BYTES_MIN = 500


def load_rows(rows: list[SourceRow], *, more: bool) -> Loaded:
    """The rows as one readable text, each with a fair part of the room."""
    path = str(SourcesPath(tuple(id_ranges([row.sid for row in rows]))))
    room = max(_ROW_BYTES_MIN, TEXT_BYTES_MAX // len(rows))
    raw = "\n".join(format_row(row, room) for row in rows).encode(errors="replace")
    text = embedded_text(raw[: TEXT_BYTES_MAX + 4], more=len(raw) > TEXT_BYTES_MAX + 4)
    whole = sum(len(format_row(row, None).encode(errors="replace")) for row in rows) + len(rows) - 1
    partly = None
    if more or whole > len(text.encode()):
        partly = "texts are cut; give a single id, and #L<from>-<to> behind it for lines"
    return Loaded(path, (ShownBlock(path, "text/plain", text, mark=fingerprint_text(text)),), partly)


def format_row(row: SourceRow, room_bytes: int | None) -> str:
    """A row as text, cut to ``room_bytes`` of UTF-8 unless that is None."""
    about = [f"[S:{row.sid}] {row.title}".rstrip(), *([f"url: {row.url}"] if row.url else [])]
    if row.file is not None:
        about.append(f"path: {row.file.logical}")
    text = "\n".join([*about, *([row.text] if row.text else [])]) + "\n"
    raw = text.encode(errors="replace")
    if room_bytes is None or len(raw) <= room_bytes:
        return text
    return raw[:room_bytes].decode(errors="ignore") + "…\n"
