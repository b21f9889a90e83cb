# SPDX-License-Identifier: Apache-2.0
"""deploy/kubernetes and deploy/helm: rendered by kubectl and helm, checked against schemas, compared with each other, and
their flags and probes tried on a server. No cluster runs here."""

import copy
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

import grpc
import pytest
import yaml
from grpc_health.v1 import health_pb2, health_pb2_grpc

import http_requests
import manifests
from harness import settings
from harness.server import wait_until
from manifests import CHART, DEPLOY, flags, named, pod

OVERLAYS = ("cpu", "gpu")
# Kustomize may add no label with the version, and Helm adds its own. The annotations are for Helm.
HELM_KEYS = ("app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by", "annotations")


@pytest.mark.parametrize("folder", ["overlays/cpu", "overlays/gpu", "kserve"])
def test_kustomize_follows_schemas(kustomize, tools, folder):
    items = kustomize(folder)
    assert len(items) > 1
    for item in items:
        manifests.check_schema(item, tools / "models")


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_chart_follows_schemas(charts, tools, overlay):
    for item in charts[overlay]:
        manifests.check_schema(item, tools / "models")


def test_schemas_find_mistakes(kustomize, tools):
    """One misspelt field in each kind of object."""
    for item in [*kustomize("overlays/cpu"), *kustomize("overlays/gpu"), *kustomize("kserve")]:
        broken = copy.deepcopy(item)
        broken["spec" if "spec" in item else "metadata"]["misspelt"] = 1
        with pytest.raises(Exception):
            manifests.check_schema(broken, tools / "models")


def comparable(items):
    """{(kind, name): object} without what Helm alone adds, and with flags in one order."""
    def plain(value):
        if isinstance(value, dict):
            return {key: plain(inner) for key, inner in value.items()
                    if key not in HELM_KEYS and key not in ("namespace", "imagePullPolicy")}
        return [plain(inner) for inner in value] if isinstance(value, list) else value
    found = {}
    for item in map(plain, items):
        if item["kind"] == "Deployment":
            for container in pod(item)["containers"]:
                container["args"].sort()
        found[item["kind"], item["metadata"]["name"]] = item
    return found


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_chart_says_what_the_overlay_says(kustomize, charts, overlay):
    ours, theirs = comparable(kustomize(f"overlays/{overlay}")), comparable(charts[overlay])
    assert set(ours) == set(theirs)
    for key, item in ours.items():
        assert theirs[key] == item, key


def test_releases_scale_by_their_own_queues(tools):
    """Two releases that one Prometheus watches."""
    for name, namespace in (("one", "a"), ("two", "b")):
        items = manifests.objects(tools / "helm", "template", name, CHART, f"--namespace={namespace}",
                                  "--set=autoscaling.kind=keda")
        for trigger in named(items, "ScaledObject", name)["spec"]["triggers"]:
            query = trigger["metadata"]["query"]
            assert query.count(f'{{namespace="{namespace}",service="{name}"') == query.count("{") > 0, query
        assert named(items, "Service", name)["spec"]["selector"]["app.kubernetes.io/instance"] == name


def test_models_outlive_the_release(helm):
    """Helm deletes what a release has no more, after `helm uninstall` or where a value changes."""
    claim = named(helm(), "PersistentVolumeClaim", "attendant-models")
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_rules_of_the_cluster_are_those_of_prometheus(charts):
    files = sorted((DEPLOY / "observability/rules").glob("*.yml"))
    groups = [group for path in files for group in yaml.safe_load(path.read_text())["groups"]]
    assert {group["name"] for group in groups} == {"attendant.alerts", "attendant.recording"}
    assert named(charts["cpu"], "PrometheusRule")["spec"]["groups"] == groups
    subprocess.run([sys.executable, DEPLOY / "observability/make_prometheusrule.py", "--check"], check=True)


