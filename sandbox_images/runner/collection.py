"""The collection after a run: finds the promised files, has them inspected and sends them to the service."""

from __future__ import annotations

import os

import elsewhere
import inspector_client
import out_dir
from runner_protocol import frame_format
from runner_protocol.file_kinds import needs_library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import frames
    import workspace
    from zygote import fork_receiver

_PIECE_BYTES = 256 * 1024


class Collection:
    """One collection: the request of the service, and the files that were found for it."""

    def __init__(
        self,
        channel: frames.Channel,
        receiver: fork_receiver.ForkReceiver | None,
        out: out_dir.OutDir,
        wanted: dict[str, Any],
        beside: tuple[str, set[str]],
        first: list[str],
    ) -> None:
        self._channel = channel
        self._inspector = inspector_client.InspectorClient(channel, receiver)
        self._out = out
        self._wanted = wanted
        self._job_dir, self._own = beside  # the folder of the program, and what lies there that it did not write
        self._packing: workspace.Packing | None = None
        self._first = first  # names of files that come before others that nobody promised
        self._sent: dict[int, int] = {}
        self._reserved: set[int] = set()
        self._rows: list[dict[str, Any]] = []
        self._surplus = 0  # matches of patterns beyond their bound, which no other entry promises
        self._taken_in: list[tuple[int, str]] = []
        # Sparse files claim more than OUT_DIR holds.
        self._bytes_left: int = wanted["limits"]["out_dir_bytes"]

    def send_all(self) -> None:
        """Judges, inspects and sends; ends with COLLECTED."""
        limits = self._wanted["limits"]
        elsewhere.take_in_from(self._out, self._job_dir, self._own)
        self._take_in_missing()
        packing = self._packing = self._pack()
        lasts = self._wanted.get("workspace") is not None
        walk = self._out.walk(limits["files"], limits["depth"])
        extras = self._judge_promises(walk.files())
        if lasts:  # a link goes with the workspace
            extras = [(rel, path) for rel, path in extras if not os.path.islink(os.path.join(self._out.root, path))]
        inspections = self._inspect(self._to_inspect())
        for index, row in enumerate(self._rows):
            row["inspection"] = inspections.get(index)
        self._reserve_good()
        for row in self._rows:
            self._send(row, keep=row["state"] == out_dir.FILE)
        for position, (rel, path) in enumerate(extras):
            if position >= self._wanted["extras_max"]:
                break
            state, size = self._out.look(path, limits["artifact_bytes"])
            row = {"promise": None, "rel": rel, "path": path, "state": state, "size": size, "inspection": None}
            self._send(row, keep=state == out_dir.FILE)
        if packing is not None:
            packing.send(self._channel)
        self._channel.send_json(
            frame_format.COLLECTED,
            {
                "extras_total": len(extras) + self._surplus,
                "files_exceeded": walk.files_exceeded,
                "depth_exceeded": walk.depth_exceeded,
                "removed": elsewhere.removed(self._out),
                "in_other_turns": elsewhere.in_other_turns(self._out),
                "left_in_tmp": elsewhere.left_in_tmp(),
                "taken_in": self._taken_in,
            },
        )

    def _pack(self) -> workspace.Packing | None:
        """The workspace, if it is wanted; before anything makes files readable, so that their modes are known."""
        bounds = self._wanted.get("workspace")
        if bounds is None or not self._out.has_rest(self._wanted["extras_max"]):
            return None
        import workspace  # noqa: PLC0415 - only calls with a workspace need it

        return workspace.Packing(self._out, bounds["entries_max"], bounds["bytes_max"])

    def _promised_names(self) -> set[str]:
        return {file["rel"] for file in self._wanted["files"] if not file["is_glob"]}

    def _take_in_missing(self) -> None:
        """Moves promised files that lie elsewhere to their places."""
        bytes_max, names = self._wanted["limits"]["artifact_bytes"], self._promised_names()
        for index, file in enumerate(self._wanted["files"]):
            if file["is_glob"] or self._out.judge(file["rel"], bytes_max)[0] != out_dir.MISSING:
                continue
            place = elsewhere.take_in(self._out, file["rel"], names, bytes_max)
            if place is not None:
                self._taken_in.append((index, place))

    def _judge_promises(self, walked: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Fills the rows of the promises; returns what nobody promised, as ``(rel, path)``."""
        bytes_max = self._wanted["limits"]["artifact_bytes"]
        # Two spellings of one name are one file to the service: NFC is the one, the other nobody promised.
        spelled: dict[str, str] = {}
        for rel, _ in walked:
            if out_dir.composed(rel) not in spelled or rel == out_dir.composed(rel):
                spelled[out_dir.composed(rel)] = rel
        promised, surplus = set(), set()
        for index, wanted in enumerate(self._wanted["files"]):
            if wanted["is_glob"]:
                matches = out_dir.matching(wanted["rel"], sorted(spelled.values()))[: wanted["matches_max"]]
            else:
                # The program may have written the name in another Unicode form.
                matches = [spelled.get(wanted["rel"], wanted["rel"])]
            opened_max = wanted["opened_max"] if wanted["is_glob"] else 1
            promised.update(matches[:opened_max])
            surplus.update(matches[opened_max:])
            if not matches:
                self._rows.append(
                    {"promise": index, "rel": wanted["rel"], "path": None, "state": out_dir.MISSING, "size": 0}
                )
            for position, rel in enumerate(matches):
                state, path, size = self._out.judge(rel, bytes_max)
                row = {"promise": index, "rel": rel, "path": path, "state": state, "size": size}
                row["opens"] = position < opened_max
                self._rows.append(row)
        self._surplus = len(surplus - promised)
        others = [(rel, path) for rel, path in walked if rel not in promised | surplus]
        # Of many the first are stored one by one: what was shown, and those that have versions already.
        is_many = len(others) > self._wanted["extras_max"]

        def rank(other: tuple[str, str]) -> tuple[bool, bool, bool]:
            rel, path = other
            is_other_form = spelled[out_dir.composed(rel)] != rel
            return rel not in self._first, is_other_form, is_many and not self._out.is_put(path)

        return sorted(others, key=rank)

    def _to_inspect(self) -> list[dict[str, Any]]:
        """Every promised regular file that is not empty nor too many, with its row and its checks."""
        return [
            {"id": index, "path": row["path"], "checks": self._wanted["files"][row["promise"]]["checks"]}
            for index, row in enumerate(self._rows)
            if row["state"] == out_dir.FILE and row["size"] > 0 and row["opens"]
        ]

    def _inspect(self, files: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
        """The inspector's verdicts on those files, by row."""
        if not files:
            return {}
        request = {"root": self._out.root, **self._wanted["inspect"], "files": files}
        are_plain = not any(needs_library(file["path"]) for file in files)
        verdicts = self._inspector.judge(request, of_plain_files=are_plain)
        for file in files:
            verdicts.setdefault(
                file["id"],
                {"ok": False, "mime": "", "problem": "could not be opened: the inspector died", "facts": {}},
            )
        return verdicts

    def _reserve_good(self) -> None:
        """Reserves the room of OUT_DIR's size for good files: one that fails takes none from them."""
        for row in self._rows:
            if row["state"] == out_dir.FILE and row["opens"] and _is_good(row) and self._has_room(row):
                self._reserve(row)

    def _reserve(self, row: dict[str, Any]) -> None:
        inode = os.lstat(os.path.join(self._out.root, row["path"])).st_ino
        if inode not in self._reserved:
            self._reserved.add(inode)
            self._bytes_left -= row["size"]

    def _send(self, row: dict[str, Any], *, keep: bool) -> None:
        """Sends a FOUND frame and, if the file is stored, its bytes; a second name of an inode is a reference."""
        found = {key: row.get(key) for key in ("promise", "rel", "state", "size", "inspection")}
        if keep and not self._has_room(row):
            keep = False
            if _is_good(row):
                found["state"] = out_dir.TOO_LARGE
        found["keep"] = keep
        if keep and self._packing is not None and _has_sound_name(row["rel"]):
            self._packing.leave_out(row["path"])
        if not keep:
            self._channel.send_json(frame_format.FOUND, found)
            return
        fd = os.open(os.path.join(self._out.root, row["path"]), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(fd, "rb", buffering=0) as file:
            status = os.fstat(fd)
            found["size"] = status.st_size
            found["same_as"] = self._sent.get(status.st_ino)
            self._channel.send_json(frame_format.FOUND, found)
            if found["same_as"] is not None:
                return
            self._sent[status.st_ino] = len(self._sent)
            self._reserve(row)
            left = status.st_size
            while left:
                piece = file.read(min(left, _PIECE_BYTES))
                self._channel.send(frame_format.DATA, piece)
                left -= len(piece)

    def _has_room(self, row: dict[str, Any]) -> bool:
        inode = os.lstat(os.path.join(self._out.root, row["path"])).st_ino
        return inode in self._reserved or row["size"] <= self._bytes_left


def _has_sound_name(rel: str) -> bool:
    """Whether the service stores a file under its name."""
    return rel.isprintable() and "\\" not in rel and rel == rel.strip()


def _is_good(row: dict[str, Any]) -> bool:
    """Whether a regular file passed its checks, or has none: surplus and unpromised files are not opened."""
    is_opened = row["promise"] is not None and row["opens"]
    inspection = row["inspection"]
    return not is_opened or (inspection is not None and inspection["ok"])
