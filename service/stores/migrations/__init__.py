"""The schema's history as Alembic revisions, one file each; a revision that was released is never edited.

A change of `service.stores.tables` is one more file in ``versions``, named by the next number. Databases from
before Alembic count their steps in ``PRAGMA user_version``: the first revisions are those steps.
"""

import logging
import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from service.core.errors import StoreFailedError

_log = logging.getLogger(__name__)

_FOLDER = Path(__file__).parent
# Alembic hands the connection to env.py through its module, so that one at a time can be under way in a process.
_alembic = threading.Lock()


def migrate(connection: Connection) -> None:
    """Brings the database to the newest schema, in the transaction of the caller.

    Raises:
        StoreFailedError: a newer release of the service made it.
        SQLAlchemyError: a step failed; the database is as it was.
    """
    with _alembic:
        config = Config(attributes={"connection": connection})
        config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
        known = [revision.revision for revision in ScriptDirectory.from_config(config).walk_revisions()]
        newest, stamped, counted = known[0], _stamped(connection), _counted(connection)
        for seen in (counted, stamped):
            if seen is not None and seen not in known:
                raise StoreFailedError(
                    f"the database has schema {seen.lstrip('0')} and this release knows {newest.lstrip('0')}; "
                    "run the newer release"
                )
        if stamped == newest:
            return
        if stamped is None and counted is not None:
            command.stamp(config, counted)
        command.upgrade(config, "head")
        _log.info("the database has schema %s now, from %s", newest, stamped or counted or "nothing")
        if connection.dialect.name == "sqlite":
            # By this number a release from before Alembic sees that the database is too new for it.
            connection.exec_driver_sql(f"PRAGMA user_version = {int(newest)}")


def refuse_others(connection: Connection) -> None:
    """For who uses a database beside a service that runs, and must not change its schema.

    Raises:
        StoreFailedError: its schema is not this release's.
    """
    newest = ScriptDirectory(str(_FOLDER)).get_current_head()
    if (stamped := _stamped(connection)) != newest:
        raise StoreFailedError(
            f"the service that runs has schema {(stamped or '0').lstrip('0')} and this command knows "
            f"{(newest or '0').lstrip('0')}; use the command of the same release"
        )


def _stamped(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _counted(connection: Connection) -> str | None:
    if connection.dialect.name != "sqlite":
        return None
    steps: int = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
    return f"{steps:04}" if steps else None
