"""The operator's settings: named with their units, described, overridden by the environment, consistent."""

import ast
import inspect
import math

import pytest
from pydantic import ValidationError

from proofbox.service.app import gateway_settings, log_settings, network_settings, settings
from proofbox.service.app.maintenance import retention_policy
from proofbox.service.app.packages import settings as package_settings
from proofbox.service.app.processes import settings as dispatch_settings
from proofbox.service.app.settings import Settings
from proofbox.service.sandbox.limits import TMPFS_SHARE_OF_MEMORY, CallLimits, limit_names

UNITS = (
    "_s",
    "_bytes",
    "_bytes_max",
    "_s_per_file",
    "_files_max",
    "_pixels_max",
    "_tokens_max",
    "_members_max",
    "_pages_max",
)
UNITS += ("_rounds", "_tokens", "_days")
NAMES = {"host", "data_dir", "service_name", "tenant", "project", "user_type", "user", "asset_roots", "engine_host"}
NAMES |= {
    "s3_bucket",
    "s3_prefix",
    "s3_endpoint",
    "s3_link_endpoint",
    "s3_region",
    "s3_access_key",
    "s3_secret_key",
}
NAMES |= {"image", "runtime", "cgroup_parent", "seccomp_profile", "import_once", "database_url", "skills_dir"}
NAMES |= {"web_allowed_networks", "web_ports", "web_ca_file", "web_search_url"}
NAMES |= {
    "log_format",
    "log_level",
    "audit_file",
    "otlp_endpoint",
    "audit_key_file",
    "audit_heads_file",
    "gotenberg",
}
# What each counts is its name.
COUNTS = {
    "connections_max",
    "connections_per_address_max",
    "sandbox_user_first",
    "sandbox_users",
    "port",
    "pool_size",
    "starts_max",
    "running_max",
    "queue_max",
    "cpus",
    "pids",
    "files",
}
COUNTS |= {"pool_max", "pool_reserve", "total_pids", "total_cpus", "depth", "out_dir_inodes", "web_fetching_max"}

# Of the services.
NAMES |= {
    "address_file",
    "auth",
    "behind_authenticating_proxy",
    "allowed_hosts",
    "public_url",
    "limits_without_key",
    "mcp",
}
COUNTS |= {
    "full_workspace_entries_max",
    "connections_max",
    "connections_per_address_max",
    "sandbox_user_first",
    "sandbox_users",
}
COUNTS |= {"key_running_calls", "key_queued_calls", "total_pids", "total_cpus"}
UNITS += ("_per_minute",)

# Of the facades.
NAMES |= {"librechat", "librechat_key_file", "librechat_issuer", "librechat_audience"}

# Of the console, and of agents; GATEWAY.md names `wait_s_max`, whose unit is inside.
NAMES |= {"console", "gateway_env", "llm_endpoints", "gateway_networks", "gateway_ports", "space_origins"}
NAMES |= {"sandbox_network", "sandbox_network_ranges", "sandbox_pip_index_url"}
NAMES |= {"sandbox_network_secrets", "sandbox_network_ca_file"}
NAMES |= {"package_index", "package_index_login", "package_index_ranges", "package_names", "package_dir"}
COUNTS |= {"package_call_count_max", "package_installing_max"}
COUNTS |= {"sandbox_network_open_max", "sandbox_network_connections_max"}
COUNTS |= {"gateway_running_max", "agent_runs_max"}
UNITS += ("_s_max",)

# Of many processes.
NAMES |= {"dispatch", "role", "keys_dir", "nats_urls", "nats_prefix", "nats_user", "nats_password"}
NAMES |= {"nats_token", "nats_nkey_file"}
NAMES |= {"nats_credentials_file", "nats_ca_file", "nats_certificate_file", "nats_certificate_key_file"}
COUNTS |= {"dispatch_attempts_max"}

# Of the engines.
NAMES |= {"engine", "oci_runtime", "oci_image_archive", "oci_cache_dir", "oci_run_dir"}


def made(monkeypatch, **environment):
    for name, value in environment.items():
        monkeypatch.setenv(f"PROOFBOX_{name.upper()}", str(value))
    return Settings()


@pytest.mark.parametrize("name", Settings.model_fields)
def test_a_setting_has_its_unit_in_its_name_or_needs_none(name):
    assert name.endswith(UNITS) != (name in NAMES | COUNTS)


