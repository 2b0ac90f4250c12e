"""Takes a database of an older release over, by Alembic's revisions."""

import logging
import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

_log = logging.getLogger("service.storage.migrations")

_FOLDER = Path(__file__).parent
# Alembic hands the connection to env.py through its module, so that one at a time can be under way in a process.
_alembic = threading.Lock()


def upgrade(connection: Connection, *, stamped: str | None, counted: str | None, newest: str) -> None:
    """Runs the revisions that are missing, in the transaction of the caller.

    Args:
        connection: the database.
        stamped: the revision that Alembic has noted in it.
        counted: the one that it had before Alembic, if it is as old.
        newest: the last revision.

    Raises:
        SQLAlchemyError: a step failed.
    """
    with _alembic:
        config = Config(attributes={"connection": connection})
        config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
        if stamped is None and counted is not None:
            command.stamp(config, counted)
        command.upgrade(config, newest)
        _log.info("the database has schema %s now, from %s", newest, stamped or counted or "none that was noted")
