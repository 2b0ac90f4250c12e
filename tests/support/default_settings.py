"""The settings of a service for which nothing is set: reading all of them takes longer than most tests."""

from functools import cache
from pathlib import Path

from proofbox.service.app.settings import Settings


def default_settings(data_dir: Path) -> Settings:
    """Give the settings of a service that has a data folder and nothing else."""
    return _read().model_copy(update={"data_dir": data_dir})


@cache
def _read() -> Settings:
    return Settings()