def test_a_runtime_of_the_other_engine_is_refused_and_never_ignored(monkeypatch):
    with pytest.raises(ValidationError, match="PROOFBOX_RUNTIME runsc is for the engine docker"):
        made(monkeypatch, engine="oci", runtime="runsc")
    assert made(monkeypatch, engine="docker", runtime="runsc").runtime == "runsc"


SHARED = {
    "dispatch": "nats",
    "nats_urls": "nats://one:4222,nats://two:4222",
    "database_url": "postgresql://a:b@db/proofbox",
    "s3_bucket": "files",
    "keys_dir": "/etc/proofbox/keys",
}


def test_many_processes_need_stores_that_they_share(monkeypatch):
    assert made(monkeypatch, **SHARED).is_shared
    for name in ("nats_urls", "database_url", "s3_bucket", "keys_dir"):
        with monkeypatch.context() as left_out:
            left_out.delenv(f"PROOFBOX_{name.upper()}")
            with pytest.raises(ValidationError, match=f"PROOFBOX_DISPATCH=nats needs PROOFBOX_{name.upper()}"):
                Settings()


@pytest.mark.parametrize(
    "urls", ["n1:4222", "nats://", "nats://user:password@n1", "http://n1", "nats://n1, nats://n2", "nats://n1,"]
)
def test_urls_of_nats_servers_have_no_password_and_no_other_scheme(monkeypatch, urls):
    with pytest.raises(ValidationError, match="nats_urls"):
        made(monkeypatch, **SHARED | {"nats_urls": urls})


@pytest.mark.parametrize(
    "given",
    [
        {"nats_user": "proofbox"},
        {"nats_certificate_file": "/etc/nats.pem"},
        {"nats_user": "a", "nats_password": "b", "nats_credentials_file": "/etc/nats.creds"},
        {"nats_user": "a", "nats_password": "b", "nats_token": "t"},
        {"nats_nkey_file": "/etc/nats.nk", "nats_token": "t"},
    ],
)
def test_settings_of_the_nats_user_belong_together(monkeypatch, given):
    with pytest.raises(ValidationError, match=f"PROOFBOX_{next(iter(given)).upper()}"):
        made(monkeypatch, **SHARED | given)


def test_every_setting_has_a_sentence_of_its_own():
    said = {name: field.description for name, field in Settings.model_fields.items()}
    assert [name for name, text in said.items() if not text or not text.strip().endswith(".")] == []
    assert len(set(said.values())) == len(said)


def test_settings_stand_in_the_source_once():
    sources = {
        inspect.getsource(settings): settings.Settings,
        inspect.getsource(gateway_settings): gateway_settings.GatewaySettings,
        inspect.getsource(network_settings): network_settings.NetworkSettings,
        inspect.getsource(log_settings): log_settings.LogSettings,
        inspect.getsource(dispatch_settings): dispatch_settings.DispatchSettings,
        inspect.getsource(package_settings): package_settings.PackageSettings,
    }
    bodies = [
        node.body
        for source, cls in sources.items()
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and node.name == cls.__name__
    ]
    names = [node.target.id for body in bodies for node in body if isinstance(node, ast.AnnAssign)]
    assert sorted(names) == sorted(set(names)) == sorted(Settings.model_fields)


def test_every_limit_of_a_call_is_a_setting_with_a_usable_default():
    defaults = Settings()
    limits = CallLimits(**{name: getattr(defaults, name) for name in limit_names()})
    assert all(getattr(limits, name) > 0 for name in limit_names())
    assert math.isclose(limits.out_dir_bytes, limits.memory_bytes * 0.25)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("wall_s", "60", 60.0),
        ("wall_s", "0.5", 0.5),
        ("pids", "64", 64),
        ("memory_bytes", "1073741824", 1 << 30),
        ("host", "0.0.0.0", "0.0.0.0"),
        ("runtime", "runsc", "runsc"),
        ("pool_size", "0", 0),
    ],
)
def test_the_environment_overrides_a_default(monkeypatch, name, text, value):
    assert getattr(made(monkeypatch, **{name: text}), name) == value


