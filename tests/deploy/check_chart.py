"""The Helm chart: rendered by Helm, checked by the schemas of Kubernetes, and refusing values that cannot work.

Run by `make test-deploy`.
"""

import json
import sys
import tomllib

import jsonschema
import pytest
import yaml
from deploy_programs import PROGRAMS, ROOT
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from proofbox.service.app.config.file import read_config_file
from proofbox.service.app.settings import Settings

sys.path.append(str(PROGRAMS / "python"))
import helm_python as helm

CHART = ROOT / "deploy/helm/proofbox"
SCHEMAS = PROGRAMS / "python/kubernetes_validate/kubernetes-json-schema"
FILES = {
    "ConfigMap": "configmap-v1.json",
    "Ingress": "ingress-networking-v1.json",
    "NetworkPolicy": "networkpolicy-networking-v1.json",
    "Service": "service-v1.json",
    "StatefulSet": "statefulset-apps-v1.json",
}
REMOTE = {"engine": {"mode": "remote", "remote": {"host": "tcp://engine.example.com:2376", "tlsSecret": "engine"}}}
ALL = {
    "config": {"data": {"database_url_file": "/run/secrets/proofbox/database_url"}, "pool": {"pool_size": 4}},
    "secretName": "proofbox",
    "imagePullSecrets": [{"name": "registry"}],
    "ingress": {"enabled": True, "className": "nginx", "tlsSecret": "tls", "annotations": {"a": "b"}},
    "networkPolicy": {"from": [{"namespaceSelector": {"matchLabels": {"a": "b"}}}]},
    "serviceMonitor": {"enabled": True, "keySecret": "metrics"},
    "persistence": {"storageClass": "fast"},
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "sandbox", "operator": "Exists"}],
    "affinity": {"podAntiAffinity": {}},
    "podAnnotations": {"a": "b"},
    "engine": {"sidecar": {"resources": {"limits": {"memory": "8Gi"}}}},
}


@pytest.fixture(scope="module")
def chart():
    with helm.Chart.load(CHART) as loaded:
        yield loaded


def rendered(chart, values):
    """The objects of a release, by their kinds."""
    chart.validate_schema(chart.merge_values(values))
    texts = chart.render(values, name="pbx", namespace="tools", is_install=True).values()
    found = [document for text in texts for document in yaml.safe_load_all(text) if document]
    assert len({one["kind"] for one in found}) == len(found)
    return {one["kind"]: one for one in found}


def check_schema(document, version):
    def retrieve(uri):
        return Resource.from_contents(
            json.loads((folder / uri.rpartition("/")[2]).read_text()), default_specification=DRAFT202012
        )

    folder = SCHEMAS / f"v{version}-local-strict"
    schema = json.loads((folder / FILES[document["kind"]]).read_text())
    registry = Registry(retrieve=retrieve)
    jsonschema.Draft202012Validator(schema, registry=registry).validate(document)


def pod(objects):
    return objects["StatefulSet"]["spec"]["template"]["spec"]


@pytest.mark.parametrize("version", ["1.29.0", "1.37.0"])
@pytest.mark.parametrize("values", [{}, ALL, REMOTE], ids=["default", "all", "remote"])
def test_every_object_fits_the_schema_of_kubernetes(chart, values, version):
    objects = rendered(chart, values)
    checked = [document for kind, document in objects.items() if kind != "ServiceMonitor"]  # of an operator
    assert len(checked) >= 3
    for document in checked:
        check_schema(document, version)


def test_the_check_refuses_a_misspelt_field(chart):
    document = rendered(chart, {})["StatefulSet"]
    document["spec"]["replica"] = 1
    with pytest.raises(jsonschema.ValidationError):
        check_schema(document, "1.37.0")


def test_helm_finds_nothing_to_complain_about():
    report = helm.lint(CHART, ALL, strict=True)
    assert (report["errors"], [message for message in report["messages"] if message["severity"] > 1]) == ([], [])


def test_the_services_container_has_no_rights_and_only_the_engine_is_privileged(chart):
    spec = pod(rendered(chart, ALL))
    containers = [*spec["containers"], *spec["initContainers"]]
    privileged = [one["name"] for one in containers if one["securityContext"].get("privileged")]
    assert privileged == ["engine"]
    for one in containers:
        if one["name"] not in privileged:
            context = one["securityContext"]
            assert (context["runAsNonRoot"], context["readOnlyRootFilesystem"]) == (True, True)
            assert context["capabilities"] == {"drop": ["ALL"]}
    mounts = {one["name"]: {mount["name"] for mount in one["volumeMounts"]} for one in containers}
    assert [name for name, names in mounts.items() if "engine" in names] == ["engine", "engine-proxy"]
    assert (spec["automountServiceAccountToken"], spec["enableServiceLinks"]) == (False, False)


def test_no_pod_has_an_engine_if_it_is_elsewhere(chart):
    spec = pod(rendered(chart, REMOTE))
    assert [one["name"] for one in spec["initContainers"]] == ["first-key"]
    environment = {one["name"]: one["value"] for one in spec["containers"][0]["env"]}
    assert environment["DOCKER_HOST"] == "tcp://engine.example.com:2376"
    assert environment["DOCKER_TLS_VERIFY"] == "1"


def test_the_file_of_the_release_is_a_configuration_that_the_service_takes(chart, tmp_path):
    text = rendered(chart, ALL)["ConfigMap"]["data"]["proofbox.toml"]
    (tmp_path / "database_url").write_text("postgresql://u:p@h/d")
    path = tmp_path / "proofbox.toml"
    path.write_text(text.replace("/run/secrets/proofbox", str(tmp_path)))
    found = read_config_file(path, Settings)
    assert (found.mistakes, found.values["pool_size"]) == ([], 4)
    assert tomllib.loads(rendered(chart, {})["ConfigMap"]["data"]["proofbox.toml"]) == {}


def test_the_proxy_of_the_release_is_the_one_that_is_tested(chart):
    text = rendered(chart, {})["ConfigMap"]["data"]["haproxy.cfg"]
    assert text.strip() == (ROOT / "deploy/engine-proxy/haproxy.cfg").read_text().strip()


def test_another_configuration_starts_another_pod(chart):
    first, second = (
        rendered(chart, {"config": {"pool": {"pool_size": size}}})["StatefulSet"]["spec"]["template"]["metadata"]
        for size in (1, 2)
    )
    assert first["annotations"]["checksum/config"] != second["annotations"]["checksum/config"]


@pytest.mark.parametrize(
    "values",
    [
        {"replicas": 2},
        {"engine": {"mode": "podman"}},
        {"engine": {"mode": "remote"}},
        {"sandboxImage": "debian:trixie"},
        {"config": {"pool_size": 3}},
        {"persistence": {"size": "much"}},
        {"serviceMonitor": {"enabled": True}},
        {"service": {"port": 0}},
    ],
)
def test_values_that_cannot_work_are_refused(chart, values):
    with pytest.raises(helm.HelmError):
        rendered(chart, values)
