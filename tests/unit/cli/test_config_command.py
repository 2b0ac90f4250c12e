"""``proofbox config``: exit codes, JSON, hidden secrets; the service refuses what the check refuses."""

import json
import os
import subprocess
import sys
import tomllib

import pytest

SECRET = "hush-4c1f7be29a"


def proofbox(*arguments, **environment):
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith("PROOFBOX_")}
    command = [sys.executable, "-m", "proofbox.cli", *map(str, arguments)]
    return subprocess.run(command, env={**kept, **environment}, capture_output=True, text=True, check=False)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "proofbox.toml"


def test_a_right_file_is_told_and_ends_with_0(file):
    file.write_text("[pool]\npool_size = 3\n")
    done = proofbox("config", "check", file)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"the configuration is right: {file}\n"


def test_each_mistake_has_a_line_and_the_end_is_that_of_wrong_inputs(file):
    file.write_text("poolsize = 3\nport = 70000\n")
    done = proofbox("config", "check", PROOFBOX_CONFIG=str(file), PROOFBOX_POOLSIZE="3")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "proofbox: environment: PROOFBOX_POOLSIZE: not a setting; did you mean PROOFBOX_POOL_SIZE?",
        f"proofbox: {file}, line 1: poolsize: not a setting; did you mean pool_size?",
        f"proofbox: {file}, line 2: port: must be at most 65535 (got 70000); lower it",
    ]
    listed = json.loads(proofbox("config", "check", file, "--json").stdout)
    assert (listed["ok"], listed["file"], [row["setting"] for row in listed["mistakes"]]) == (
        False,
        str(file),
        ["poolsize", "port"],
    )
    assert set(listed["mistakes"][0]) == {"where", "setting", "problem", "remedy"}


def test_what_is_in_effect_is_shown_with_its_source_and_without_secrets(file, tmp_path):
    (tmp_path / "secret").write_text(SECRET)
    file.write_text(
        f'pool_size = 3\npids = 64\ns3_bucket = "b"\n'
        f's3_access_key = "id"\ns3_secret_key_file = "{tmp_path}/secret"\n'
    )
    url = f"postgresql://u:{SECRET}@h/d"
    done = proofbox("config", "show", file, PROOFBOX_PIDS="65", PROOFBOX_DATABASE_URL=url)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert f"pool_size = 3  # {file}, line 1" in lines
    assert "pids = 65  # PROOFBOX_PIDS" in lines
    assert "wall_s = 600.0  # default" in lines
    assert "# database_url is hidden  # PROOFBOX_DATABASE_URL" in lines
    assert f"# s3_secret_key is hidden  # {file}, line 5" in lines
    assert tomllib.loads(done.stdout)["web_ports"] == [80, 443]
    shown = proofbox("config", "show", file, "--json", "--changed", PROOFBOX_PIDS="65", PROOFBOX_DATABASE_URL=url)
    rows = json.loads(shown.stdout)["settings"]
    assert rows["pids"] == {"value": 65, "source": "PROOFBOX_PIDS"}
    assert rows["database_url"]["value"] == "********"
    assert "wall_s" not in rows
    assert SECRET not in done.stdout + shown.stdout + done.stderr


def test_the_service_refuses_what_the_check_refuses(file):
    file.write_text("poolsize = 3\nport = 70000\n")
    environment = {"PROOFBOX_ENGINE_HOST": "unix:///nowhere/docker.sock", "PROOFBOX_AUTH": "off"}
    done = proofbox("serve", "--config", file, "--host", "0.0.0.0", **environment)
    assert done.returncode == 2
    assert done.stderr.startswith(
        "proofbox: 3 mistakes in the configuration:\n"
        f"  {file}, line 1: poolsize: not a setting; did you mean pool_size?\n"
        f"  {file}, line 2: port: must be at most 65535 (got 70000); lower it\n"
        "  PROOFBOX_AUTH is off and PROOFBOX_HOST 0.0.0.0 is reached by others; "
    )


def test_other_commands_refuse_the_file_too(file):
    file.write_text("poolsize = 3\n")
    done = proofbox("keys", "list", "--json", PROOFBOX_CONFIG=str(file))
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "invalid_setting"


def test_an_audit_file_that_cannot_be_opened_stops_the_start(tmp_path):
    done = proofbox("serve", "--port", "0", PROOFBOX_AUDIT_FILE=str(tmp_path / "none" / "audit.jsonl"))
    assert done.returncode == 2
    assert (
        f"PROOFBOX_AUDIT_FILE: {tmp_path}/none/audit.jsonl cannot be opened: No such file or directory"
        in done.stderr
    )


def test_addresses_are_shown_without_password_and_query():
    done = proofbox("config", "show", "--changed", PROOFBOX_WEB_SEARCH_URL=f"http://h/s?key={SECRET}")
    assert 'web_search_url = "http://h/s?********"' in done.stdout
    assert SECRET not in done.stdout + done.stderr
    refused = proofbox("config", "show", PROOFBOX_WEB_SEARCH_URL=f"http://u:a/{SECRET}@h/s")
    assert "PROOFBOX_WEB_SEARCH_URL: 'http://********@h/s' cannot be read" in refused.stderr
    assert SECRET not in refused.stdout + refused.stderr


def test_a_setting_without_effect_is_a_warning(file):
    file.write_text('oci_runtime = "crun"\n')
    done = proofbox("config", "check", file)
    assert (done.returncode, "warning: " in done.stderr) == (0, True)
    listed = json.loads(proofbox("config", "check", file, "--json").stdout)
    assert (listed["ok"], listed["mistakes"], len(listed["warnings"])) == (True, [], 1)
