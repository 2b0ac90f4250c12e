"""Secrets that are in files of their own: ``PROOFBOX_DATABASE_URL_FILE``, ``database_url_file``."""

from pathlib import Path

from pydantic import SecretStr
from pydantic_settings import BaseSettings

FILE_SUFFIX = "_file"
_ALSO_BY_FILE = frozenset({"s3_access_key"})  # no secret, but it comes with one
_SECRET_BYTES_MAX = 64 * 1024


class SecretFileError(Exception):
    """The file of a secret cannot be used; the message has the reason."""


def file_settings(model: type[BaseSettings]) -> frozenset[str]:
    """The names of settings that hold the path of a file with another setting's value.

    Args:
        model: the class of the settings.
    """
    secrets = (name for name, field in model.model_fields.items() if field.annotation is SecretStr)
    return frozenset(f"{name}{FILE_SUFFIX}" for name in (*secrets, *_ALSO_BY_FILE))


def read_secret(path: Path) -> str:
    """Read a secret; line ends after it do not count.

    Raises:
        SecretFileError: the file cannot be read, is empty, too large or not text.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_SECRET_BYTES_MAX + 1)
    except OSError as exc:
        raise SecretFileError(f"{path} cannot be read: {exc.strerror}") from exc
    if len(data) > _SECRET_BYTES_MAX:
        raise SecretFileError(f"{path} has more than {_SECRET_BYTES_MAX} bytes")
    try:
        secret = data.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as exc:
        raise SecretFileError(f"{path} is not UTF-8") from exc
    if not secret:
        raise SecretFileError(f"{path} is empty")
    return secret
