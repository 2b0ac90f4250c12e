"""What describes a service for others in the environment does not reach a service for one command."""

import contextlib
import os

import pytest

from proofbox.cli.checks.trial import trial_settings
from proofbox.service.app.config.local_use import local_values
from proofbox.service.app.config.mistakes import ConfigurationError
from proofbox.service.app.config.secret_files import file_settings
from proofbox.service.app.config.values import check_value, is_json
from proofbox.service.app.settings import Settings

LOCAL = local_values(Settings)
# Of these, a value that a setting takes and that is neither its default nor its local value.
TEXTS = (
    *("7", "7000000", "true", "false", "off", "nats", "worker", "/nowhere/file"),
    *("https://a.example", "nats://a.example:4222", '["https://a.example"]'),
    *(
        '{"X": {"variable": "NOT_SET", "hosts": ["a.example"]}}',
        '{"X": {"variable": "NOT_SET", "hosts": ["a.example:443"], "projects": ["a/*"]}}',
        '{"x": {"url": "https://a.example", "models": ["m"]}}',
    ),
)
MANY_PROCESSES = {
    "PROOFBOX_DISPATCH": "nats",
    "PROOFBOX_NATS_URLS": "nats://a.example:4222",
    "PROOFBOX_DATABASE_URL": "postgresql://a.example/proofbox",
    "PROOFBOX_S3_BUCKET": "files",
    "PROOFBOX_SERVICE_NAME": "proofbox",
    "PROOFBOX_KEYS_DIR": "/nowhere/keys",
}


def value_for_others(name):
    usual = (str(Settings.model_fields[name].default).lower(), str(LOCAL[name]).lower())
    fitting = (
        text
        for text in TEXTS
        if text.lower() not in usual
        and text.startswith(("[", "{")) == is_json(Settings, name)
        and check_value(Settings, name, text, is_text=True) is None
    )
    value = next(fitting, None)
    assert value is not None, f"TEXTS has no value for PROOFBOX_{name.upper()}"
    return value


@pytest.fixture
def environment(monkeypatch):
    for name in [name for name in os.environ if name.upper().startswith("PROOFBOX_")]:
        monkeypatch.delenv(name)
    return monkeypatch


def test_a_local_command_sees_nothing_that_is_set_for_others(environment, tmp_path):
    alone = Settings.of_local_command(data_dir=tmp_path)
    for name in LOCAL:
        environment.setenv(f"PROOFBOX_{name.upper()}", value_for_others(name))
    environment.setenv("PROOFBOX_WALL_S", "61")
    beside = Settings.of_local_command(data_dir=tmp_path)
    assert beside.model_dump() == alone.model_dump() | {"wall_s": 61}
    assert {name: alone.model_dump()[name] for name in ("host", "port", "auth", "dispatch", "pool_size")} == {
        "host": "127.0.0.1",
        "port": 0,
        "auth": "required",
        "dispatch": "local",
        "pool_size": 1,
    }


@pytest.mark.parametrize("name", sorted(file_settings(Settings)))
def test_files_of_a_services_secrets_are_read_only_for_settings_that_a_local_command_has(
    environment, tmp_path, name
):
    is_read = name.removesuffix("_file") not in LOCAL
    config = tmp_path / "proofbox.toml"
    config.write_text(f'{name} = "/nowhere/secret"\n')
    for variable, value in ((f"PROOFBOX_{name.upper()}", "/nowhere/secret"), ("PROOFBOX_CONFIG", str(config))):
        refusal = pytest.raises(ConfigurationError, match="/nowhere/secret cannot be read")
        with environment.context() as patched, refusal if is_read else contextlib.nullcontext():
            patched.setenv(variable, value)
            Settings.of_local_command(data_dir=tmp_path)


def test_the_trial_of_a_service_of_many_processes_has_its_limits_and_none_of_its_stores(environment, tmp_path):
    for name, value in {**MANY_PROCESSES, "PROOFBOX_WALL_S": "61"}.items():
        environment.setenv(name, value)
    trial = trial_settings(Settings(), tmp_path)
    assert trial.model_dump() == Settings.of_local_command(data_dir=tmp_path, pool_size=0, wall_s=61).model_dump()
