"""The client of an S3-compatible server, and its errors as errors of the core.

Imported only where S3 is configured: the client costs memory and start-up time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, cast

import botocore.session
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    PartialCredentialsError,
)
from botocore.loaders import Loader, create_loader

from proofbox.service.artifacts.port import DamagedBytesError, StoreAwayError
from proofbox.service.errors import OurError, StoreFailedError, StoreFullError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_CONNECT_S = 5
_CHECK_S = 2  # of a check whether the server answers
_READ_S = 60  # a server may check and copy a large file before it answers
_DEFAULT_REGION = "us-east-1"  # what servers of other makers expect, and AWS's own default for S3

_ROLE = "the object store"
_FULL_STATUS = 507
_SERVER_ERROR = 500
_OVERLOADED = frozenset({"SlowDown", "ServiceUnavailable", "RequestTimeout", "Throttling", "TooManyRequests"})
_FULL = frozenset({"QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded"})
_REFUSED = frozenset(
    {
        "AccessDenied",
        "Forbidden",
        "403",
        "InvalidAccessKeyId",
        "SignatureDoesNotMatch",
        "ExpiredToken",
        "InvalidToken",
    }
)
_REGION = frozenset(
    {"PermanentRedirect", "AuthorizationHeaderMalformed", "301", "IllegalLocationConstraintException"}
)
_DAMAGED = frozenset({"BadDigest", "XAmzContentChecksumMismatch", "XAmzContentSHA256Mismatch", "InvalidDigest"})
MISSING = frozenset({"NoSuchKey", "404"})


@dataclass(frozen=True, slots=True)
class Bucket:
    """The place of a service's objects; one service for each bucket and prefix.

    Attributes:
        name: the bucket.
        prefix: in front of all names, without slashes at its ends; may be empty.
        endpoint: the server's URL; empty: AWS.
        link_endpoint: the server's URL as clients of the service reach it; empty: the same.
        region: its region; empty: the environment's.
        access_key: with `secret_key`, the credentials; empty: the client's own chain (environment, files, role).
        secret_key: see `access_key`.
        attempts: how often a request is sent before a broken connection or an overloaded server is an error.
    """

    name: str
    prefix: str = ""
    endpoint: str = ""
    link_endpoint: str = ""
    region: str = ""
    access_key: str = ""
    secret_key: str = field(default="", repr=False)
    attempts: int = 3


def client(bucket: Bucket, endpoint: str, connections: int, *, is_hasty: bool = False) -> "S3Client":
    """A client; it can be used by many threads. A hasty one waits for seconds, and asks once.

    Raises:
        StoreFailedError: the settings make no client.
    """
    session = botocore.session.get_session()
    session.register_component("data_loader", _descriptions())
    config = Config(
        signature_version="s3v4",
        connect_timeout=_CHECK_S if is_hasty else _CONNECT_S,
        read_timeout=_CHECK_S if is_hasty else _READ_S,
        max_pool_connections=connections,
        retries={"mode": "standard", "total_max_attempts": 1 if is_hasty else bucket.attempts},
        # Names of buckets are resolved as hosts by AWS only.
        s3={"addressing_style": "path"} if endpoint else {},
        # Uploads carry a SHA-256 of ours; the client's own CRC trailers are news to many servers.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    with translate_errors():
        try:
            made = session.create_client(
                "s3",
                region_name=bucket.region or session.get_config_variable("region") or _DEFAULT_REGION,
                endpoint_url=endpoint or None,
                aws_access_key_id=bucket.access_key or None,
                aws_secret_access_key=bucket.secret_key or None,
                config=config,
            )
        except ValueError as exc:
            raise StoreFailedError(f"the settings of {_ROLE} make no client: {exc}") from exc
    return cast("S3Client", made)


@cache
def _descriptions() -> Loader:
    """What the client knows of services: large files, read once for all clients."""
    return create_loader()


@contextmanager
def translate_errors() -> Iterator[None]:
    """Translate exceptions of the client; the message names the setting to check.

    Raises:
        StoreFullError: the server has no space or no quota left.
        StoreAwayError: it does not answer, or is overloaded.
        StoreFailedError: any other error of the server or of the way there.
    """
    try:
        yield
    except ClientError as exc:
        raise refused(exc) from exc
    except (NoCredentialsError, PartialCredentialsError) as exc:
        raise StoreFailedError(
            f"there are no credentials for {_ROLE}: set s3_access_key and s3_secret_key, or AWS's own variables"
        ) from exc
    except (EndpointConnectionError, ConnectTimeoutError) as exc:
        raise StoreAwayError(f"{_ROLE} does not answer; its address is the setting s3_endpoint") from exc
    except (HTTPClientError, IncompleteReadError) as exc:
        raise StoreAwayError(f"the connection to {_ROLE} broke; try again") from exc
    except BotoCoreError as exc:
        raise StoreFailedError(f"the connection to {_ROLE} broke; try again") from exc


def code_of(exc: ClientError) -> str:
    """The server's own code for what went wrong; the status where it gives none."""
    return str(exc.response.get("Error", {}).get("Code", ""))


def refused(exc: ClientError) -> OurError:
    """The error of the core for an answer of the server."""
    code = code_of(exc)
    status = exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in _FULL or status == _FULL_STATUS:
        return StoreFullError(f"{_ROLE} has no space left; the operator has to free some")
    if code in _REFUSED:
        return StoreFailedError(
            f"{_ROLE} refuses the settings s3_access_key and s3_secret_key, or what they may do"
        )
    if code == "NoSuchBucket":
        return StoreFailedError(f"{_ROLE} has no bucket of the name that the setting s3_bucket gives")
    if code in _REGION:
        return StoreFailedError(f"{_ROLE} has the bucket in another region than the setting s3_region")
    if code in MISSING:
        return DamagedBytesError("the stored bytes of an artifact are missing")
    if code in _DAMAGED:
        return StoreFailedError(f"bytes arrived damaged at {_ROLE}; try again")
    if code in _OVERLOADED or status >= _SERVER_ERROR:
        return StoreAwayError(f"{_ROLE} failed: {code}")
    return StoreFailedError(f"{_ROLE} failed: {code}")
