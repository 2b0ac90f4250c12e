"""Which settings the processes of a service have in common, and how a difference is told."""

from pydantic import SecretStr

from proofbox.service.app.processes.equal_settings import MAY_DIFFER, facts_of
from proofbox.service.app.settings import Settings
from proofbox.service.dispatch.differences import Member, ProcessFacts, find_differences


def member(boot_id, role="worker", release="1", **settings):
    return Member(boot_id, role, ProcessFacts(release, settings))


def test_the_settings_that_may_differ_exist_and_all_secrets_are_among_them():
    fields = Settings.model_fields
    assert set(fields) >= MAY_DIFFER
    assert {name for name, field in fields.items() if field.annotation is SecretStr} <= MAY_DIFFER


def test_a_process_reports_digests_and_no_values():
    one, other = (facts_of(Settings(retention_days=days, data_dir="/x"), "1") for days in (7, 8))
    assert [name for name in one.settings if one.settings[name] != other.settings[name]] == ["retention_days"]
    assert all(len(digest) == 8 for digest in one.settings.values())
    assert "data_dir" not in one.settings
    assert facts_of(Settings(retention_days=7, data_dir="/y", image=Settings().sandbox_image), "1") == one


def test_processes_that_are_the_same_have_no_differences():
    assert find_differences([]) == []
    assert find_differences([member("a", wall_s="1"), member("b", wall_s="1")]) == []


def test_the_processes_whose_value_is_not_that_of_most_are_named():
    members = [member("a", wall_s="1"), member("b", wall_s="2"), member("c", "api", wall_s="1")]
    assert find_differences(members) == [
        "PROOFBOX_WALL_S: differs at worker b; give all processes the same value, and restart them"
    ]
    assert "worker b;" in find_differences([member("a", wall_s="1"), member("b", wall_s="2")])[0]


def test_releases_that_differ_are_named_and_a_setting_that_only_one_has_is_no_difference():
    [told] = find_differences(
        [
            member("a", release="1", wall_s="1"),
            member("b", release="2", wall_s="1", new_one="x"),
            member("c", release=""),
        ]
    )
    assert told == "releases: '1', '2' run side by side; replace the older processes"
