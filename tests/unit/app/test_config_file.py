"""A configuration file: read beside the environment, with lines in every message, secrets kept out."""

import re
import tomllib
from pathlib import Path

import pytest

from proofbox.service.app.config.effective import settings_by_section
from proofbox.service.app.config.file import read_config_file
from proofbox.service.app.config.mistakes import ConfigurationError
from proofbox.service.app.config.sections import SECTIONS
from proofbox.service.app.config.toml_text import to_toml
from proofbox.service.app.settings import Settings

EXAMPLE = Path(__file__).parents[3] / "deploy" / "proofbox.toml.example"
MACHINE = {"starts_max", "running_max", "cpus"}


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Writes the file that PROOFBOX_CONFIG names."""

    def write(text: str) -> Path:
        path = tmp_path / "proofbox.toml"
        path.write_text(text)
        monkeypatch.setenv("PROOFBOX_CONFIG", str(path))
        return path

    return write


def sentences(path):
    return [mistake.sentence.replace(f"{path}", "F") for mistake in read_config_file(path, Settings).mistakes]


def test_values_come_from_sections_and_from_outside_of_them(written):
    written(
        'wall_s = 60\n[pool]\npool_size = 3\n[web]\nweb_ports = [80, 8443]\nweb_allowed_networks = ["10.0.0.0/8"]\n'
    )
    settings = Settings()
    assert (settings.wall_s, settings.pool_size, settings.web_ports) == (60.0, 3, (80, 8443))
    assert [str(network) for network in settings.web_allowed_networks] == ["10.0.0.0/8"]


def test_a_whole_number_may_be_written_as_other_programs_do(written):
    path = written("pool_size = 4.0\nmemory_bytes = 1.073741824e+09\nweb_ports = [80.0]\nwall_s = 60\n")
    settings = Settings()
    assert (settings.pool_size, settings.memory_bytes, settings.web_ports) == (4, 2**30, (80,))
    path.write_text("pool_size = 4.5\n")
    assert sentences(path)[0].startswith("F, line 1: pool_size: must be a whole number (got 4.5)")


def test_a_table_is_a_value_too(written):
    written('[agents.gateway_env.WEATHER]\nvariable = "WX"\nhosts = ["api.example.com"]\n')
    assert Settings().gateway_env["WEATHER"].hosts == ("api.example.com",)


def test_the_environment_wins_and_options_win_over_both(written, monkeypatch):
    written(
        'pool_size = 3\nport = 1\nweb_ports = [80]\n[agents.gateway_env.A]\nvariable = "A"\nhosts = ["a.com"]\n'
    )
    monkeypatch.setenv("PROOFBOX_POOL_SIZE", "4")
    monkeypatch.setenv("PROOFBOX_PORT", "2")
    monkeypatch.setenv("PROOFBOX_GATEWAY_ENV", '{"B": {"variable": "B", "hosts": ["b.com"]}}')
    settings = Settings(port=3)
    assert (settings.pool_size, settings.port, settings.web_ports) == (4, 3, (80,))
    assert set(settings.gateway_env) == {"B"}  # replaced, never merged


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[pool]\npoolsize = 3\n", "F, line 2: poolsize: not a setting; did you mean pool_size?"),
        (
            "\ncolour = 3\n",
            "F, line 2: colour: not a setting; correct or remove it; docs/settings.md lists the settings",
        ),
        ("[pol]\nx = 1\n", "F, line 1: [pol]: not a section; did you mean pool?"),
        ('port = "8080"\n', 'F, line 1: port: must be a whole number (got "8080"); write it without quotes'),
        ("mcp = 1\n", "F, line 1: mcp: must be true or false (got 1); correct it"),
        ("host = 1\n", "F, line 1: host: must be text (got 1); write it in quotes"),
        ("web_ports = 80\n", "F, line 1: web_ports: must be a list (got 80); correct it"),
        ('web_ports = [80, "x"]\n', 'F, line 1: web_ports: [1] must be a whole number (got [80, "x"]); correct it'),
        ("pool_size = 101\n", "F, line 1: pool_size: must be at most 100 (got 101); lower it"),
        (
            'engine = "podman"\n',
            "F, line 1: engine: must be 'docker' or 'oci' (got \"podman\"); choose one of them",
        ),
        (
            "pool_size = 1\n[pool]\npool_size = 2\n",
            "F, line 3: pool_size: is set twice, also in line 1; keep one of the two",
        ),
        ("pool_size = \n", "F, line 1: is not TOML: Invalid value; correct the line; text needs quotes"),
        (
            '[agents.gateway_env.X]\nvariable = "A"\n',
            'F, line 1: gateway_env: X.hosts is missing (got {"X": {"variable": "A"}}); add it',
        ),
    ],
)
def test_a_mistake_names_line_setting_limit_and_remedy(written, text, sentence):
    path = written(text)
    assert sentences(path) == [sentence]
    with pytest.raises(ConfigurationError) as refused:
        Settings()
    assert refused.value.message == sentence.replace("F", str(path), 1)


def test_all_mistakes_of_a_file_are_listed_at_once(written):
    path = written('port = "x"\npoolsize = 1\npids = 1\n[nowhere]\na = 1\n')
    assert [re.findall(r"line (\d)", sentence)[0] for sentence in sentences(path)] == ["1", "2", "3", "4"]
    with pytest.raises(ConfigurationError, match="4 mistakes in the configuration:\n  "):
        Settings()


def test_a_file_that_is_not_there_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("PROOFBOX_CONFIG", str(tmp_path / "none.toml"))
    with pytest.raises(
        ConfigurationError, match=r"none\.toml: cannot be read: No such file or directory; correct the path"
    ):
        Settings()


@pytest.mark.parametrize("line", ['s3_secret_key = "hush-hush"', 'database_url = "postgresql://u:hush-hush@h/d"'])
def test_a_secret_does_not_belong_into_the_file_and_is_not_printed(written, line):
    [sentence] = sentences(written(f"{line}\n"))
    assert "is a secret, which does not belong into this file; put it into a file of its own" in sentence
    assert "hush" not in sentence


def test_the_address_of_a_database_without_a_password_is_no_secret(written):
    written('database_url = "postgresql:///proofbox?host=/run/postgresql"\n')
    assert Settings().database_url.get_secret_value() == "postgresql:///proofbox?host=/run/postgresql"


def test_secrets_come_from_files_that_the_file_or_a_variable_names(written, tmp_path, monkeypatch):
    (tmp_path / "key").write_text("first\n")
    (tmp_path / "other").write_text("second\n")
    written(f's3_bucket = "b"\ns3_access_key = "id"\ns3_secret_key_file = "{tmp_path}/key"\n')
    assert Settings().s3_secret_key.get_secret_value() == "first"
    monkeypatch.setenv("PROOFBOX_S3_SECRET_KEY_FILE", f"{tmp_path}/other")
    assert Settings().s3_secret_key.get_secret_value() == "second"
    monkeypatch.setenv("PROOFBOX_S3_SECRET_KEY", "third")
    with pytest.raises(ConfigurationError, match="PROOFBOX_S3_SECRET_KEY is set too; unset one of the two"):
        Settings()


@pytest.mark.parametrize(
    ("content", "problem"), [(None, "cannot be read"), ("\n", "is empty"), (b"\xff", "is not UTF-8")]
)
def test_a_file_of_a_secret_that_cannot_be_used_is_named(written, tmp_path, content, problem):
    secret = tmp_path / "secret"
    if content is not None:
        secret.write_bytes(content if isinstance(content, bytes) else content.encode())
    [sentence] = sentences(written(f'\ndatabase_url_file = "{secret}"\n'))
    assert sentence.startswith(f"F, line 2: database_url_file: {secret} {problem}")


def test_every_setting_is_in_one_section_and_no_section_has_the_name_of_a_setting():
    groups = settings_by_section()
    assert list(groups) == list(SECTIONS)
    assert sorted(name for names in groups.values() for name in names) == sorted(Settings.model_fields)
    assert {section.name for section in SECTIONS}.isdisjoint(Settings.model_fields)


def test_the_example_can_be_loaded_and_changes_nothing(monkeypatch):
    without = Settings()
    monkeypatch.setenv("PROOFBOX_CONFIG", str(EXAMPLE))
    assert Settings() == without


def test_the_example_has_each_setting_once_with_its_default(tmp_path):
    text = re.sub(r"^#(?=[a-z0-9_]+ = )", "", EXAMPLE.read_text(), flags=re.MULTILINE)
    tables = [table.items() for table in tomllib.loads(text).values()]
    values = {name: value for table in tables for name, value in table}
    secrets = {name for name, field in Settings.model_fields.items() if "SecretStr" in str(field.annotation)}
    assert {
        name.removesuffix("_file") if name.removesuffix("_file") in secrets else name for name in values
    } == set(Settings.model_fields)
    whole = tmp_path / "whole.toml"
    whole.write_text(
        "".join(
            line
            for line in text.splitlines(keepends=True)
            if not re.match(r"(database_url|s3_secret_key|nats_password|nats_token|package_index_login)_file", line)
        )
    )
    found = read_config_file(whole, Settings)
    assert found.mistakes == []
    defaults = Settings.model_construct(_fields_set=set()).model_dump(mode="json")
    named = {
        name: value for name, value in found.values.items() if defaults[name] is not None and name not in MACHINE
    }
    assert {name: value for name, value in named.items() if defaults[name] != value} == {
        "seccomp_profile": "/etc/proofbox/sandbox.json"
    }


@pytest.mark.parametrize(
    "value", ['"', "a\\b", "ä\n\t", "\x7f", 1, 1.5, True, [], [1, ["a"]], {"a b": {"c": [True]}}, {}]
)
def test_what_is_written_as_toml_is_read_as_the_same(value):
    assert tomllib.loads(f"x = {to_toml(value)}") == {"x": value}
