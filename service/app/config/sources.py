"""Where settings come from beside the environment: files of secrets, and the configuration file."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from proofbox.service.app.config.file import read_config_file
from proofbox.service.app.config.mistakes import ConfigurationError, Mistake
from proofbox.service.app.config.secret_files import FILE_SUFFIX, SecretFileError, file_settings, read_secret

PREFIX = "PROOFBOX_"
CONFIG_VARIABLE = "PROOFBOX_CONFIG"
ENVIRONMENT = "environment"


def config_path(environment: Mapping[str, str]) -> Path | None:
    """The configuration file that the environment names."""
    name = environment.get(CONFIG_VARIABLE, "")
    return Path(name) if name else None


def read_secret_files(
    environment: Mapping[str, str], model: type[BaseSettings]
) -> tuple[dict[str, str], list[Mistake]]:
    """The secrets of files that variables name, and what is wrong with these.

    Args:
        environment: the variables.
        model: the class of the settings.
    """
    given = {name.upper(): value for name, value in environment.items()}
    values: dict[str, str] = {}
    mistakes: list[Mistake] = []
    for name in sorted(file_settings(model)):
        variable, setting = f"{PREFIX}{name.upper()}", name.removesuffix(FILE_SUFFIX)
        if not (path := given.get(variable)):
            continue
        if other := given.get(f"{PREFIX}{setting.upper()}") is not None and f"{PREFIX}{setting.upper()}":
            mistakes.append(Mistake(ENVIRONMENT, variable, f"{other} is set too", "unset one of the two"))
            continue
        try:
            values[setting] = read_secret(Path(path))
        except SecretFileError as exc:
            mistakes.append(Mistake(ENVIRONMENT, variable, str(exc), "correct the path or the file"))
    return values, mistakes


class _Source(PydanticBaseSettingsSource):
    """A source that gives all its values at once."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:  # noqa: ARG002
        """Not used, as ``__call__`` has all values."""
        return None, field_name, False


class Replaceable(_Source):
    """A source whose values stronger sources replace, tables too, which pydantic-settings would merge.

    Args:
        source: gives the values.
    """

    def __init__(self, source: PydanticBaseSettingsSource) -> None:
        super().__init__(source.settings_cls)
        self._source = source

    def __call__(self) -> dict[str, Any]:
        """The values that no stronger source has."""
        return {name: value for name, value in self._source().items() if name not in self.current_state}


class _Files(_Source):
    """A source of files; their values of settings that arguments give are not used, and may be wrong.

    Args:
        settings_cls: the class of the settings.
        arguments: the settings that arguments give.
    """

    def __init__(self, settings_cls: type[BaseSettings], arguments: Collection[str]) -> None:
        super().__init__(settings_cls)
        self._unused = {*arguments, *(f"{name}{FILE_SUFFIX}" for name in arguments)}

    def _refuse(self, mistakes: list[Mistake]) -> None:
        used = [one for one in mistakes if one.setting.removeprefix(PREFIX).lower() not in self._unused]
        if used:
            raise ConfigurationError(used)


class SecretFiles(_Files):
    """Secrets in files that variables name.

    Raises:
        ConfigurationError: a file cannot be used.
    """

    def __call__(self) -> dict[str, Any]:
        """The secrets."""
        values, mistakes = read_secret_files(os.environ, self.settings_cls)
        self._refuse(mistakes)
        return values


class ConfigFileSource(_Files):
    """The configuration file, without what the environment sets.

    Raises:
        ConfigurationError: the file has mistakes.
    """

    def __call__(self) -> dict[str, Any]:
        """The values of the file."""
        path = config_path(os.environ)
        if path is None:
            return {}
        found = read_config_file(path, self.settings_cls)
        self._refuse(found.mistakes)
        # Not merged: a table of the environment replaces that of the file.
        return {name: value for name, value in found.values.items() if name not in self.current_state}
