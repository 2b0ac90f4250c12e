"""Whether the S3 server of a settings file takes a write; makes its bucket. Run by s3.sh."""

import sys
from contextlib import suppress
from pathlib import Path

import botocore.session
from botocore.config import Config
from botocore.exceptions import ClientError

settings = dict(line.split("=", 1) for line in Path(sys.argv[1]).read_text().split())
client = botocore.session.get_session().create_client(
    "s3",
    region_name="us-east-1",
    endpoint_url=settings["PROOFBOX_S3_ENDPOINT"],
    aws_access_key_id=settings["PROOFBOX_S3_ACCESS_KEY"],
    aws_secret_access_key=settings["PROOFBOX_S3_SECRET_KEY"],
    config=Config(connect_timeout=1, read_timeout=5, retries={"total_max_attempts": 1}),
)
bucket = settings["PROOFBOX_S3_BUCKET"]
with suppress(ClientError):
    client.create_bucket(Bucket=bucket)
# A server that has just started may know its buckets and have no volume yet to write to.
client.put_object(Bucket=bucket, Key="ready", Body=b"ready")