def test_rollout_needs_no_spare_gpu(kustomize):
    assert named(kustomize("overlays/gpu"), "Deployment")["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == 0


def test_environment_and_registry(helm, tools):
    items = helm("--set=env[0].name=OTEL_EXPORTER_OTLP_ENDPOINT,env[0].value=http://collector:4318",
                 "--set=imagePullSecrets[0].name=registry", "--set-json=networkPolicy.egress=[{}]")
    for item in items:
        manifests.check_schema(item, tools / "models")
    spec = pod(named(items, "Deployment"))
    assert spec["containers"][0]["env"] == [{"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://collector:4318"}]
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    assert named(items, "NetworkPolicy")["spec"]["egress"] == [{}]


def test_labels_of_monitors(helm):
    items = helm("--set=monitoring.labels.release=stack")
    labelled = [item["kind"] for item in items if item["metadata"]["labels"].get("release") == "stack"]
    assert sorted(labelled) == ["PrometheusRule", "ServiceMonitor"]
    assert "PrometheusRule" not in {item["kind"] for item in helm("--set=monitoring.rules=false")}


def test_chart_refuses_unknown_values(tools):
    for values in ("autoscaling.kind=knative", "resourses.limits=1", "flags.log_format[0]=json", "secrets[0].name=keys"):
        ran = subprocess.run([tools / "helm", "template", "attendant", CHART, "--set", values], capture_output=True)
        assert ran.returncode != 0, values
    subprocess.run([tools / "helm", "lint", "--strict", CHART], check=True)


def test_flags_may_be_numbers_and_booleans(helm, tmp_path):
    values = tmp_path / "values.yaml"
    values.write_text("flags: {max_request_bytes: 2147483648, access_log_sample: 0.25, strict_readiness: on}")
    given = flags(pod(named(helm(f"--values={values}", "--set=flags.max_model_bytes=2147483648"), "Deployment"))
                  ["containers"][0]["args"])
    assert given["max_model_bytes"] == given["max_request_bytes"] == "2147483648"
    assert given["access_log_sample"] == "0.25" and given["strict_readiness"] == "on"


def test_chart_without_its_options(helm):
    items = helm("--set=autoscaling.kind=none,gateway.enabled=false,monitoring.enabled=false,networkPolicy.enabled=false")
    assert {item["kind"] for item in items} == {
        "Deployment", "Service", "ServiceAccount", "PodDisruptionBudget", "PersistentVolumeClaim"}
    assert named(items, "Deployment")["spec"]["replicas"] == 2


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_parts_fit_together(kustomize, overlay):
    items = kustomize(f"overlays/{overlay}")
    deployment = named(items, "Deployment")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    selector = {"app.kubernetes.io/name": "attendant"}
    assert deployment["spec"]["selector"]["matchLabels"] == selector and selector.items() <= labels.items()
    server, = pod(deployment)["containers"]
    ports = {port["name"]: port["containerPort"] for port in server["ports"]}
    assert ports == {name: int(flags(manifests.entry_point())[flag].rpartition(":")[2])
                     for name, flag in (("grpc", "listen"), ("http", "http_listen"))}
    for name in ("attendant", "attendant-headless"):
        service = named(items, "Service", name)["spec"]
        assert service["selector"] == selector
        assert all(port["port"] == ports[port["targetPort"]] for port in service["ports"])
    assert named(items, "Service", "attendant-headless")["spec"]["clusterIP"] == "None"
    rules = named(items, "GRPCRoute")["spec"]["rules"]
    assert all(rule["backendRefs"] == [{"name": "attendant", "port": ports["grpc"]}] for rule in rules)
    assert {match["method"]["service"] for rule in rules for match in rule["matches"]} == routed_services()
    for kind in ("PodDisruptionBudget", "ServiceMonitor"):
        assert named(items, kind)["spec"]["selector"]["matchLabels"] == selector
    assert {item["metadata"].get("namespace") for item in items} == {"attendant"}
    scaler = named(items, "HorizontalPodAutoscaler" if overlay == "cpu" else "ScaledObject")["spec"]
    assert scaler["scaleTargetRef"]["name"] == "attendant" and "replicas" not in deployment["spec"]


def routed(rules, path, method):
    """Whether an HTTPRoute passes a request."""
    def fits(match):
        value = match["path"]["value"]
        below = match["path"]["type"] == "PathPrefix" and path.startswith(value + "/")
        return (path == value or below) and match.get("method", method) == method
    return any(fits(match) for rule in rules for match in rule["matches"])


def test_http_route_passes_the_protocols_only(kustomize, start_server):
    rules = named(kustomize("overlays/cpu"), "HTTPRoute")["spec"]["rules"]
    assert all(rule["backendRefs"] == [{"name": "attendant", "port": 8002}] for rule in rules)
    server = start_server({"tiny": settings.TINY_MODEL}).wait_ready()
    assert not [request for request in http_requests.of_protocols(server) if not routed(rules, *request)]
    assert not [request for request in http_requests.HIDDEN if routed(rules, *request)]


def test_volume_is_filled_by_the_servers_user(kustomize):
    fill, = manifests.objects("cat", DEPLOY / "kubernetes/overlays/cpu/fill.yaml")
    manifests.check_schema(fill, None)
    server = pod(named(kustomize("overlays/cpu"), "Deployment"))
    assert fill["spec"]["securityContext"] == server["securityContext"]
    assert fill["spec"]["containers"][0]["securityContext"] == server["containers"][0]["securityContext"]
    claim, = (item for item in kustomize("overlays/cpu") if item["kind"] == "PersistentVolumeClaim")
    assert fill["spec"]["volumes"][0]["persistentVolumeClaim"] == {"claimName": claim["metadata"]["name"]}
    page = (DEPLOY / "kubernetes/README.md").read_text()
    assert f"attendant/{fill['metadata']['name']}:/models/." in page


def routed_services():
    """The services of proto/ but reflection, which tools use and clients need not."""
    texts = [path.read_text() for path in (settings.ROOT / "proto").rglob("*.proto")]
    names = {f"{re.search(r'^package (.+);', text, re.MULTILINE)[1]}.{service}"
             for text in texts for service in re.findall(r"^service (\w+)", text, re.MULTILINE)}
    return names - {"grpc.reflection.v1alpha.ServerReflection"}


def servers(kustomize):
    """(name, pod, container) of each server that deploy/kubernetes describes."""
    for overlay in OVERLAYS:
        spec = pod(named(kustomize(f"overlays/{overlay}"), "Deployment"))
        yield overlay, spec, spec["containers"][0]
    spec = named(kustomize("kserve"), "ServingRuntime")["spec"]
    yield "kserve", {"terminationGracePeriodSeconds": 30, **spec}, spec["containers"][0]  # Kubernetes' default


def test_memory_is_what_the_flags_sum_up_to(kustomize):
    for name, _, container in servers(kustomize):
        limits = container["resources"]["limits"]
        needed = manifests.needed_bytes(container["args"], int(limits["cpu"]))
        limit = manifests.bytes_of(limits["memory"])
        assert 0.9 * limit < needed <= limit, f"{name}: {needed >> 20} MiB of {limit >> 20} MiB"


def test_time_to_drain(kustomize):
    for name, spec, container in servers(kustomize):
        given = flags(container["args"])
        delay, timeout = int(given["drain_delay_s"]), int(given["drain_timeout_s"])
        assert delay + timeout < spec["terminationGracePeriodSeconds"], name
        probe = container["readinessProbe"]
        assert delay >= probe["periodSeconds"] * probe.get("failureThreshold", 3), name  # Kubernetes' default


def test_containers_are_confined(kustomize):
    for overlay in OVERLAYS:
        spec = pod(named(kustomize(f"overlays/{overlay}"), "Deployment"))
        assert spec["securityContext"]["runAsNonRoot"] and not spec["automountServiceAccountToken"]
        for container in [*spec["containers"], *spec.get("initContainers", ())]:
            confined = container["securityContext"]
            assert confined["readOnlyRootFilesystem"] and not confined["allowPrivilegeEscalation"]
            assert confined["capabilities"] == {"drop": ["ALL"]}
            assert container["image"].endswith(":" + manifests.version())


def health(target, service=""):
    with grpc.insecure_channel(target) as channel:
        return health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=service), timeout=60).status


