"""What an S3 server answers, as errors of the core; and that nobody pays for its client who does not use it."""

import subprocess
import sys

import pytest
from botocore.exceptions import ClientError, NoCredentialsError, ReadTimeoutError

from proofbox.service.app.blob_stores import build_blob_store
from proofbox.service.app.settings import Settings
from proofbox.service.artifacts.port import DamagedBytesError, StoreAwayError
from proofbox.service.errors import StoreFailedError, StoreFullError
from proofbox.service.storage.artifacts.local_blobs import LocalBlobStore
from proofbox.service.storage.artifacts.s3_blobs import S3BlobStore
from proofbox.service.storage.artifacts.s3_client import refused, translate_errors


def answered(code, status=400):
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "PutObject")


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (answered("XMinioStorageFull", 507), StoreFullError, "has no space left"),
        (answered("QuotaExceeded", 403), StoreFullError, "has no space left"),
        (answered("AnyCode", 507), StoreFullError, "has no space left"),
        (answered("AccessDenied", 403), StoreFailedError, "s3_access_key and s3_secret_key"),
        (answered("SignatureDoesNotMatch", 403), StoreFailedError, "s3_access_key and s3_secret_key"),
        (answered("NoSuchBucket", 404), StoreFailedError, "s3_bucket"),
        (answered("PermanentRedirect", 301), StoreFailedError, "s3_region"),
        (answered("NoSuchKey", 404), DamagedBytesError, "stored bytes of an artifact are missing"),
        (answered("BadDigest"), StoreFailedError, "arrived damaged"),
        (answered("InternalError", 500), StoreAwayError, "the object store failed: InternalError"),
        (answered("SlowDown", 503), StoreAwayError, "the object store failed: SlowDown"),
        (answered("EntityTooLarge", 400), StoreFailedError, "the object store failed: EntityTooLarge"),
    ],
)
def test_an_answer_of_the_server_becomes_the_error_that_says_what_to_look_at(answer, kind, message):
    error = refused(answer)
    assert type(error) is kind
    assert message in error.message


@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        (NoCredentialsError(), StoreFailedError, "set s3_access_key and s3_secret_key"),
        (
            ReadTimeoutError(endpoint_url="http://secret.host/"),
            StoreAwayError,
            "the connection to the object store broke",
        ),
    ],
)
def test_an_error_of_the_client_is_told_without_its_address(raised, kind, message):
    with pytest.raises(StoreFailedError) as caught, translate_errors():
        raise raised
    assert type(caught.value) is kind
    assert message in caught.value.message
    assert "secret.host" not in caught.value.message


def test_the_client_of_a_bucket_is_loaded_only_where_a_bucket_is_named():
    said = "import sys, proofbox.service.app.blob_stores as m; "
    said += "from proofbox.service.app.settings import Settings as S; "
    said += "m.build_blob_store(S()); "
    ran = subprocess.run(
        [sys.executable, "-c", said + "print('botocore' in sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert ran.stdout == "False\n"


def test_files_are_in_a_folder_unless_a_bucket_is_named(tmp_path):
    assert isinstance(build_blob_store(Settings(data_dir=tmp_path)), LocalBlobStore)
    in_bucket = build_blob_store(
        Settings(
            data_dir=tmp_path,
            s3_bucket="box",
            s3_prefix="a/b/",
            s3_endpoint="http://127.0.0.1:9",
            s3_access_key="k",
            s3_secret_key="s",
        )
    )
    assert isinstance(in_bucket, S3BlobStore)
    assert in_bucket.uri_of("x") == "s3://box/a/b/x"
