"""The schema of a database: made new from the tables, or taken over from an older release by Alembic's revisions.

A change of `service.storage.schema` is one more file in ``versions``, named by the next number; a revision that was
released is never edited. Databases from before Alembic count their steps in ``PRAGMA user_version``: the first
revisions are those steps. Alembic takes 10 MB of memory and only an older database needs it, so nothing here
imports it before.
"""

from pathlib import Path

from sqlalchemy import Column, Connection, MetaData, PrimaryKeyConstraint, String, Table, insert, inspect, select

from service.errors import StoreFailedError
from service.storage.schema import metadata

_VERSIONS = Path(__file__).parent / "versions"
# As Alembic makes it.
_stamp = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


def migrate(connection: Connection) -> None:
    """Brings the database to the newest schema, in the transaction of the caller.

    Raises:
        StoreFailedError: a newer release of the service made it.
        SQLAlchemyError: a step failed; the database is as it was.
    """
    known = revisions()
    newest, stamped, counted = known[-1], _stamped(connection), _counted(connection)
    for seen in (counted, stamped):
        if seen is not None and seen not in known:
            raise StoreFailedError(
                f"the database has schema {seen.lstrip('0')} and this release knows {newest.lstrip('0')}; "
                "run the newer release"
            )
    if stamped == newest:
        return
    if stamped is None and counted is None and _has_none_of_our_tables(connection):
        metadata.create_all(connection, checkfirst=False)
        _stamp.create(connection, checkfirst=True)  # there may be one that says nothing
        connection.execute(insert(_stamp).values(version_num=newest))
    else:
        from service.storage.migrations.upgrading import upgrade  # noqa: PLC0415 - see above

        upgrade(connection, stamped=stamped, counted=counted, newest=newest)
    if connection.dialect.name == "sqlite":
        # By this number a release from before Alembic sees that the database is too new for it.
        connection.exec_driver_sql(f"PRAGMA user_version = {int(newest)}")


def refuse_others(connection: Connection) -> None:
    """For who uses a database beside a service that runs, and must not change its schema.

    Raises:
        StoreFailedError: its schema is not this release's.
    """
    newest = revisions()[-1]
    if (stamped := _stamped(connection)) != newest:
        raise StoreFailedError(
            f"the service that runs has schema {(stamped or '0').lstrip('0')} and this command knows "
            f"{newest.lstrip('0')}; use the command of the same release"
        )


def revisions() -> list[str]:
    """The revisions that this release knows, the oldest first: each file's name begins with its own."""
    return sorted(file.name.partition("_")[0] for file in _VERSIONS.glob("[0-9]*.py"))


def _stamped(connection: Connection) -> str | None:
    if not inspect(connection).has_table(_stamp.name):
        return None
    return connection.execute(select(_stamp.c.version_num)).scalar_one_or_none()


def _counted(connection: Connection) -> str | None:
    if connection.dialect.name != "sqlite":
        return None
    steps: int = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
    return f"{steps:04}" if steps else None


def _has_none_of_our_tables(connection: Connection) -> bool:
    return metadata.tables.keys().isdisjoint(inspect(connection).get_table_names())
