"""Artifacts in a bucket of an S3-compatible server; only staging is local.

``<prefix>/blobs/<sha256>`` holds bytes under their hash. ``<prefix>/<key>`` is the hosted copy of a file, made by
the server itself, and ``<prefix>/attachments/<key>`` that of an attachment: a file and an attachment can have one
key, and do not overwrite each other. Every object is stored as an attachment, so that no browser renders one.
"""

import base64
import hashlib
import logging
import unicodedata
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError
from typing_extensions import override

from proofbox.contracts.paths import FilePath, Namespace
from proofbox.service.artifacts.content_disposition import content_disposition, media_type
from proofbox.service.artifacts.port import DamagedBytesError, NewArtifact
from proofbox.service.errors import OurError, StoreFailedError
from proofbox.service.identity import ConversationKey
from proofbox.service.storage.artifacts.blob_port import (
    CHANGED,
    CUT_OFF,
    BlobStore,
    ServedFile,
    checked_sha256,
    is_sha256,
    wrong_size,
)
from proofbox.service.storage.artifacts.durable_files import READ_ONLY
from proofbox.service.storage.artifacts.hosted_names import key_of
from proofbox.service.storage.artifacts.s3_client import MISSING, Bucket, client, code_of, translate_errors
from proofbox.service.storage.artifacts.staging import Staging
from proofbox.service.storage.error_translation import translate_errors as translate_disk_errors

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef

_NAME_BYTES_MAX = 1024  # S3's own limit for the name of an object
_READ_BYTES = 1024 * 1024
# A blob is served through links only, which set its media type; without them no browser renders it.
_BLOB_TYPE, _BLOB_DISPOSITION = "application/octet-stream", "attachment"
_HOSTED_BELOW = ("cb/tenants/", "attachments/cb/tenants/")

_log = logging.getLogger(__name__)


