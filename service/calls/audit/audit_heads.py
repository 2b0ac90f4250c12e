"""The records of signed heads: the line that a chain of audit lines ended with at a time, signed (Ed25519).

The records are a chain as well: each holds the SHA-256 of the record before it. The first one introduces a key; a
record that introduces another key is signed by the key before it. What is signed is the record without its
signature, byte for byte.
"""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from proofbox.service.calls.signing import SigningKey, is_signed, key_id
from proofbox.service.errors import StoreFailedError

HEAD_FORMAT = "proofbox-audit-head-1"
_SIGNATURE = ',"signature":"'


class HeadRecordError(StoreFailedError):
    """A record that is not as it was signed, or not in its place; the text names it and the reason."""


@dataclass(frozen=True, slots=True)
class Head:
    """The line that a chain ended with.

    Attributes:
        tenant: the tenant of the chain.
        project: the same.
        seq: the number of the line.
        sha256: its hash.
        time: when it was signed: UTC, RFC 3339, ``Z``.
    """

    tenant: str
    project: str
    seq: int
    sha256: str
    time: str


@dataclass(slots=True)
class HeadRecords:
    """Reads records in their order, and makes the ones that come next.

    Attributes:
        has_gaps: whether records may be missing, as in an export of one tenant.
        count: the number of the last record.
        sha256: its hash.
        keys: the public keys that were introduced, by their ids, the first one first.
        signer: the id of the newest key; empty before the first record.
    """

    has_gaps: bool = False
    count: int = 0
    sha256: str | None = None
    keys: dict[str, str] = field(default_factory=dict)
    signer: str = ""

    def take(self, line: str, *, is_checked: bool = True) -> Head | None:
        """Reads the next record; the head that it signs, None for one that introduces a key.

        Args:
            line: the record, without the end of the line.
            is_checked: whether the signature of a head is checked; that of a key always is.

        Raises:
            HeadRecordError: it is not as it was signed, or not in its place. It changes nothing then.
        """
        record = _parse_record(line, self.count + 1)
        number = record["n"]
        self._check_place(record)
        public = record.get("public")
        if public is not None:
            self._introduce(line, record, str(public))
        elif record["key"] not in self.keys or (record["key"] != self.signer and not self.has_gaps):
            raise HeadRecordError(
                f"record {number} is signed by the key {record['key']}, the signing key was "
                f"{self.signer or 'none'}: the key was replaced without a signature of the one before it"
            )
        elif is_checked:
            self.check(line)
        self.count, self.sha256 = number, _sha256(line)
        if public is not None:
            return None
        return Head(record["tenant"], record["project"], record["seq"], record["sha256"], record["time"])

    def check(self, line: str) -> None:
        """Checks the signature of a record by a key that was introduced.

        Raises:
            HeadRecordError: the key named in the record did not sign it.
        """
        record = _parse_record(line, self.count + 1)
        if not _is_signed(self.keys[record["key"]], line):
            raise HeadRecordError(
                f"record {record['n']} does not fit its signature: it was changed, or another key signed it"
            )

    def next_key(self, key: SigningKey, signed_by: SigningKey, time: str) -> str:
        """The record that introduces a key; the first key signs its own."""
        return self._sign_fields({"time": time, "public": key.public}, signed_by)

    def next_head(self, head: Head, key: SigningKey) -> str:
        """The record of a head."""
        head_fields = {
            "time": head.time,
            "tenant": head.tenant,
            "project": head.project,
            "seq": head.seq,
            "sha256": head.sha256,
        }
        return self._sign_fields(head_fields, key)

    def _sign_fields(self, fields: dict[str, Any], key: SigningKey) -> str:
        record = {"format": HEAD_FORMAT, "n": self.count + 1, "previous": self.sha256, **fields, "key": key.id}
        text = json.dumps(record, separators=(",", ":"), ensure_ascii=True)
        return f'{text[:-1]}{_SIGNATURE}{key.sign(text)}"}}'

    def _check_place(self, record: dict[str, Any]) -> None:
        number = record["n"]
        if self.has_gaps and number > self.count:
            return
        if number != self.count + 1:
            raise HeadRecordError(f"record {number} does not follow record {self.count}: records are missing")
        if record["previous"] != self.sha256:
            raise HeadRecordError(f"record {number} does not name the record before it: one of the two was changed")

    def _introduce(self, line: str, record: dict[str, Any], public: str) -> None:
        number, fresh, signer = record["n"], key_id(public), record["key"]
        if signer != (self.signer or fresh):
            raise HeadRecordError(
                f"record {number} introduces the key {fresh}, which the key before it, {self.signer or 'none'}, "
                "did not sign: the key was replaced"
            )
        if not _is_signed(self.keys.get(signer, public), line):
            raise HeadRecordError(
                f"record {number}, which introduces the key {fresh}, does not fit its signature: "
                "the key was replaced"
            )
        self.keys[fresh] = public
        self.signer = fresh


@dataclass(slots=True)
class SignedHeads:
    """The heads of all chains, to hold lines against.

    Attributes:
        records: what was read.
        problem: what is wrong with the first record that is not as it was signed; no later one is read.
        of: the heads of each chain by the numbers of their lines.
    """

    records: HeadRecords = field(default_factory=HeadRecords)
    problem: str | None = None
    of: dict[tuple[str, str], dict[int, Head]] = field(default_factory=dict)

    def take(self, line: str) -> None:
        """Reads and checks the next record."""
        if self.problem is not None:
            return
        try:
            head = self.records.take(line)
        except HeadRecordError as exc:
            self.problem = exc.message
            return
        if head is not None:
            self.of.setdefault((head.tenant, head.project), {})[head.seq] = head

    def mismatch(self, chain: tuple[str, str], seq: int, sha256: str) -> str | None:
        """What is wrong with a line that was signed with another hash."""
        head = self.of.get(chain, {}).get(seq)
        if head is None or head.sha256 == sha256:
            return None
        return f"is not as it was signed at {head.time}: the chain was written anew"

    def last(self, chain: tuple[str, str]) -> Head | None:
        """The newest head of a chain."""
        return max(self.of.get(chain, {}).values(), key=lambda head: head.seq, default=None)


def is_record(line: str) -> bool:
    """Whether a line of an exported file is a record of heads."""
    return line.startswith(f'{{"format":"{HEAD_FORMAT}"')


def _parse_record(line: str, number: int) -> dict[str, Any]:
    """The members of a record, each of its type."""
    try:
        record = json.loads(line)
        types: dict[str, type] = {"format": str, "n": int, "time": str, "key": str, "signature": str}
        if "public" not in record:
            types |= {"tenant": str, "project": str, "seq": int, "sha256": str}
        is_whole = record["format"] == HEAD_FORMAT and all(isinstance(record[name], types[name]) for name in types)
        _ = record["previous"], bytes.fromhex(record.get("public", ""))
    except (ValueError, LookupError, TypeError, RecursionError):
        is_whole = False
    if not is_whole:
        raise HeadRecordError(f"record {number} is none of a signed head")
    return dict(record)


def _is_signed(public: str, line: str) -> bool:
    text, _, rest = line.rpartition(_SIGNATURE)
    return rest.endswith('"}') and is_signed(public, rest.removesuffix('"}'), text + "}")


def _sha256(line: str) -> str:
    return hashlib.sha256(line.encode(errors="surrogatepass")).hexdigest()