def test_folders_of_assets_are_given_as_a_list(monkeypatch, tmp_path):
    assert made(monkeypatch, asset_roots=f'["{tmp_path}"]').asset_roots == (tmp_path,)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("wall_s", "0"),
        ("wall_s", "-1"),
        ("wall_s", "nan"),
        ("wall_s", "soon"),
        ("port", "65536"),
        ("pids", "7"),
        ("memory_bytes", "1024"),
        ("pool_size", "-1"),
        ("running_max", "0"),
        ("asset_roots", "/folder"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_by_name(monkeypatch, name, text):
    with pytest.raises((ValidationError, ValueError), match=name):
        made(monkeypatch, **{name: text})


def test_an_unknown_setting_is_refused():
    with pytest.raises(ValidationError, match="wall_seconds"):
        Settings(wall_seconds=5)


def test_out_dir_is_at_most_half_of_the_memory(monkeypatch):
    mib = 1024 * 1024
    assert TMPFS_SHARE_OF_MEMORY == 0.5
    assert made(monkeypatch, memory_bytes=100 * mib, out_dir_bytes=50 * mib).out_dir_bytes == 50 * mib
    with pytest.raises(ValidationError) as refused:
        made(monkeypatch, out_dir_bytes=50 * mib + 1)
    assert (
        "PROOFBOX_OUT_DIR_BYTES 52428801 is over half of PROOFBOX_MEMORY_BYTES 104857600: "
        "OUT_DIR counts as memory of its sandbox"
    ) in str(refused.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"s3_endpoint": "http://s3.local"}, "PROOFBOX_S3_ENDPOINT is set and PROOFBOX_S3_BUCKET is not: set both"),
        (
            {"s3_access_key": "k", "s3_secret_key": "hush"},
            "PROOFBOX_S3_ACCESS_KEY is set and PROOFBOX_S3_BUCKET is not",
        ),
        (
            {"s3_bucket": "b", "s3_secret_key": "hush"},
            "PROOFBOX_S3_ACCESS_KEY and PROOFBOX_S3_SECRET_KEY belong",
        ),
        ({"s3_bucket": "b", "s3_prefix": "/a"}, "s3_prefix"),
        ({"s3_bucket": "b", "s3_prefix": "a/../b"}, "s3_prefix"),
        ({"s3_bucket": "b", "s3_prefix": "a//b"}, "s3_prefix"),
        ({"s3_bucket": "b", "s3_endpoint": "s3.local"}, "s3_endpoint"),
        ({"s3_bucket": "b", "link_s": "604801"}, "link_s"),
    ],
)
def test_settings_of_a_bucket_that_do_not_fit_are_named_without_the_secret(monkeypatch, given, message):
    with pytest.raises(ValidationError) as refused:
        made(monkeypatch, **given)
    assert message in str(refused.value)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize("prefix", ["", "a", "a/", "proofbox/prod-1.x"])
def test_a_prefix_may_have_segments(monkeypatch, prefix):
    assert made(monkeypatch, s3_bucket="b", s3_prefix=prefix).s3_prefix == prefix


def test_networks_and_ports_of_the_web_are_lists_and_have_to_be_what_they_say(monkeypatch):
    found = made(monkeypatch, web_allowed_networks='["10.20.0.0/16", "fd12::/16"]', web_ports="[80, 8443]")
    assert [str(network) for network in found.web_allowed_networks] == ["10.20.0.0/16", "fd12::/16"]
    assert found.web_ports == (80, 8443)
    with pytest.raises(ValidationError):
        made(monkeypatch, web_allowed_networks='["10.20.0.1/16"]')


def test_a_search_address_that_cannot_be_asked_stops_the_service_at_its_start(monkeypatch):
    assert (
        made(monkeypatch, web_search_url="http://10.0.0.7:8888/search").web_search_url
        == "http://10.0.0.7:8888/search"
    )
    with pytest.raises(ValidationError, match="no http or https address"):
        made(monkeypatch, web_search_url="searx.example")


@pytest.mark.parametrize(("given", "prefixes"), [({}, []), ({"librechat": "true"}, ["librechat-state:"])])
def test_the_states_of_librechat_are_deleted_where_it_is_on(monkeypatch, given, prefixes):
    policy = retention_policy(made(monkeypatch, **given))
    assert policy.days == 0
    assert [prefix for prefix, _ in policy.temporary] == prefixes
