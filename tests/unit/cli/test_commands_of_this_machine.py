"""Commands on the store of this machine: they name it where a service is known, and have JSON."""

import json
import re

import pytest

from proofbox.cli import main
from proofbox.cli.connection import store_of
from proofbox.cli.shared.profiles import Profile, Profiles, save_profiles
from proofbox.service.access.api_keys import Permission

SERVICE = "http://a.example"


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    for name in ("PROOFBOX_URL", "PROOFBOX_API_KEY", "PROOFBOX_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PROOFBOX_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


def test_keys_name_their_store_if_a_service_is_known(store, monkeypatch, capsys):
    create = ["keys", "create", "--name", "a", "--json"]
    assert main(create) == 0
    assert capsys.readouterr().err == ""
    save_profiles(Profiles("home", {"home": Profile(SERVICE)}))
    assert main(create) == 0
    name = f"proofbox: this command uses the store {store}, not the service "
    assert capsys.readouterr().err == f"{name}of 'proofbox login'\n"
    monkeypatch.setenv("PROOFBOX_URL", SERVICE)
    assert main(create) == 0
    printed = capsys.readouterr()
    assert printed.err == f"{name}at PROOFBOX_URL\n"
    assert json.loads(printed.out)["name"] == "a"


def test_the_name_of_a_database_has_no_password(store):
    assert (
        store_of(store, "postgresql://me:secret@db.example:5432/proofbox") == "the database proofbox at db.example"
    )


def test_short_answers_have_json(capsys):
    assert main(["links", "rotate", "--json"]) == 0
    rotated = json.loads(capsys.readouterr().out)
    assert (set(rotated), rotated["older_links_work_s"] > 0) == ({"key", "older_links_work_s"}, True)
    assert main(["image", "name", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["image"].startswith("proofbox-sandbox:")
    assert main(["audit", "begin-anew", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"moved": []}
    assert main(["audit", "verify", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"ok": True, "chains": [], "problems": []}


def test_an_error_of_a_command_of_this_machine_has_json(capsys):
    assert main(["audit", "rotate-key", "--json"]) != 0
    assert json.loads(capsys.readouterr().out)["error"]["code"]


def test_the_help_of_keys_names_the_scopes_that_a_usual_key_does_not_get(capsys):
    with pytest.raises(SystemExit):
        main(["keys", "create", "--help"])
    printed = " ".join(capsys.readouterr().out.split())
    [left_out] = re.findall(r"if not given, all but ([a-z:_, ]+?) (?=--)", printed)
    assert main(["keys", "create", "--name", "a", "--json"]) == 0
    given = json.loads(capsys.readouterr().out)["scopes"].split(",")
    assert {*given, *left_out.split(", ")} == set(Permission)
    assert len(given) + len(left_out.split(", ")) == len(Permission)
