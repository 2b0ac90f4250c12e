"""The compose files: taken by Docker Compose, alone and together, with all files that they name.

Run by `make test-deploy`; check_compose_roles.py starts what they describe.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from deploy_programs import ROOT, run_compose

from proofbox.service.app.config.check import find_mistakes
from proofbox.service.app.config.file import read_config_file
from proofbox.service.app.settings import Settings

FOLDER = ROOT / "deploy/compose"
ONE = ("compose.yaml",)
MANY = ("compose.yaml", "compose.workers.yaml")
ENGINE_FOLDER = "/run/proofbox-engine"
NATS_SERVER = Path(sys.executable).with_name("nats-server")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A copy of the folder with secrets."""
    folder = tmp_path_factory.mktemp("compose")
    (folder / "make-secrets.sh").write_bytes((FOLDER / "make-secrets.sh").read_bytes())
    subprocess.run(["bash", folder / "make-secrets.sh"], check=True, capture_output=True)
    return folder


def compose(folder, files=ONE, **environment):
    """What Docker Compose makes of files of a folder: exit status and output; no engine is asked."""
    inherited = {name: text for name, text in os.environ.items() if name != "DOCKER_GID"}
    options = [option for file in files for option in ("--file", file)]
    environment = {**inherited, **environment}
    done = run_compose(folder, *options, "config", "--format", "json", environment=environment)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module", params=[ONE, MANY], ids=["one process", "many processes"])
def taken(request):
    """What Docker Compose makes of each form."""
    return read_form(request.param)


@pytest.fixture(scope="module")
def many():
    return read_form(MANY)["services"]


def read_form(files):
    status, text = compose(FOLDER, files, DOCKER_GID="999")
    assert status == 0, text
    return json.loads(text)


def mounts_of(service, kind):
    return [volume for volume in service.get("volumes", ()) if volume["type"] == kind]


def test_docker_compose_takes_the_services_of_each_form():
    one, many = (read_form(files)["services"] for files in (ONE, MANY))
    assert one.keys() == yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"].keys()
    assert many.keys() - one.keys() == {"worker", "nats"}
    assert one["engine-proxy"]["group_add"] == many["engine-proxy"]["group_add"] == ["999"]


def test_it_names_the_variable_that_is_missing():
    status, text = compose(FOLDER)
    assert status != 0
    assert "DOCKER_GID" in text


def test_a_misspelt_condition_is_found(tmp_path):
    text = (FOLDER / "compose.yaml").read_text()
    (tmp_path / "compose.yaml").write_text(text.replace("service_started", "service_begun"))
    status, text = compose(tmp_path, DOCKER_GID="999")
    assert status != 0
    assert "depends_on.engine-proxy.condition" in text


def test_every_file_and_volume_that_is_mounted_exists(taken):
    services = taken["services"].values()
    files = {Path(volume["source"]) for service in services for volume in mounts_of(service, "bind")}
    files.remove(Path("/var/run/docker.sock"))
    assert len(files) >= 6
    assert [file for file in files if not file.is_file()] == []
    named = {volume["source"] for service in services for volume in mounts_of(service, "volume")}
    assert named == set(taken["volumes"])


def test_every_secret_is_made_and_used(made):
    names = set()
    for files in (ONE, MANY):
        form = read_form(files)
        used = {secret["source"] for service in form["services"].values() for secret in service.get("secrets", ())}
        assert used == set(form["secrets"])
        names |= used
    assert names == {path.name for path in (made / "secrets").iterdir()}
    empty = {path.name for path in (made / "secrets").iterdir() if not path.stat().st_size}
    assert empty == {"metrics_key"}  # the service makes it
    assert (made / "secrets").stat().st_mode & 0o077 == 0


