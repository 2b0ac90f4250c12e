"""Read audit lines while a service runs: nothing is locked, upgraded or written."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import SecretStr
from sqlalchemy import URL, Connection, Engine, create_engine, inspect, select

from proofbox.service.errors import StoreFailedError
from proofbox.service.storage.error_translation import translate_errors
from proofbox.service.storage.schema import audit, audit_keys, calls, chains

_ROWS_AT_ONCE = 200
_ROLE = "the database of audit lines"


@dataclass(frozen=True, slots=True)
class ExportedLine:
    """A stored audit line.

    Attributes:
        tenant: the tenant of its chain.
        project: the project of its chain.
        seq: its number.
        sha256: the hash that was stored with it.
        text: the line.
        answer: the stored answer of its call, if requested and present.
    """

    tenant: str
    project: str
    seq: int
    sha256: str
    text: str
    answer: str | None = None


@contextmanager
def audit_lines(
    data_dir: Path, url: SecretStr, since: str = "", *, answers: bool = False
) -> Iterator[Iterator[ExportedLine]]:
    """The lines of all chains, chain by chain, by their numbers.

    Args:
        data_dir: the folder of the service.
        url: its database on a server; empty: the one in the folder.
        since: only lines of calls that ended then or later: UTC, RFC 3339; empty: all.
        answers: whether the answers come along.

    Raises:
        StoreFailedError: the database does not exist or has no audit lines.
    """
    columns: list[Any] = [chains.c.tenant, chains.c.project, audit.c.seq, audit.c.sha256, audit.c.line]
    query = select(*columns).join_from(audit, chains).order_by(audit.c.chain, audit.c.seq)
    if answers:
        query = query.add_columns(calls.c.answer).outerjoin(calls, calls.c.id == audit.c.call)
    if since:
        query = query.where(audit.c.ended >= since)
    with translate_errors(_ROLE, data_dir), _connected(data_dir, url) as connection:
        if not inspect(connection).has_table(audit.name):
            raise StoreFailedError("the database has no audit lines; start the service once")
        rows = connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query)
        yield (ExportedLine(*row) for row in rows)


def signing_keys(data_dir: Path, url: SecretStr) -> frozenset[str]:
    """The public keys that heads were signed with, as the database has them.

    Raises:
        StoreFailedError: the database does not exist or cannot be read.
    """
    with translate_errors(_ROLE, data_dir), _connected(data_dir, url) as connection:
        if not inspect(connection).has_table(audit_keys.name):
            return frozenset()
        return frozenset(connection.execute(select(audit_keys.c.public)).scalars())


@contextmanager
def _connected(data_dir: Path, url: SecretStr) -> Iterator[Connection]:
    engine = _server(url) if url.get_secret_value() else _file(data_dir / "proofbox.sqlite3")
    try:
        with engine.connect() as connection:
            if engine.dialect.name == "sqlite":
                connection.exec_driver_sql("PRAGMA query_only = ON")
            yield connection
    finally:
        engine.dispose()


def _server(url: SecretStr) -> Engine:
    from proofbox.service.storage.postgres import parsed_url  # noqa: PLC0415 - only who has a server needs its client

    options = {"connect_timeout": 10, "application_name": "proofbox-audit", "client_encoding": "utf8"}
    read_only = {"options": "-c default_transaction_read_only=on"}
    return create_engine(
        parsed_url(url.get_secret_value()), connect_args={**options, **read_only}, hide_parameters=True
    )


def _file(path: Path) -> Engine:
    if not path.is_file():
        raise StoreFailedError(f"{path.parent}: the folder has no database of the service; set PROOFBOX_DATA_DIR")
    # Not read-only for the driver, which could not read a write-ahead log then; the connection may not write.
    name = f"file:{quote(str(path.resolve()))}"
    url = URL.create("sqlite", database=name, query={"mode": "rw", "uri": "true"})
    return create_engine(url, hide_parameters=True)
