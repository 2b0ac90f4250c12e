"""After the run: judges every promised file, has it opened by the inspector, sends it to the service."""

from __future__ import annotations

import os
import select

import cgroup
import elsewhere
import frames
import inspecting
import outdir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import adopting

_PIECE_BYTES = 256 * 1024
# With less left, the inspector waits until the kernel has taken back what the program had: it could else kill the
# runner or the inspector for memory, in place of a program that has ended.
_EARLY_BYTES_LEFT = 64 * 1024 * 1024
# With less left no file is opened before then: whether it can be opened must not depend on what the program had.
_EARLY_OPEN_BYTES_LEFT = 512 * 1024 * 1024
# How many names are held against patterns early, as the program's own time still runs: in 2 ms, of hostile names a
# second.
_EARLY_MATCHES_MAX = 200

# Extensions, the last part of each, of formats that a library opens; all others the inspector reads itself.
_OF_LIBRARIES = frozenset(
    {
        *(
            "pdf",
            "docx",
            "xlsx",
            "pptx",
            "parquet",
            "html",
            "htm",
            "xml",
            "xsd",
            "gpx",
            "kml",
            "xhtml",
            "svg",
            "zip",
            "tar",
            "gz",
            "tgz",
        ),
        *("png", "jpg", "jpeg", "gif", "webp", "bmp", "tif", "tiff"),
        *(
            "yaml",
            "yml",
            "bz2",
            "xz",
            "tbz2",
            "txz",
            "npy",
            "npz",
            "epub",
            "odt",
            "ods",
            "odp",
            "doc",
            "xls",
            "ppt",
        ),
        *("mp4", "m4v", "m4a", "mov", "webm", "mkv", "avi", "mp3", "wav", "ogg", "flac"),
        *("sqlite", "sqlite3", "db", "ttf", "otf", "woff", "woff2"),
    }
)


