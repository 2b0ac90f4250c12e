"""The settings of a service that has a folder of its own: reading the others takes longer than most tests."""

import os
from pathlib import Path
from typing import Any

from proofbox.service.app.settings import Settings

_READ: dict[str, Settings] = {}


def given_settings(data_dir: Path, **given: Any) -> Settings:
    """Give the settings of a service with a data folder; the same others are read once in each environment."""
    of_environment = sorted(item for item in os.environ.items() if item[0].startswith("PROOFBOX_"))
    key = repr((sorted(given.items()), of_environment))
    if key not in _READ:
        _READ[key] = Settings(**given)
    return _READ[key].model_copy(update={"data_dir": data_dir})
