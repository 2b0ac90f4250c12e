"""The clock of the database: one for all processes of a service."""

from typing import Any

from sqlalchemy import Double
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import FunctionElement


class epoch_now(FunctionElement[float]):  # noqa: N801 - used as a function of SQL
    """Seconds since 1970 at the moment when the statement reads it, not at the begin of its transaction."""

    type = Double()
    inherit_cache = True


@compiles(epoch_now, "sqlite")
def _of_sqlite(_element: Any, _compiler: Any, **_options: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(epoch_now, "postgresql")
def _of_postgres(_element: Any, _compiler: Any, **_options: Any) -> str:
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS double precision)"
