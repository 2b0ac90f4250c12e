"""Real S3 servers: the one that the tests share, and others that a test may end."""

import os
import subprocess
from pathlib import Path

import proofbox.service
from proofbox.service.storage.artifacts.s3_client import Bucket, client

REPOSITORY = Path(proofbox.service.__file__).parents[2]
STATE = REPOSITORY / ".services"
_SCRIPT = REPOSITORY / "tests" / "services" / "s3.sh"


def started(services):
    """The bucket of the server whose state is below a folder, started if it does not run."""
    _run(services, "--start")
    said = dict(line.split("=", 1) for line in _run(services, "--print-settings").split())
    return Bucket(
        name=said["PROOFBOX_S3_BUCKET"],
        endpoint=said["PROOFBOX_S3_ENDPOINT"],
        access_key=said["PROOFBOX_S3_ACCESS_KEY"],
        secret_key=said["PROOFBOX_S3_SECRET_KEY"],
    )


def stopped(services):
    _run(services, "--stop")


def killed(services):
    """Ends a server as a power cut does."""
    pid = int((services / "s3" / "pid").read_text())
    os.kill(pid, 9)


def _run(services, mode):
    ran = subprocess.run(
        [_SCRIPT, mode],
        env={**os.environ, "SERVICES_DIR": str(services)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def client_of(bucket):
    return client(bucket, bucket.endpoint, 4)


def objects_of(bucket):
    """All objects below the prefix of a bucket: name behind it, and bytes."""
    s3 = client_of(bucket)
    head = f"{bucket.prefix}/" if bucket.prefix else ""
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket.name, Prefix=head)
    names = [each["Key"] for page in pages for each in page.get("Contents", [])]
    return {name.removeprefix(head): s3.get_object(Bucket=bucket.name, Key=name)["Body"].read() for name in names}


def uploads_of(bucket):
    """The uploads in parts that nobody has completed or aborted."""
    found = client_of(bucket).list_multipart_uploads(Bucket=bucket.name, Prefix=bucket.prefix)
    return [each["Key"] for each in found.get("Uploads", [])]


def emptied(bucket):
    """Removes what is below the prefix of a bucket: other tests that run now have places of their own."""
    assert bucket.prefix
    s3 = client_of(bucket)
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket.name, Prefix=f"{bucket.prefix}/"):
        for each in page.get("Contents", []):
            s3.delete_object(Bucket=bucket.name, Key=each["Key"])
