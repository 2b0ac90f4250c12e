"""Saved services: the file is private, and a key goes to the service only that it was saved for."""

import json
import stat

import pytest

from proofbox.cli import main
from proofbox.cli.commands import build_parser
from proofbox.cli.connection import Target, check_url, local_store, resolve_target
from proofbox.cli.shared.exit_codes import CommandError, ExitCode
from proofbox.cli.shared.profiles import Profile, Profiles, load_profiles, profiles_path, save_profiles

HOME = Profiles(
    "home", {"home": Profile("https://a.example", "key-a"), "work": Profile("https://b.example/p", "key-b")}
)


@pytest.fixture(autouse=True)
def _private_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for name in ("PROOFBOX_URL", "PROOFBOX_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def target(*options):
    return resolve_target(build_parser(["tools"]).parse_args(["tools", *options]))


def test_profiles_are_saved_for_their_owner_only(tmp_path):
    path = save_profiles(HOME)
    assert path == profiles_path() == tmp_path / "config" / "proofbox" / "profiles.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert load_profiles() == HOME
    assert [each.name for each in path.parent.iterdir()] == ["profiles.json"]


def test_a_file_that_others_can_read_is_not_used():
    path = save_profiles(HOME)
    path.chmod(0o640)
    with pytest.raises(CommandError) as raised:
        load_profiles()
    assert "other users can read it (mode 0640)" in raised.value.message
    assert raised.value.hint == f"chmod 600 {path}"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"current": "a", "profiles": {"a": 1}}'])
def test_a_damaged_file_says_so_in_a_sentence(text):
    path = save_profiles(HOME)
    path.write_text(text)
    with pytest.raises(CommandError) as raised:
        load_profiles()
    assert raised.value.exit_code is ExitCode.USAGE
    assert "not a file of profiles" in raised.value.message


def test_no_error_and_no_profile_shows_a_key():
    assert "key-a" not in repr(HOME) + repr(Target("https://a.example", "key-a"))


def test_without_a_url_the_sandbox_of_this_machine_is_used():
    assert target() == Target(None, None, "no URL is known")


def test_the_current_profile_is_used_and_another_by_its_name():
    save_profiles(HOME)
    assert target() == Target("https://a.example", "key-a", "profile home")
    assert target("--profile", "work") == Target("https://b.example/p", "key-b", "profile work")


def test_local_wins_over_a_known_service(monkeypatch):
    save_profiles(HOME)
    monkeypatch.setenv("PROOFBOX_URL", "https://c.example")
    assert target("--local").url is None


def test_an_option_wins_over_the_environment_and_this_over_the_profile(monkeypatch):
    save_profiles(HOME)
    monkeypatch.setenv("PROOFBOX_URL", "https://c.example/")
    assert target() == Target("https://c.example", None, "PROOFBOX_URL")
    assert target("--url", "https://d.example") == Target("https://d.example", None, "--url")
    monkeypatch.setenv("PROOFBOX_API_KEY", "key-e")
    assert target("--url", "https://d.example").api_key == "key-e"


def test_the_key_of_a_named_profile_wins_over_the_environment(monkeypatch):
    save_profiles(HOME)
    monkeypatch.setenv("PROOFBOX_API_KEY", "key-e")
    assert target("--profile", "work").api_key == "key-b"
    assert target().api_key == "key-e"
    save_profiles(Profiles("open", {"open": Profile("https://c.example")}))
    assert target("--profile", "open").api_key == "key-e"


def test_a_saved_key_goes_to_the_saved_url_only():
    save_profiles(HOME)
    assert target("--url", "https://b.example/p/").api_key == "key-b"
    for other in ("https://b.example", "http://b.example/p", "https://b.example.evil.example/p"):
        assert target("--url", other).api_key is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--local", "--url", "https://a.example"), "--local excludes"),
        (("--local", "--profile", "home"), "--local excludes"),
        (("--url", "https://a.example", "--profile", "home"), "exclude each other"),
        (("--profile", "gone"), "there is no profile 'gone' (saved: home, work)"),
        (("--url", "a.example"), "is not the URL of a service"),
        (("--url", "http://"), "is not the URL of a service"),
        (("--url", "http://a:99999"), "is not the URL of a service"),
        (("--url", "http://[::1"), "is not the URL of a service"),
        (("--url", "https://key@a.example"), "has a user name or key in it"),
    ],
)
def test_a_wrong_target_is_a_usage_error(options, message):
    save_profiles(HOME)
    with pytest.raises(CommandError) as raised:
        target(*options)
    assert message in raised.value.message
    assert raised.value.exit_code is ExitCode.USAGE


def test_a_url_may_have_a_path_and_loses_its_last_slash():
    assert check_url("http://127.0.0.1:8080/box/", "URL") == "http://127.0.0.1:8080/box"


def test_profiles_are_listed_without_keys_chosen_and_removed(capsys):
    save_profiles(HOME)
    assert main(["login", "--json"]) == 0
    listed = capsys.readouterr().out
    assert "key-a" not in listed
    assert [row["current"] for row in json.loads(listed)["profiles"]] == [True, False]
    assert main(["login", "--profile", "work", "--quiet"]) == 0
    assert load_profiles().current == "work"
    assert main(["logout", "--quiet"]) == 0
    assert load_profiles() == Profiles("home", {"home": HOME.profiles["home"]})
    assert main(["logout", "--profile", "work"]) == 2
    assert "there is no profile 'work'" in capsys.readouterr().err


def test_the_store_of_local_commands_is_private(tmp_path):
    path = local_store()
    assert path == tmp_path / "data" / "proofbox" / "local"
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
