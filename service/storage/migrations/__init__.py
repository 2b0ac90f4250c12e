"""The schema of a database: created from the tables, or upgraded from an older release by Alembic's revisions.

A change of `service.storage.schema` is one more file in ``versions``, named by the next number; a revision that was
released is never edited. Alembic takes 10 MB of memory, so it is imported for an older database only.
"""

import logging
import threading
from pathlib import Path

from sqlalchemy import Column, Connection, MetaData, PrimaryKeyConstraint, String, Table, insert, inspect, select

from proofbox.service.errors import StoreFailedError
from proofbox.service.storage.gateway.schema import metadata

_FOLDER = Path(__file__).parent
# As Alembic creates it.
_stamp = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
# Alembic passes the connection to env.py through its module, so a process runs one upgrade at a time.
_alembic = threading.Lock()
_log = logging.getLogger(__name__)


def migrate(connection: Connection) -> None:
    """Bring the database to the newest schema, in the transaction of the caller.

    Raises:
        StoreFailedError: a newer release of the service created it, or none that can be upgraded.
        SQLAlchemyError: a revision failed; the database is as it was.
    """
    known, stamped = revisions(), _read_stamp(connection)
    if stamped == known[-1]:
        return
    if stamped in known:
        upgrade(connection, known[-1])
        _log.info("upgraded the schema of the database from %s to %s", stamped, known[-1])
        return
    if stamped is not None:
        raise StoreFailedError(
            f"the database has schema {stamped.lstrip('0')} and this release knows {known[-1].lstrip('0')}; "
            "run the newer release"
        )
    if not metadata.tables.keys().isdisjoint(inspect(connection).get_table_names()):
        raise StoreFailedError("the database has tables and no schema number; start with an empty database")
    metadata.create_all(connection, checkfirst=False)
    _stamp.create(connection, checkfirst=True)  # an empty one may exist
    connection.execute(insert(_stamp).values(version_num=known[-1]))


def is_newest(connection: Connection) -> bool:
    """Whether the schema is this release's."""
    return _read_stamp(connection) == revisions()[-1]


def upgrade(connection: Connection, newest: str) -> None:
    """Run the revisions that are missing, in the transaction of the caller.

    Raises:
        SQLAlchemyError: a revision failed.
    """
    from alembic import command  # noqa: PLC0415 - see above
    from alembic.config import Config  # noqa: PLC0415

    with _alembic:
        config = Config(attributes={"connection": connection})
        config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
        command.upgrade(config, newest)


def require_newest(connection: Connection) -> None:
    """Require this release's schema, for a command that runs beside a service and must not change it.

    Raises:
        StoreFailedError: the schema is another one.
    """
    newest = revisions()[-1]
    if (stamped := _read_stamp(connection)) != newest:
        raise StoreFailedError(
            f"the service that runs has schema {(stamped or '0').lstrip('0')} and this command knows "
            f"{newest.lstrip('0')}; use the command of the same release"
        )


def revisions() -> list[str]:
    """Return the revisions that this release knows, the oldest first: each file's name begins with its own."""
    return sorted(file.name.partition("_")[0] for file in (_FOLDER / "versions").glob("[0-9]*.py"))


def _read_stamp(connection: Connection) -> str | None:
    if not inspect(connection).has_table(_stamp.name):
        return None
    return connection.execute(select(_stamp.c.version_num)).scalar_one_or_none()
