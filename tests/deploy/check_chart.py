"""The Helm chart: rendered by Helm, checked by the schemas of Kubernetes, and refusing values that cannot work.

Run by `make test-deploy`.
"""

import json
import subprocess
import sys
import tomllib

import jsonschema
import pytest
import yaml
from deploy_programs import PROGRAMS, ROOT
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from proofbox.service.app.config.check import find_mistakes
from proofbox.service.app.config.file import read_config_file
from proofbox.service.app.settings import Settings

sys.path.append(str(PROGRAMS / "python"))
import helm_python as helm

CHART = ROOT / "deploy/helm/proofbox"
SCHEMAS = PROGRAMS / "python/kubernetes_validate/kubernetes-json-schema"
FILES = {
    "ConfigMap": "configmap-v1.json",
    "Deployment": "deployment-apps-v1.json",
    "Job": "job-batch-v1.json",
    "Ingress": "ingress-networking-v1.json",
    "NetworkPolicy": "networkpolicy-networking-v1.json",
    "PodDisruptionBudget": "poddisruptionbudget-policy-v1.json",
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
NATS = {
    "dispatch": {
        "mode": "nats",
        "nats": {"urls": "nats://n1:4222,nats://n2:4222", "prefix": "tools"},
        "keysSecret": "keys",
        "worker": {"slots": 12},
    },
    "config": {
        "data": {"database_url_file": "/run/secrets/proofbox/database_url"},
        "bucket": {"s3_bucket": "files"},
    },
    "secretName": "proofbox",
    "serviceMonitor": {"enabled": True, "keySecret": "metrics"},
}
SCALING = {"enabled": True, "monitoring": "nats.nats.svc:8222", "workersMax": 50, "callsPerWorker": 9}
SCALED = {**NATS, "dispatch": {**NATS["dispatch"], "autoscaling": SCALING}}
OF_OPERATORS = {"ScaledObject", "ServiceMonitor"}


@pytest.fixture(scope="module")
def chart():
    with helm.Chart.load(CHART) as loaded:
        yield loaded


def documents(chart, values):
    """The objects of a release, by kind and name."""
    chart.validate_schema(chart.merge_values(values))
    texts = chart.render(values, name="pbx", namespace="tools", is_install=True).values()
    found = [document for text in texts for document in yaml.safe_load_all(text) if document]
    named = {(one["kind"], one["metadata"]["name"]): one for one in found}
    assert len(named) == len(found)
    return named


def rendered(chart, values):
    """The objects of a release of one pod, by their kinds."""
    found = documents(chart, values)
    assert len({kind for kind, _ in found}) == len(found)
    return {kind: one for (kind, _), one in found.items()}


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
@pytest.mark.parametrize(
    "values",
    [{}, ALL, REMOTE, NATS, SCALED, {**SCALED, **REMOTE}],
    ids=["default", "all", "remote", "nats", "scaled", "nats-remote"],
)
def test_every_object_fits_the_schema_of_kubernetes(chart, values, version):
    objects = documents(chart, values)
    checked = [document for (kind, _), document in objects.items() if kind not in OF_OPERATORS]
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
        {"dispatch": {"mode": "kafka"}},
        {"dispatch": {"mode": "nats", "keysSecret": "keys"}},
        {"dispatch": {"mode": "nats", "nats": {"urls": "nats://n1:4222"}}},
        {"dispatch": {**NATS["dispatch"], "nats": {"urls": "http://n1:4222"}}},
        {"dispatch": {**NATS["dispatch"], "autoscaling": {"enabled": True}}},
        {"dispatch": {**SCALED["dispatch"], "worker": {"slots": 8}}},
        {
            "dispatch": {
                **SCALED["dispatch"],
                "autoscaling": {**SCALED["dispatch"]["autoscaling"], "workersMin": 99},
            }
        },
    ],
)
def test_values_that_cannot_work_are_refused(chart, values):
    with pytest.raises(helm.HelmError):
        documents(chart, values)


# ---- many machines ----


def deployed(objects, role):
    return objects["Deployment", f"pbx-{role}"]["spec"]["template"]


def environment_of(pod):
    [process] = [one for one in pod["spec"]["containers"] if one["name"] == "proofbox"]
    return {one["name"]: one["value"] for one in process["env"]}


def test_api_pods_have_no_engine_and_workers_have_one(chart):
    objects = documents(chart, NATS)
    assert ("StatefulSet", "pbx") not in objects
    api, worker = (deployed(objects, role)["spec"] for role in ("api", "worker"))
    assert [one["name"] for one in api["initContainers"]] == ["keys"]
    assert [one["name"] for one in worker["initContainers"]] == ["keys", "engine", "engine-proxy"]
    assert all("hostPath" not in volume for volume in [*api["volumes"], *worker["volumes"]])


def test_clients_reach_api_pods_only_and_prometheus_all(chart):
    objects = documents(chart, NATS)
    labels = {role: deployed(objects, role)["metadata"]["labels"] for role in ("api", "worker")}

    def chosen(service):
        selector = objects["Service", service]["spec"]["selector"].items()
        return [role for role, own in labels.items() if selector <= own.items()]

    assert (chosen("pbx"), chosen("pbx-worker")) == (["api"], ["worker"])
    monitored = objects["ServiceMonitor", "pbx"]["spec"]["selector"]["matchLabels"].items()
    services = [one for (kind, _), one in objects.items() if kind == "Service"]
    assert all(monitored <= one["metadata"]["labels"].items() for one in services)
    for role in ("api", "worker"):
        matched = objects["Deployment", f"pbx-{role}"]["spec"]["selector"]["matchLabels"].items()
        assert [name for name, own in labels.items() if matched <= own.items()] == [role]