class Collection:
    """One collection: the request of the service, and the files that were found for it."""

    def __init__(
        self, channel: frames.Channel, door: adopting.Door | None, out: outdir.OutDir, wanted: dict[str, Any]
    ) -> None:
        self._channel = channel
        self._inspector = inspecting.Inspector(channel, door)
        self._out = out
        self._wanted = wanted
        self._sent: dict[int, int] = {}
        self._reserved: set[int] = set()
        self._rows: list[dict[str, Any]] = []
        self._seen: outdir.Walk | None = None
        self._has_begun = False
        self._opens_early = False
        self._extras: list[tuple[str, str]] = []
        self._files: list[dict[str, Any]] = []
        self._surplus = 0  # matches of patterns beyond their bound, which no other entry promises
        self._taken_in: list[tuple[int, str]] = []
        # Sparse files claim more than OUT_DIR holds.
        self._bytes_left: int = wanted["limits"]["out_dir_bytes"]

    def go_ahead(self, seconds: float, until: int | None) -> None:
        """Goes as far as it can while the kernel takes the program apart: until the inspector has its files.

        Nothing of the program may run any more. To be called again and again: it waits so long for what there is to
        wait for, or until a descriptor is readable.
        """
        if not self._has_begun:
            self._has_begun = True
            self._begin_early(cgroup.memory_left_bytes())
        elif self._opens_early:
            self._opens_early = not self._inspector.begins(self._request(), seconds)
        else:
            select.select([] if until is None else [until], [], [], seconds)

    def _begin_early(self, left_bytes: int) -> None:
        if left_bytes < _EARLY_BYTES_LEFT:
            return
        walk = self._walk()
        if len(walk.files()) * sum(file["is_glob"] for file in self._wanted["files"]) > _EARLY_MATCHES_MAX:
            return
        if self._take_in_missing(only_look=True):
            return  # what lies elsewhere is copied, which takes memory
        try:
            self._look(walk, patience_s=0.0)
        except OSError:
            return  # a socket of the program's may still have our name: all of it is done later
        self._seen = walk
        may_come = bool(self._files) and self._inspector.may_come
        self._opens_early = may_come and left_bytes >= _EARLY_OPEN_BYTES_LEFT

    def _walk(self) -> outdir.Walk:
        limits = self._wanted["limits"]
        return self._out.walk(limits["files"], limits["depth"])

    def _look(self, walk: outdir.Walk, patience_s: float) -> None:
        """Judges what was promised by name, and has the inspector come if there is a file to open."""
        self._rows = []
        self._extras = self._judge_promises(walk.files())
        self._files = self._to_inspect()
        if self._files:
            self._inspector.call(of_plain_files=self._are_plain(), patience_s=patience_s)

    def send_all(self) -> None:
        """Judges, inspects and sends; ends with COLLECTED."""
        limits = self._wanted["limits"]
        walk = self._seen
        if walk is None:
            self._take_in_missing()
            walk = self._walk()
            self._look(walk, inspecting.PATIENCE_S)
        extras = self._extras
        inspections = self._inspect()
        self._inspector.stop()
        for index, row in enumerate(self._rows):
            row["inspection"] = inspections.get(index)
        self._reserve_good()
        for row in self._rows:
            self._send(row, keep=row["state"] == outdir.FILE)
        for position, (rel, path) in enumerate(extras):
            if position >= self._wanted["extras_max"]:
                break
            state, size = self._out.look(path, limits["artifact_bytes"])
            row = {"promise": None, "rel": rel, "path": path, "state": state, "size": size, "inspection": None}
            self._send(row, keep=state == outdir.FILE)
        self._channel.send_json(
            frames.COLLECTED,
            {
                "extras_total": len(extras) + self._surplus,
                "files_exceeded": walk.files_exceeded,
                "depth_exceeded": walk.depth_exceeded,
                "removed": elsewhere.removed(self._out, self._promised_names()),
                "in_other_turns": elsewhere.in_other_turns(self._out),
                "taken_in": self._taken_in,
            },
        )
        self._inspector.end()

    def _promised_names(self) -> set[str]:
        return {file["rel"] for file in self._wanted["files"] if not file["is_glob"]}

    def _take_in_missing(self, *, only_look: bool = False) -> bool:
        """Moves promised files that lie elsewhere to their places; whether any promised file is missing."""
        bytes_max, names = self._wanted["limits"]["artifact_bytes"], self._promised_names()
        missing = [
            index
            for index, file in enumerate(self._wanted["files"])
            if not file["is_glob"] and self._out.judge(file["rel"], bytes_max)[0] == outdir.MISSING
        ]
        for index in missing if not only_look else ():
            place = elsewhere.take_in(self._out, self._wanted["files"][index]["rel"], names, bytes_max)
            if place is not None:
                self._taken_in.append((index, place))
        return bool(missing)

    def _judge_promises(self, walked: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Fills the rows of the promises; returns what nobody promised, as ``(rel, path)``."""
        bytes_max = self._wanted["limits"]["artifact_bytes"]
        # Two spellings of one name are one file to the service: NFC is the one, the other nobody promised.
        spelled: dict[str, str] = {}
        for rel, _ in walked:
            if outdir.composed(rel) not in spelled or rel == outdir.composed(rel):
                spelled[outdir.composed(rel)] = rel
        promised, surplus = set(), set()
        for index, wanted in enumerate(self._wanted["files"]):
            if wanted["is_glob"]:
                matches = outdir.matching(wanted["rel"], sorted(spelled.values()))[: wanted["matches_max"]]
            else:
                # The program may have written the name in another Unicode form.
                matches = [spelled.get(wanted["rel"], wanted["rel"])]
            opened_max = wanted["opened_max"] if wanted["is_glob"] else 1
            promised.update(matches[:opened_max])
            surplus.update(matches[opened_max:])
            if not matches:
                self._rows.append(
                    {"promise": index, "rel": wanted["rel"], "path": None, "state": outdir.MISSING, "size": 0}
                )
            for position, rel in enumerate(matches):
                state, path, size = self._out.judge(rel, bytes_max)
                row = {"promise": index, "rel": rel, "path": path, "state": state, "size": size}
                row["opens"] = position < opened_max
                self._rows.append(row)
        self._surplus = len(surplus - promised)
        others = [(rel, path) for rel, path in walked if rel not in promised | surplus]
        return sorted(others, key=lambda other: spelled[outdir.composed(other[0])] != other[0])

    def _to_inspect(self) -> list[dict[str, Any]]:
        """Every promised regular file that is not empty nor too many, with its row and its checks."""
        return [
            {"id": index, "path": row["path"], "checks": self._wanted["files"][row["promise"]]["checks"]}
            for index, row in enumerate(self._rows)
            if row["state"] == outdir.FILE and row["size"] > 0 and row["opens"]
        ]

    def _are_plain(self) -> bool:
        return not any(needs_libraries(file["path"]) for file in self._files)

    def _inspect(self) -> dict[int, dict[str, Any]]:
        """The inspector's word on those files, by row."""
        if not self._files:
            return {}
        verdicts = self._inspector.verdicts(self._request(), of_plain_files=self._are_plain())
        for file in self._files:
            verdicts.setdefault(
                file["id"],
                {"ok": False, "mime": "", "problem": "could not be opened: the inspector died", "facts": {}},
            )
        return verdicts

    def _request(self) -> dict[str, Any]:
        return {"root": self._out.root, **self._wanted["inspect"], "files": self._files}

    def _reserve_good(self) -> None:
        """Reserves the room of OUT_DIR's size for good files: one that fails takes none from them."""
        for row in self._rows:
            if row["state"] == outdir.FILE and row["opens"] and _is_good(row) and self._has_room(row):
                self._reserve(row)

    def _reserve(self, row: dict[str, Any]) -> None:
        inode = os.lstat(os.path.join(self._out.root, row["path"])).st_ino
        if inode not in self._reserved:
            self._reserved.add(inode)
            self._bytes_left -= row["size"]

    def _send(self, row: dict[str, Any], *, keep: bool) -> None:
        """One FOUND frame and, if the file is kept, its bytes; a second name of an inode is sent as a reference."""
        found = {key: row.get(key) for key in ("promise", "rel", "state", "size", "inspection")}
        if keep and not self._has_room(row):
            keep = False
            if _is_good(row):
                found["state"] = outdir.TOO_LARGE
        found["keep"] = keep
        if not keep:
            self._channel.send_json(frames.FOUND, found)
            return
        fd = os.open(os.path.join(self._out.root, row["path"]), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(fd, "rb", buffering=0) as file:
            status = os.fstat(fd)
            found["size"] = status.st_size
            found["same_as"] = self._sent.get(status.st_ino)
            self._channel.send_json(frames.FOUND, found)
            if found["same_as"] is not None:
                return
            self._sent[status.st_ino] = len(self._sent)
            self._reserve(row)
            left = status.st_size
            while left:
                piece = file.read(min(left, _PIECE_BYTES))
                self._channel.send(frames.DATA, piece)
                left -= len(piece)

    def _has_room(self, row: dict[str, Any]) -> bool:
        inode = os.lstat(os.path.join(self._out.root, row["path"])).st_ino
        return inode in self._reserved or row["size"] <= self._bytes_left


def _is_good(row: dict[str, Any]) -> bool:
    """Whether a regular file passed its checks, or has none: surplus and unpromised files are not opened."""
    is_opened = row["promise"] is not None and row["opens"]
    inspection = row["inspection"]
    return not is_opened or (inspection is not None and inspection["ok"])


def needs_libraries(path: str) -> bool:
    """Whether a file is opened by a library, going by its name."""
    return path.rpartition(".")[2].lower() in _OF_LIBRARIES
