"""The check of a whole configuration: environment, files and combinations, all mistakes at once."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proofbox.service.app.config.file import ConfigFile, read_config_file
from proofbox.service.app.config.mistakes import ConfigurationError, Mistake
from proofbox.service.app.config.sources import ENVIRONMENT, PREFIX, config_path, read_secret_files
from proofbox.service.app.config.values import check_value, is_json, value_adapter
from proofbox.service.app.setting_rules import find_conflicts
from proofbox.service.app.settings import Settings
from proofbox.service.app.unknown_settings import find_unknown_settings

_CORRECT = "correct or unset it; docs/settings.md lists the settings"


def find_mistakes(environment: Mapping[str, str], options: Mapping[str, Any] | None = None) -> list[Mistake]:
    """List all mistakes of the configuration that a service would start with.

    Args:
        environment: the variables; PROOFBOX_CONFIG names the file.
        options: settings that the command line gives, which are right.
    """
    options = dict(options or {})
    path = config_path(environment)
    file = read_config_file(path, Settings) if path else ConfigFile(Path())
    mistakes = [
        Mistake(ENVIRONMENT, unknown.name, "not a setting", unknown.hint)
        for unknown in find_unknown_settings(environment)
    ]
    given, refused = _environment_values(environment, mistakes)
    secrets, of_secrets = read_secret_files(environment, Settings)
    mistakes += [*of_secrets, *file.mistakes]
    refused |= {mistake.setting.removeprefix(PREFIX).removesuffix("_FILE").lower() for mistake in of_secrets}
    # A wrong value of the file is a mistake, but has no effect where the environment wins.
    refused |= file.refused - given.keys() - secrets.keys()
    values = {**file.values, **secrets, **given, **options}
    usable = {name: value for name, value in values.items() if name not in refused - options.keys()}
    return [*mistakes, *_conflicts(usable, refused - options.keys(), file, {*given, *secrets, *options})]


def refuse_mistakes(environment: Mapping[str, str], options: Mapping[str, Any] | None = None) -> None:
    """Refuse a configuration that cannot work; see `find_mistakes`.

    Raises:
        ConfigurationError: it has mistakes.
    """
    if mistakes := find_mistakes(environment, options):
        raise ConfigurationError(mistakes)


def _environment_values(environment: Mapping[str, str], mistakes: list[Mistake]) -> tuple[dict[str, Any], set[str]]:
    """The values of variables, and the settings with wrong ones, whose mistakes are added."""
    values: dict[str, Any] = {}
    refused: set[str] = set()
    variables = {name.upper(): name for name in environment}
    for setting in Settings.model_fields:
        name = variables.get(f"{PREFIX}{setting.upper()}")
        if name is None:
            continue
        text = environment[name]
        if mistake := check_value(Settings, setting, text, is_text=True):
            problem, remedy = mistake
            mistakes.append(Mistake(ENVIRONMENT, name, problem, remedy if remedy != "correct it" else _CORRECT))
            refused.add(setting)
        values[setting] = text
        if setting not in refused and is_json(Settings, setting):
            values[setting] = json.loads(text)
    return values, refused


def _conflicts(values: dict[str, Any], refused: set[str], file: ConfigFile, outside: set[str]) -> list[Mistake]:
    """The combinations that cannot work, without those of settings that have no usable value."""
    settings = _unchecked_settings(values)
    found = []
    for conflict in find_conflicts(settings, serves=True):
        if refused.intersection(conflict.settings):
            continue
        places = [
            file.place(file.lines[name])
            for name in conflict.settings
            if name in file.values and name not in outside
        ]
        problem, _, remedy = conflict.message.partition(": ")
        where = " and ".join(dict.fromkeys(places))
        found.append(Mistake(where, "", problem, remedy))
    return found


def _unchecked_settings(values: dict[str, Any]) -> Settings:
    """Settings of values that are right each by itself; their combinations are not checked."""
    parsed = {name: value_adapter(Settings, name).validate_python(value) for name, value in values.items()}
    return Settings.model_construct(_fields_set=set(values), **parsed)
