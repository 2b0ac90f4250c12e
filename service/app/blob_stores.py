"""Build the store of the bytes of artifacts."""

from proofbox.service.app.settings import Settings
from proofbox.service.storage.artifacts.blob_port import BlobStore
from proofbox.service.storage.artifacts.local_blobs import LocalBlobStore


def build_blob_store(settings: Settings) -> BlobStore:
    """Build the store of the bytes of artifacts: the data folder, or a bucket if one is named.

    Raises:
        StoreFailedError: the settings of the bucket make no client.
    """
    if not settings.s3_bucket:
        return LocalBlobStore(settings.data_dir)
    # Imported here: the client of a bucket takes memory that a service without one does not need.
    from proofbox.service.storage.artifacts.s3_blobs import S3BlobStore  # noqa: PLC0415
    from proofbox.service.storage.artifacts.s3_client import Bucket  # noqa: PLC0415

    bucket = Bucket(
        name=settings.s3_bucket,
        prefix=settings.s3_prefix.strip("/"),
        endpoint=settings.s3_endpoint,
        link_endpoint=settings.s3_link_endpoint,
        region=settings.s3_region,
        access_key=settings.s3_access_key,
        secret_key=settings.s3_secret_key.get_secret_value(),
    )
    return S3BlobStore(bucket, settings.data_dir / "staging", settings.s3_part_bytes, settings.link_s)