def test_secrets_stay_when_they_are_made_again(made):
    before = {path.name: path.read_bytes() for path in (made / "secrets").iterdir()}
    subprocess.run(["bash", made / "make-secrets.sh"], check=True, capture_output=True)
    assert {path.name: path.read_bytes() for path in (made / "secrets").iterdir()} == before
    assert len(set(before.values())) == len(before)
    identity = json.loads(before["s3_identities"])["identities"][0]["credentials"][0]
    assert identity["accessKey"] == before["s3_access_key"].decode().strip()
    assert identity["secretKey"] == before["s3_secret_key"].decode().strip()
    assert f'"{before["nats_password"].decode().strip()}"' in before["nats_user"].decode()


@pytest.fixture
def configuration(made, tmp_path):
    """The configuration file, with the secrets of the copy."""
    path = tmp_path / "proofbox.toml"
    path.write_text((FOLDER / "proofbox.toml").read_text().replace("/run/secrets", str(made / "secrets")))
    return path


def test_the_configuration_of_its_service_is_right(configuration):
    assert read_config_file(configuration, Settings).mistakes == []


@pytest.mark.parametrize("name", ["proofbox", "worker"])
def test_the_settings_of_each_role_are_right(many, configuration, made, name):
    environment = {
        variable: text.replace("/run/secrets", str(made / "secrets"))
        for variable, text in many[name]["environment"].items()
    }
    environment["PROOFBOX_CONFIG"] = str(configuration)
    assert find_mistakes(environment) == []
    del environment["PROOFBOX_NATS_URLS"]
    assert [mistake.setting for mistake in find_mistakes(environment)] != []


def test_the_roles_differ_in_nothing_else_than_their_place(many):
    api, worker = (dict(many[name]) for name in ("proofbox", "worker"))
    roles = [service["environment"].pop("PROOFBOX_ROLE") for service in (api, worker)]
    assert roles == ["api", "worker"]
    own = {"volumes", "ports", "deploy", "depends_on"}
    assert {name for name in {*api, *worker} if api.get(name) != worker.get(name)} == own
    assert worker["deploy"]["replicas"] > 1
    shared = [volume["source"] for volume in mounts_of(api, "volume")]
    assert shared == ["data"]
    # The image has a folder for temporary files: another one in each container.
    assert "/var/lib/proofbox" not in [volume["target"] for volume in [*api["volumes"], *worker["volumes"]]]


def test_the_servers_of_nats_take_their_configuration(made, tmp_path):
    (tmp_path / "nats.conf").write_bytes((FOLDER / "nats.conf").read_bytes())
    command = [NATS_SERVER, "-t", "-c", tmp_path / "nats.conf"]
    without_user = subprocess.run(command, capture_output=True, text=True, check=False)
    assert without_user.returncode != 0
    (tmp_path / "user.conf").write_bytes((made / "secrets/nats_user").read_bytes())
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_nothing_listens_on_other_addresses_than_loopback(taken):
    ports = {name: service["ports"] for name, service in taken["services"].items() if service.get("ports")}
    assert ports.keys() == {"proofbox", "grafana"}
    assert {port["host_ip"] for published in ports.values() for port in published} == {"127.0.0.1"}


def test_only_the_proxy_has_the_engines_socket_and_only_what_runs_calls_has_the_proxys(taken):
    services = taken["services"]

    def holders(part):
        return {name for name, service in services.items() if part in str(service.get("volumes"))}

    assert holders("/var/run/docker.sock") == {"engine-proxy"}
    assert holders(ENGINE_FOLDER) == {"engine-proxy", "worker" if "worker" in services else "proofbox"}
    assert services["engine-proxy"]["network_mode"] == "none"
    assert ("engine-proxy" in services["proofbox"]["depends_on"]) != ("worker" in services)


def test_processes_have_no_rights(taken):
    ours = {"proofbox", "engine-proxy", "worker", "nats"} & taken["services"].keys()
    for name in ours:
        service = taken["services"][name]
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert not service.get("privileged")
        assert not service.get("cap_add")
