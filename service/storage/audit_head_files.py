"""The two files of signed heads, outside of the database: the private key, and the records that it has signed."""

import fcntl
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from proofbox.service.calls.audit.audit_heads import HeadRecords
from proofbox.service.calls.signing import SigningKey, key_id
from proofbox.service.errors import StoreFailedError
from proofbox.service.storage.artifacts.durable_files import sync_folders
from proofbox.service.storage.error_translation import translate_errors

_KEY_ROLE = "the key file of signed audit heads"
_HEADS_ROLE = "the file of signed audit heads"


class SigningRefusedError(StoreFailedError):
    """Nothing may be signed: the key or the records are not those that signed before."""


class HeadsInUseError(StoreFailedError):
    """Another process has the file of records locked."""


@dataclass(frozen=True, slots=True)
class HeadFiles:
    """Where they are; several processes may use them.

    Attributes:
        key: the private key, PEM, readable for its owner only.
        heads: the records, one a line.
    """

    key: Path
    heads: Path

    @contextmanager
    def locked(self, *, waits: bool = True) -> Iterator[int]:
        """The file of records for one process at a time, open to be read and appended to.

        Args:
            waits: whether it blocks while another process has it locked.

        Raises:
            HeadsInUseError: another process has it locked, and it was not to block.
            StoreFailedError: it cannot be made or opened.
        """
        descriptor = self._open_locked(fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _open_locked(self, operation: int) -> int:
        with translate_errors(_HEADS_ROLE, self.heads.parent):
            self.heads.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            while True:
                descriptor = os.open(self.heads, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
                try:
                    fcntl.flock(descriptor, operation)
                    if self.heads.exists() and os.path.samestat(os.fstat(descriptor), self.heads.stat()):
                        return descriptor
                except BlockingIOError as exc:
                    os.close(descriptor)
                    raise HeadsInUseError(f"{self.heads.name} is locked by another process") from exc
                except BaseException:
                    os.close(descriptor)
                    raise
                os.close(descriptor)  # it was moved away while this process waited

    def lines(self, descriptor: int | None = None, offset: int = 0) -> Iterator[tuple[str, int]]:
        """The records from an offset on, each with the offset behind it; not one that a crash cut short.

        Args:
            descriptor: the file where it is locked.
            offset: where a record begins.

        Raises:
            StoreFailedError: it cannot be read, or does not exist.
        """
        with (
            translate_errors(_HEADS_ROLE, self.heads.parent),
            self.heads.open("rb") if descriptor is None else os.fdopen(os.dup(descriptor), "rb") as file,
        ):
            file.seek(offset)
            for raw in file:
                if not raw.endswith(b"\n"):
                    return
                offset += len(raw)
                yield raw.decode("ascii", errors="replace").removesuffix("\n"), offset

    def append(self, descriptor: int, lines: Iterable[str], offset: int) -> int:
        """Add records behind an offset, durably; the offset behind them.

        What a crash left there of a record is removed.

        Raises:
            StoreFailedError: they cannot be written.
            StoreFullError: no space is left.
        """
        raw = "".join(f"{line}\n" for line in lines).encode("ascii")
        with translate_errors(_HEADS_ROLE, self.heads.parent):
            os.ftruncate(descriptor, offset)
            written = 0
            while written < len(raw):
                written += os.write(descriptor, raw[written:])
            os.fsync(descriptor)
            if not offset:
                sync_folders([self.heads.parent])
        return offset + len(raw)

    def signing_key(self, public: str | None) -> SigningKey | None:
        """The private key of a public key; None if there is no file. To be called while the records are locked.

        A rotation that a crash cut short has introduced the next key and not put it in place; it is put there now,
        because the next rotation writes over it.

        Args:
            public: the newest key of the records; None while there are none: any key will do.

        Raises:
            SigningRefusedError: the file holds another key, or can be read by others.
            StoreFailedError: it cannot be read.
        """
        with translate_errors(_KEY_ROLE, self.key.parent):
            found = {path: key for path in (self.key, self._next_key) if (key := _key_in(path)) is not None}
            for path, key in found.items():
                if public in {None, key.public}:
                    if path != self.key:
                        self._put_next_in_place()
                    return key
        if found and public is not None:
            first = next(iter(found.values()))
            raise SigningRefusedError(f"{self.replaced(first.public, public)}; put the old key file back")
        return None

    def _put_next_in_place(self) -> None:
        self._next_key.replace(self.key)
        sync_folders([self.key.parent])

    def publics(self) -> list[str]:
        """The public keys whose private halves are in place.

        Raises:
            StoreFailedError: a file cannot be read, or can be read by others.
        """
        with translate_errors(_KEY_ROLE, self.key.parent):
            return [key.public for path in (self.key, self._next_key) if (key := _key_in(path)) is not None]

    def replaced(self, found: str, wanted: str) -> str:
        """The problem of a key file that holds another key than the newest one of the records."""
        return (
            f"{self.key.name} holds the key {key_id(found)}, the heads are signed with the key {key_id(wanted)}: "
            "the key was replaced"
        )

    def missing(self, signer: str) -> str:
        """The problem of a key file that is not there."""
        return f"{self.key.name} is missing, the heads are signed with the key {signer}"

    def strange(self, publics: Iterable[str]) -> str:
        """The problem of keys that the database names and the records do not."""
        return (
            f"the database names the signing key {', '.join(sorted(map(key_id, publics)))}, {self.heads.name} does "
            "not: the key and the heads were removed or replaced, or the settings name another place"
        )

    @property
    def _next_key(self) -> Path:
        return self.key.with_name(f"{self.key.name}.next")

    def write_key(self, key: SigningKey) -> None:
        """Put a private key in place, durably.

        Raises:
            StoreFailedError: it cannot be written.
            StoreFullError: no space is left.
        """
        self._write_key(self.key, key)

    def rotate(self, now: str) -> tuple[str, str]:
        """Introduce another key by the signature of the one in use, whose private half is removed; their ids.

        Raises:
            SigningRefusedError: no key is in use, or the key file holds another one.
            HeadRecordError: a record is not as it was signed.
            StoreFailedError: a file cannot be read or written.
        """
        with self.locked() as descriptor:
            records, offset = HeadRecords(), 0
            for line, end in self.lines(descriptor):
                records.take(line)
                offset = end
            old = self.signing_key(records.keys[records.signer]) if records.keys else None
            if old is None:
                raise SigningRefusedError(
                    f"{self.key.parent}: no signing key with records of heads; start the service once"
                )
            fresh = SigningKey.generate()
            self._write_key(self._next_key, fresh)
            self.append(descriptor, [records.next_key(fresh, old, now)], offset)
            with translate_errors(_KEY_ROLE, self.key.parent):
                self._put_next_in_place()
        return old.id, fresh.id

    def put_aside(self) -> list[Path]:
        """Rename both files, so that the next start begins with another key; their new names.

        Raises:
            StoreFailedError: they cannot be renamed.
        """
        mark = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        with translate_errors(_HEADS_ROLE, self.heads.parent):
            there = [path for path in (self.heads, self.key, self._next_key) if path.exists()]
            return [path.rename(path.with_name(f"{path.name}.{mark}")) for path in there]

    def _write_key(self, path: Path, key: SigningKey) -> None:
        with translate_errors(_KEY_ROLE, path.parent):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(key.pem())
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
            sync_folders([path.parent])


def _key_in(path: Path) -> SigningKey | None:
    try:
        mode, pem = path.stat().st_mode, path.read_bytes()
    except FileNotFoundError:
        return None
    if mode & 0o077:
        raise SigningRefusedError(f"{path.name} can be read by others; chmod 600 it, and rotate the key")
    try:
        return SigningKey.from_pem(pem)
    except ValueError as exc:
        raise SigningRefusedError(f"{path.name} holds no Ed25519 key without a password: {exc}") from exc