class S3BlobStore(BlobStore):
    """The BlobStore on a bucket.

    Args:
        bucket: where the objects are.
        staging: a local folder for files on their way; emptied at each start.
        part_bytes: larger files are sent in parts of this size, each of which is in memory once.
        link_s: how long a link works, in seconds.

    Raises:
        StoreFailedError: the settings make no client.
    """

    threads = 8  # each may hold one part in memory
    at_once = 1  # requests side by side, not one after the other
    piece_bytes = 4 * 1024 * 1024  # one request for each: larger than for a disk, small enough to wait in memory

    def __init__(self, bucket: Bucket, staging: Path, part_bytes: int, link_s: int) -> None:
        self._bucket = bucket.name
        self._below = f"{bucket.prefix}/" if bucket.prefix else ""
        self._client = client(bucket, bucket.endpoint, self.threads)
        self._hasty_client = client(bucket, bucket.endpoint, 1, is_hasty=True)
        self._link_client = client(bucket, bucket.link_endpoint, 1) if bucket.link_endpoint else self._client
        self._staging = Staging(staging.resolve())
        self._part_bytes = part_bytes
        self._link_s = link_s

    @override
    def prepare(self) -> None:
        with self._local():
            self._staging.prepare()
        self._ask(self._client)

    @override
    def check(self) -> None:
        self._ask(self._hasty_client)

    def _ask(self, asked: "S3Client") -> None:
        try:
            with translate_errors():
                asked.head_bucket(Bucket=self._bucket)
        except StoreFailedError as exc:
            if isinstance(exc.__cause__, ClientError) and code_of(exc.__cause__) in MISSING:
                raise StoreFailedError(
                    f"the object store has no bucket '{self._bucket}'; make it, or change the setting s3_bucket"
                ) from exc
            raise

    @override
    def stage(self) -> Path:
        with self._local():
            return self._staging.stage()

    @override
    def unstage(self, folder: Path) -> None:
        self._staging.unstage(folder)

    # ---- blobs ----

    @override
    def seal(self, artifacts: Sequence[NewArtifact]) -> None:
        for artifact in artifacts:
            checked_sha256(artifact.sha256)
            with self._local():
                if not artifact.source.has_size(artifact.size_bytes):
                    raise wrong_size(artifact)

    @override
    def place(self, artifacts: Sequence[NewArtifact]) -> None:
        for artifact in artifacts:
            self._place(artifact)

    def _place(self, artifact: NewArtifact) -> None:
        if artifact.size_bytes <= self._part_bytes:
            data = b"".join(self._parts(artifact))
            with translate_errors():
                self._client.put_object(
                    Bucket=self._bucket,
                    Key=self._blob(artifact.sha256),
                    Body=data,
                    ChecksumSHA256=_base64(bytes.fromhex(artifact.sha256)),
                    ContentType=_BLOB_TYPE,
                    ContentDisposition=_BLOB_DISPOSITION,
                )
        elif not self._is_there(artifact):
            self._send_in_parts(artifact)

    def _parts(self, artifact: NewArtifact) -> Iterator[bytes]:
        """The bytes of a source, the hash of all of them checked before the last part is given."""
        digest, left = hashlib.sha256(), artifact.size_bytes
        with self._local(), artifact.source.open() as stream:
            while left > 0:
                part = stream.read(min(self._part_bytes, left))
                digest.update(part)
                left -= len(part)
                if not part or (left == 0 and (digest.hexdigest() != artifact.sha256 or stream.read(1))):
                    raise StoreFailedError(f"the bytes for {artifact.path.logical} have changed on their way")
                yield part

    def _is_there(self, artifact: NewArtifact) -> bool:
        try:
            with translate_errors():
                found = self._client.head_object(Bucket=self._bucket, Key=self._blob(artifact.sha256))
        except StoreFailedError as exc:
            if isinstance(exc.__cause__, ClientError) and code_of(exc.__cause__) in MISSING:
                return False
            raise
        # An object of another origin does not have this metadata: it is overwritten.
        return found["ContentLength"] == artifact.size_bytes and found["Metadata"].get("sha256") == artifact.sha256

    def _send_in_parts(self, artifact: NewArtifact) -> None:
        key = self._blob(artifact.sha256)
        with translate_errors():
            upload = self._client.create_multipart_upload(
                Bucket=self._bucket,
                Key=key,
                ChecksumAlgorithm="SHA256",
                ContentType=_BLOB_TYPE,
                ContentDisposition=_BLOB_DISPOSITION,
                Metadata={"sha256": artifact.sha256},
            )["UploadId"]
            sent: list[CompletedPartTypeDef] = []
            try:
                for number, part in enumerate(self._parts(artifact), start=1):
                    checksum = _base64(hashlib.sha256(part).digest())
                    answer = self._client.upload_part(
                        Bucket=self._bucket,
                        Key=key,
                        UploadId=upload,
                        PartNumber=number,
                        Body=part,
                        ChecksumSHA256=checksum,
                    )
                    sent.append({"PartNumber": number, "ETag": answer["ETag"], "ChecksumSHA256": checksum})
                self._client.complete_multipart_upload(
                    Bucket=self._bucket, Key=key, UploadId=upload, MultipartUpload={"Parts": sent}
                )
            except Exception:
                self._abort_soon(artifact.sha256)
                raise

    def _abort_soon(self, sha256: str) -> None:
        try:
            self.end_uploads(sha256)
        except OurError:
            # Nothing is lost: the save that failed is undone later, and its uploads with it.
            _log.warning("an upload in parts could not be aborted yet", exc_info=True)

    @override
    def end_uploads(self, sha256: str) -> None:
        key = self._blob(sha256)
        with translate_errors():
            found = self._client.list_multipart_uploads(Bucket=self._bucket, Prefix=key).get("Uploads", [])
            for upload in found:
                self._client.abort_multipart_upload(Bucket=self._bucket, Key=key, UploadId=upload["UploadId"])

    @override
    def remove_blob(self, sha256: str) -> None:
        self._remove(self._blob(sha256))

    def _blob(self, sha256: str) -> str:
        return f"{self._below}blobs/{checked_sha256(sha256)}"

    def _remove(self, key: str) -> None:
        with translate_errors():
            self._client.delete_object(Bucket=self._bucket, Key=key)

    # ---- hosted ----

    @override
    def hosted_name(self, scope: ConversationKey, path: FilePath) -> str:
        name = key_of(scope, path)
        if path.namespace is Namespace.ATTACHMENTS:
            name = f"attachments/{name}"
        space = _NAME_BYTES_MAX - len(self._below.encode())
        if len(name.encode()) <= space:
            return name
        tail = f"/~{hashlib.sha256(name.encode()).hexdigest()}"
        head = name.encode()[: space - len(tail)].decode(errors="ignore").rstrip("/")
        return head + tail

    @override
    def uri_of(self, name: str) -> str:
        return f"s3://{self._bucket}/{self._below}{name}"

    @override
    def name_of_uri(self, uri: str) -> str | None:
        head = self.uri_of("")
        return unicodedata.normalize("NFC", uri.removeprefix(head)) if uri.startswith(head) else None

    @override
    def host(self, served: Mapping[str, ServedFile]) -> None:
        for name, each in served.items():
            self._host(name, each)

    def _host(self, name: str, served: ServedFile) -> None:
        with translate_errors():
            self._client.copy_object(
                Bucket=self._bucket,
                Key=self._below + name,
                CopySource={"Bucket": self._bucket, "Key": self._blob(served.sha256)},
                MetadataDirective="REPLACE",
                ContentType=media_type(served.mime),
                ContentDisposition=content_disposition(served.file_name),
            )

    @override
    def remove_hosted(self, name: str) -> None:
        self._remove(self._below + name)

    # ---- read ----

    @override
    def fetch(self, hashes: Sequence[str], folder: Path) -> list[Path]:
        fetched = []
        for sha256 in hashes:
            try:
                fetched.append(self._fetch(sha256, folder))
            except DamagedBytesError as exc:
                exc.sha256 = sha256
                raise
        return fetched

    def _fetch(self, sha256: str, folder: Path) -> Path:
        fetched, digest = folder / f"fetched-{uuid.uuid4().hex}", hashlib.sha256()
        with translate_errors(), self._local(), fetched.open("xb") as file:
            body = self._client.get_object(Bucket=self._bucket, Key=self._blob(sha256))["Body"]
            with body:
                for data in iter(partial(body.read, _READ_BYTES), b""):
                    digest.update(data)
                    file.write(data)
        if digest.hexdigest() != sha256:
            raise DamagedBytesError(CHANGED)
        with self._local():
            fetched.chmod(READ_ONLY)
        return fetched

    @override
    def piece(self, sha256: str, at: int, size_bytes: int) -> bytes:
        return self._read(self._blob(sha256), at, size_bytes)

    @override
    def hosted_piece(self, name: str, at: int, size_bytes: int) -> bytes:
        return self._read(self._below + name, at, size_bytes)

    def _read(self, key: str, at: int, size_bytes: int) -> bytes:
        try:
            with translate_errors():
                answer = self._client.get_object(
                    Bucket=self._bucket, Key=key, Range=f"bytes={at}-{at + size_bytes - 1}"
                )
                with closing(
                    answer["Body"]
                ) as body:  # a `with` of its own gives the stream below, which checks nothing
                    piece = body.read()
        except StoreFailedError as exc:
            if isinstance(exc.__cause__, ClientError) and code_of(exc.__cause__) == "InvalidRange":
                raise DamagedBytesError(CUT_OFF) from exc
            raise
        if not piece:
            raise DamagedBytesError(CUT_OFF)
        return piece

    @override
    def blob_bytes(self, sha256: str) -> int | None:
        return self._size(self._blob(sha256))

    @override
    def hosted_bytes(self, name: str) -> int | None:
        return self._size(self._below + name)

    def _size(self, key: str) -> int | None:
        try:
            with translate_errors():
                return self._client.head_object(Bucket=self._bucket, Key=key)["ContentLength"]
        except DamagedBytesError:
            return None

    @override
    def is_linked(self, name: str, sha256: str) -> bool:
        return False

    @override
    def list_blobs(self) -> Iterator[str]:
        head = f"{self._below}blobs/"
        names = (key.removeprefix(head) for key in self._list(head))
        yield from (name for name in names if is_sha256(name))

    @override
    def list_hosted(self) -> Iterator[str]:
        for head in _HOSTED_BELOW:  # a bucket without a prefix may have objects of others
            yield from (key.removeprefix(self._below) for key in self._list(self._below + head))

    def _list(self, head: str) -> Iterator[str]:
        with translate_errors():
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=head)
            yield from (each["Key"] for page in pages for each in page.get("Contents", []))

    @override
    def link(self, served: ServedFile) -> str:
        with translate_errors():
            return self._link_client.generate_presigned_url(
                "get_object",
                Params={
                    "Bucket": self._bucket,
                    "Key": self._blob(served.sha256),
                    "ResponseContentType": media_type(served.mime),
                    "ResponseContentDisposition": content_disposition(served.file_name),
                },
                ExpiresIn=self._link_s,
            )

    def _local(self) -> AbstractContextManager[None]:
        return translate_disk_errors("the artifact folder", self._staging.folder.parent)


def _base64(digest: bytes) -> str:
    return base64.b64encode(digest).decode()