def answers(server, http_get):
    """Whether a page is there. The kubelet checks no certificate."""
    url = f"{http_get.get('scheme', 'HTTP').lower()}://{server.http}{http_get['path']}"
    unchecked = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(url, timeout=60, context=unchecked) as answer:
            return answer.status == 200
    except urllib.error.HTTPError:
        return False


def try_probes(server, container):
    """The probes of a container, as the kubelet makes them."""
    assert "startupProbe" not in container, "it would end a pod whose model loads slowly"
    for name in ("readinessProbe", "livenessProbe"):
        probe = container[name]
        if "grpc" in probe:
            wait_until(name, 60, lambda: health(server.grpc) == health_pb2.HealthCheckResponse.SERVING)
        else:
            wait_until(name, 60, lambda: answers(server, probe["httpGet"]))


def local(arguments, *own):
    """Flags of a container for this machine: folders and ports of its own, and no GPU."""
    dropped = ("--listen", "--http_listen", "--model_repository", "--backend", "--model=")
    return [*own, *(argument for argument in arguments if not argument.startswith(dropped)), "--drain_delay_s=1"]


@pytest.fixture
def repository(tmp_path):
    """A folder of models with the tiny one."""
    folder = tmp_path / "models"
    shutil.copytree(settings.TINY_MODEL, folder / "tiny")
    return folder


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_server_takes_the_flags_and_answers_the_probes(kustomize, start_server, repository, overlay):
    container = pod(named(kustomize(f"overlays/{overlay}"), "Deployment"))["containers"][0]
    server = start_server({}, *local(
        [*manifests.entry_point(), *container["args"]], f"--model_repository={repository}")).wait_ready()
    try_probes(server, container)
    assert health(server.grpc, "tiny") == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.parametrize("http_tls", ["off", "on"])
