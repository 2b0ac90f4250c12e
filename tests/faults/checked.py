"""Services whose records and files are checked at their end."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine_sides import EngineSide
from service_process import ServiceProcess, serving

from tests.support.store_check import assert_data_fits


@contextmanager
def checked(data_dir: Path, side: EngineSide, **settings: object) -> Iterator[ServiceProcess]:
    """A service that listens; once it has ended, its records and files fit each other."""
    with serving(data_dir, side, **settings) as service:
        yield service
    assert_data_fits(data_dir)
