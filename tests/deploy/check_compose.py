"""The compose file: taken by Docker Compose, with all files that it names.

Run by `make test-deploy`.
"""

import json
import os
import re
import subprocess

import pytest
import yaml
from deploy_programs import PROGRAMS, ROOT

from proofbox.service.app.config.file import read_config_file
from proofbox.service.app.settings import Settings

FOLDER = ROOT / "deploy/compose"
COMPOSE = yaml.safe_load((FOLDER / "compose.yaml").read_text())


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A copy of the folder with secrets."""
    folder = tmp_path_factory.mktemp("compose")
    (folder / "make-secrets.sh").write_bytes((FOLDER / "make-secrets.sh").read_bytes())
    subprocess.run(["bash", folder / "make-secrets.sh"], check=True, capture_output=True)
    return folder


def compose(folder, **environment):
    """What Docker Compose makes of the file of a folder: exit status and output; no engine is asked."""
    done = subprocess.run(
        [PROGRAMS / "docker-compose", "--project-directory", folder, "config", "--format", "json"],
        env={**{name: text for name, text in os.environ.items() if name != "DOCKER_GID"}, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_docker_compose_takes_it():
    status, text = compose(FOLDER, DOCKER_GID="999")
    assert status == 0, text
    taken = json.loads(text)
    assert taken["services"].keys() == COMPOSE["services"].keys()
    assert taken["services"]["engine-proxy"]["group_add"] == ["999"]


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


def test_every_file_that_is_mounted_exists():
    volumes = [volume for service in COMPOSE["services"].values() for volume in service.get("volumes", ())]
    sources = {volume.split(":")[0] for volume in volumes}
    files = {source for source in sources if source.startswith(".")}
    assert len(files) >= 6
    assert [file for file in files if not (FOLDER / file).is_file()] == []
    named = {source for source in sources if re.fullmatch(r"[a-z0-9-]+", source)}
    assert named == set(COMPOSE["volumes"])


def test_every_secret_is_made_and_used(made):
    used = {name for service in COMPOSE["services"].values() for name in service.get("secrets", ())}
    assert used == set(COMPOSE["secrets"])
    assert used == {path.name for path in (made / "secrets").iterdir()}
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


def test_the_configuration_of_its_service_is_right(made, tmp_path):
    path = tmp_path / "proofbox.toml"
    path.write_text((FOLDER / "proofbox.toml").read_text().replace("/run/secrets", str(made / "secrets")))
    assert read_config_file(path, Settings).mistakes == []


def test_nothing_listens_on_other_addresses_than_loopback():
    ports = [port for service in COMPOSE["services"].values() for port in service.get("ports", ())]
    assert len(ports) == 2
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_only_the_proxy_has_the_engines_socket_and_no_network():
    services = COMPOSE["services"].items()
    holders = [name for name, service in services if "/var/run/docker.sock" in str(service.get("volumes"))]
    assert holders == ["engine-proxy"]
    assert COMPOSE["services"]["engine-proxy"]["network_mode"] == "none"
    for name in ("proofbox", "engine-proxy"):
        service = COMPOSE["services"][name]
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
