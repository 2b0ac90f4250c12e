"""The settings in effect, and where each comes from."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from proofbox.service.app.config.file import read_config_file
from proofbox.service.app.config.hidden_values import HIDDEN, hide_credentials
from proofbox.service.app.config.secret_files import FILE_SUFFIX, file_settings
from proofbox.service.app.config.sections import Section, group_settings
from proofbox.service.app.config.sources import PREFIX, config_path
from proofbox.service.app.config.values import is_secret
from proofbox.service.app.gateway_settings import GatewaySettings
from proofbox.service.app.log_settings import LogSettings
from proofbox.service.app.network_settings import NetworkSettings
from proofbox.service.app.packages.settings import PackageSettings
from proofbox.service.app.processes.settings import DispatchSettings
from proofbox.service.app.settings import Settings


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """A setting in effect.

    Attributes:
        name: its name.
        value: as TOML and JSON have it, None for none; a secret is hidden.
        source: ``default``, ``option``, a variable, or the file with its line.
        is_secret: whether its value is hidden.
    """

    name: str
    value: Any
    source: str
    is_secret: bool


def settings_by_section() -> dict[Section, list[str]]:
    """All settings below their sections, in the order of the documentation."""
    groups = (LogSettings, NetworkSettings, PackageSettings, GatewaySettings, DispatchSettings)
    inherited = [name for group in groups for name in group.model_fields]
    own = [name for name in Settings.model_fields if name not in inherited]
    return group_settings([*own, *inherited])


def effective_settings(environment: Mapping[str, str]) -> list[EffectiveSetting]:
    """The settings of this process's environment and its configuration file.

    Args:
        environment: the variables, from which the settings are read.

    Raises:
        ConfigurationError: a file has mistakes.
        ValidationError: a value is wrong, or settings do not fit together.
    """
    settings, path = Settings(), config_path(environment)
    lines = read_config_file(path, Settings).lines if path else {}
    names = [name for group in settings_by_section().values() for name in group]
    return [_effective(settings, name, _source(name, environment, path, lines)) for name in names]


def _source(name: str, environment: Mapping[str, str], path: Path | None, lines: Mapping[str, int]) -> str:
    variables = {variable.upper(): variable for variable in environment}
    by_file = f"{name}{FILE_SUFFIX}" in file_settings(Settings)
    for key in (name, *([f"{name}{FILE_SUFFIX}"] if by_file else [])):
        if variable := variables.get(f"{PREFIX}{key.upper()}"):
            return variable
    return f"{path}, line {lines[name]}" if name in lines else "default"


def _effective(settings: Settings, name: str, source: str) -> EffectiveSetting:
    value = getattr(settings, name)
    if is_secret(Settings, name):
        has_value = bool(value.get_secret_value() if isinstance(value, SecretStr) else value)
        return EffectiveSetting(name, HIDDEN if has_value else "", source, has_value)
    shown = settings.model_dump(mode="json", include={name})[name]
    return EffectiveSetting(name, hide_credentials(shown), source, is_secret=False)