def test_chart_with_certificates_and_keys(helm, tools, start_server, repository, tmp_path, http_tls):
    """A Secret is mounted where the flags look for its files, and the probes pass."""
    items = helm(f"--set=flags.tls_cert=/files/tls.crt,flags.tls_key=/files/tls.key,flags.http_tls={http_tls},"
                 "flags.api_keys=/files/keys,secrets[0].name=access,secrets[0].mountPath=/files")
    for item in items:
        manifests.check_schema(item, tools / "models")
    spec = pod(named(items, "Deployment"))
    container, = spec["containers"]
    mount, = (mount for mount in container["volumeMounts"] if mount["mountPath"] == "/files")
    volume, = (volume for volume in spec["volumes"] if volume["name"] == mount["name"])
    assert mount["readOnly"] and volume["secret"] == {"secretName": "access"}
    assert all("appProtocol" not in port for port in named(items, "Service")["spec"]["ports"])
    scrape, = named(items, "ServiceMonitor")["spec"]["endpoints"]
    assert scrape.get("scheme", "http") == ("https" if http_tls == "on" else "http")
    files = tmp_path / "files"
    files.mkdir()
    (files / "keys").write_text("infer-key-0123456789 search infer\n")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-subj", "/CN=attendant", "-keyout", files / "tls.key", "-out", files / "tls.crt"],
                   check=True, capture_output=True)
    given = [argument.replace("/files", str(files)) for argument in container["args"]]
    try_probes(start_server({}, *local(given, f"--model_repository={repository}")), container)


def test_chart_refuses_probes_without_a_certificate(tools):
    ran = subprocess.run([tools / "helm", "template", "attendant", CHART, "--set",
                          "flags.tls_cert=/a,flags.http_tls=on,flags.tls_client_ca=/b"], capture_output=True, text=True)
    assert ran.returncode != 0 and "tls_client_ca" in ran.stderr


def test_kserve_runtime(kustomize, start_server):
    container = named(kustomize("kserve"), "ServingRuntime")["spec"]["containers"][0]
    assert container["command"] == ["attendant-server"]
    server = start_server({"minilm": settings.TINY_MODEL}, *local(container["args"])).wait_ready()
    try_probes(server, container)
    ports = {flags(container["args"])[name].rpartition(":")[2] for name in ("listen", "http_listen")}
    assert ports == {str(container["ports"][0]["containerPort"]), str(container["livenessProbe"]["httpGet"]["port"])}
    assert named(kustomize("kserve"), "InferenceService", "minilm")["spec"]["predictor"]["model"]["runtime"] == "attendant"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_models_are_copied_by_a_user_without_rights(kustomize):
    """An emptyDir belongs to root; fsGroup lets the user write into it."""
    spec = pod(named(kustomize("overlays/gpu"), "Deployment"))
    user = spec["securityContext"]["runAsUser"]
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        folder.chmod(0o755)
        shutil.copytree(settings.TINY_MODEL, folder / "models/tiny")
        out = folder / "out"
        out.mkdir()
        os.chown(out, 0, spec["securityContext"]["fsGroup"])
        out.chmod(0o2777)
        paths = {"/models/.": f"{folder}/models/.", "/out": out}
        subprocess.run([paths.get(word, word) for word in spec["initContainers"][0]["command"]], check=True,
                       user=user, group=user, extra_groups=[spec["securityContext"]["fsGroup"]])
        assert {path.name for path in (out / "tiny").iterdir()} == {path.name for path in settings.TINY_MODEL.iterdir()}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file system read-only")
def test_runs_on_a_read_only_root(kustomize, start_server, repository, tmp_path_factory):
    container = pod(named(kustomize("overlays/cpu"), "Deployment"))["containers"][0]
    server = start_server({}, *local(container["args"], f"--model_repository={repository}"),
                          prefix=read_only_root(tmp_path_factory.getbasetemp())).wait_ready()
    try_probes(server, container)
    touched = subprocess.run(["nsenter", f"--target={server.pid}", "--mount", "touch", settings.ROOT / "touched"],
                             capture_output=True, text=True)
    assert "Read-only file system" in touched.stderr


def file_systems():
    """Where file systems are mounted, without those of the kernel: a source tree or a home may be one of its own."""
    lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    places = [re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), line.split()[4]) for line in lines]
    return [place for place in places if not re.match(r"/(dev|proc|sys)(/|$)", place)]


def read_only_root(folder):
    """Runs a command in a mount namespace where all but `folder`, for the file with the ports, is read-only."""
    # A place that another mount hides cannot be reached, so it need not change.
    script = ('mount --bind "$0" "$0" && mount -o remount,ro,bind / && '
              'while [ "$1" != -- ]; do mount -o remount,ro,bind "$1" 2>/dev/null; shift; done; shift; exec "$@"')
    return ["unshare", "--mount", "sh", "-c", script, folder, *file_systems(), "--"]