def test_the_processes_get_settings_that_fit_together(chart, tmp_path):
    objects = documents(chart, NATS)
    (tmp_path / "database_url").write_text("postgresql://u:p@h/d")
    path = tmp_path / "proofbox.toml"
    text = objects["ConfigMap", "pbx"]["data"]["proofbox.toml"]
    path.write_text(text.replace("/run/secrets/proofbox", str(tmp_path)))
    for role in ("api", "worker"):
        environment = {**environment_of(deployed(objects, role)), "PROOFBOX_CONFIG": str(path)}
        assert (environment["PROOFBOX_ROLE"], environment["PROOFBOX_NATS_PREFIX"]) == (role, "tools")
        given = {name: value for name, value in environment.items() if name.startswith("PROOFBOX_")}
        assert [mistake.sentence for mistake in find_mistakes(given)] == []


def test_keys_that_the_pods_share_can_be_read_by_the_service_alone(chart, tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    target.mkdir()
    for name in ("gateway-key", "link-keys.json"):
        (source / name).write_text(name)
        (source / name).chmod(0o440)  # as a volume of a Secret has it
    pod = deployed(documents(chart, NATS), "api")["spec"]
    [keys] = [one for one in pod["initContainers"] if one["name"] == "keys"]
    shell, flags, script = keys["command"]
    for path, folder in (("/run/secrets/proofbox-keys", source), ("/run/proofbox-keys", target)):
        assert path in {mount["mountPath"] for mount in keys["volumeMounts"]}
        script = script.replace(path, str(folder))
    subprocess.run([shell, flags, script], check=True)
    assert {path.name: path.stat().st_mode & 0o077 for path in target.iterdir()} == {
        "gateway-key": 0,
        "link-keys.json": 0,
    }
    [process] = pod["containers"]
    [mount] = [one for one in process["volumeMounts"] if one["name"] == "keys"]
    assert environment_of({"spec": pod})["PROOFBOX_KEYS_DIR"] == mount["mountPath"]


def test_a_worker_that_is_removed_may_end_its_calls(chart):
    pod = deployed(documents(chart, NATS), "worker")
    environment = environment_of(pod)
    assert environment["PROOFBOX_RUNNING_MAX"] == "12"
    assert pod["spec"]["terminationGracePeriodSeconds"] > float(environment["PROOFBOX_SHUTDOWN_GRACE_S"]) == 600


def test_api_pods_take_requests_until_the_service_sends_none_and_go_one_by_one(chart):
    objects = documents(chart, NATS)
    pods = {role: deployed(objects, role) for role in ("api", "worker")}
    [process] = pods["api"]["spec"]["containers"]
    [program, seconds] = process["lifecycle"]["preStop"]["exec"]["command"]
    assert (program, int(seconds) < pods["api"]["spec"]["terminationGracePeriodSeconds"]) == ("sleep", True)
    for role, pod in pods.items():
        budget = objects["PodDisruptionBudget", f"pbx-{role}"]["spec"]
        chosen = budget["selector"]["matchLabels"].items()
        assert [one for one in pods if chosen <= pods[one]["metadata"]["labels"].items()] == [role]
        assert budget["maxUnavailable"] == 1
        [process] = [one for one in pod["spec"]["containers"] if one["name"] == "proofbox"]
        assert process["startupProbe"]["failureThreshold"] == 3600  # or a long migration would never end
    assert not any(kind == "PodDisruptionBudget" for kind, _ in documents(chart, {}))


def test_workers_are_scaled_by_the_calls_that_wait_or_run(chart):
    objects = documents(chart, SCALED)
    spec = objects["ScaledObject", "pbx-worker"]["spec"]
    target = spec["scaleTargetRef"]
    worker = objects[target["kind"], target["name"]]
    assert worker["apiVersion"] == target["apiVersion"]
    assert "replicas" not in worker["spec"]  # or each upgrade would set it back
    assert objects["Deployment", "pbx-api"]["spec"]["replicas"] == 2
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (1, 50)
    [trigger] = spec["triggers"]
    assert trigger["type"] == "nats-jetstream"
    assert all(isinstance(value, str) for value in trigger["metadata"].values())  # KEDA takes nothing else
    assert trigger["metadata"]["natsServerMonitoringEndpoint"] == "nats.nats.svc:8222"
    assert trigger["metadata"]["lagThreshold"] == "9"
    assert ("ScaledObject", "pbx-worker") not in documents(chart, NATS)


def test_the_first_key_is_made_once_by_a_job(chart):
    objects = documents(chart, NATS)
    spec = objects["Job", "pbx-first-key"]["spec"]["template"]["spec"]
    [container] = spec["containers"]
    assert "proofbox keys create --name first --json >/var/lib/proofbox/first-key.json" in container["args"][0]
    assert ("Job", "pbx-first-key") not in documents(chart, {})
    texts = chart.render(NATS, name="pbx", namespace="tools", is_upgrade=True).values()
    assert not any("kind: Job" in text for text in texts)  # an upgrade of a Job would be refused
