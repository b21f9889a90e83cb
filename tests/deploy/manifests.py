# SPDX-License-Identifier: Apache-2.0
"""Reads what deploy/ describes: the objects of Kustomize and Helm, their containers and flags, and schemas for them."""

import ast
import importlib.util
import os
import pathlib
import re
import subprocess

import kubernetes_validate
import yaml
from cloudcoil.models.keda import v1alpha1 as keda
from cloudcoil.models.prometheus_operator import v1 as prometheus_operator

from harness import settings

DEPLOY = settings.ROOT / "deploy"
CHART = DEPLOY / "helm/attendant"
KUBERNETES_VERSIONS = ("1.29", "1.37")
CUSTOM = {"ScaledObject": keda.ScaledObject, "ServiceMonitor": prometheus_operator.ServiceMonitor,
          "PrometheusRule": prometheus_operator.PrometheusRule}
UNITS = {"Mi": 1 << 20, "Gi": 1 << 30}


def version():
    """The one place: project() of the root's CMakeLists.txt."""
    return re.search(r"project\(attendant VERSION ([\d.]+)", (settings.ROOT / "CMakeLists.txt").read_text()).group(1)


def schema_python(*arguments):
    """The end of a run of Python with what schema_requirements.txt lists."""
    requirements = pathlib.Path(__file__).parent / "schema_requirements.txt"
    return subprocess.run([settings.ROOT / "tests/integration/python.sh", *arguments], capture_output=True, text=True,
                          env={**os.environ, "ATTENDANT_REQUIREMENTS": str(requirements)}, check=False)


def objects(*command):
    """The objects that a program writes as YAML."""
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [item for item in yaml.safe_load_all(text) if item]


def named(items, kind, name="attendant"):
    found, = (item for item in items if item["kind"] == kind and item["metadata"]["name"] == name)
    return found


def pod(deployment):
    return deployment["spec"]["template"]["spec"]


def entry_point():
    """The image's own flags."""
    line = re.search(r"^ENTRYPOINT (\[.*\])$", (settings.ROOT / "Dockerfile").read_text(), re.MULTILINE).group(1)
    program, *flags = ast.literal_eval(line)
    assert program == "attendant-server"
    return flags


def flags(arguments):
    """{name: value}; the last use of a flag wins."""
    return dict(argument.removeprefix("--").split("=", 1) for argument in arguments)


def bytes_of(quantity):
    return int(quantity[:-2]) * UNITS[quantity[-2:]]


def needed_bytes(arguments, cpus):
    """What a server with these flags takes at most on so many processors: the sum of docs/limits.md, and
    --max_model_bytes. Fewer than eight processors make one replica."""
    assert cpus < 8
    spec = importlib.util.spec_from_file_location("make_reference", settings.ROOT / "docs/make_reference.py")
    make_reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_reference)
    page = subprocess.run([settings.bin_dir() / "attendant-server", "--help_markdown"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    given = flags(arguments)
    for name, value in given.items():
        if value.isdigit():
            page, changed = re.subn(rf"(\| `--{name} \w+` \| `)\d+(` \|)", rf"\g<1>{value}\g<2>", page)
            assert changed == 1, f"--{name} is no flag with a number"
    total = re.search(r"\| all, without models \| \| ([\d,]+) \|", make_reference.memory_section(page, cpus)).group(1)
    return (int(total.replace(",", "")) << 20) + int(given["max_model_bytes"])


def check_schema(item, kserve_models):
    """Raises where an object of a cluster has a field that its kind does not have, or one of the wrong type."""
    kind, group = item["kind"], item["apiVersion"].split("/")[0]
    if kind in CUSTOM:
        model = CUSTOM[kind].model_validate(item).model_dump(by_alias=True, exclude_unset=True, mode="json")
        assert_same(item, model, kind)
    elif group == "gateway.networking.k8s.io":
        check_route(item)
    elif group == "serving.kserve.io":
        check_kserve(item, "V1alpha1ServingRuntime" if kind == "ServingRuntime" else "V1beta1InferenceService",
                     kserve_models)
    else:
        for kubernetes in KUBERNETES_VERSIONS:
            kubernetes_validate.validate(item, kubernetes, strict=True)


def assert_same(expected, actual, where):
    """A model drops fields that it does not know: all must still be there."""
    if isinstance(expected, dict):
        assert isinstance(actual, dict) and set(expected) <= set(actual), f"{where}: {set(expected) - set(actual)}"
        for key, value in expected.items():
            assert_same(value, actual[key], f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(expected) == len(actual), where
        for index, value in enumerate(expected):
            assert_same(value, actual[index], f"{where}[{index}]")


def check_route(item):
    """The fields of a GRPCRoute or HTTPRoute that the Gateway API requires; the index has no schema of them."""
    assert item["apiVersion"] == "gateway.networking.k8s.io/v1"
    check_match = {"GRPCRoute": check_grpc_match, "HTTPRoute": check_http_match}[item["kind"]]
    spec = item["spec"]
    assert set(spec) == {"parentRefs", "hostnames", "rules"}
    assert all(set(parent) <= {"name", "namespace", "sectionName", "port"} and parent["name"]
               for parent in spec["parentRefs"])
    for rule in spec["rules"]:
        assert set(rule) <= {"name", "matches", "filters", "backendRefs"} and 0 < len(rule["matches"]) <= 8  # 64 from 1.3 on
        for match in rule["matches"]:
            check_match(match)
        assert all({"name", "port"} <= set(backend) for backend in rule["backendRefs"])


def check_grpc_match(match):
    assert set(match) == {"method"} and set(match["method"]) <= {"type", "service", "method"}


def check_http_match(match):
    assert set(match) <= {"path", "method"} and set(match["path"]) == {"type", "value"}
    assert match["path"]["type"] in ("Exact", "PathPrefix") and match["path"]["value"].startswith("/")
    assert match.get("method", "GET") in ("GET", "POST")


def check_kserve(value, type_name, models):
    """Against the classes of KServe's Python package, read and not run: each names its fields and their types."""
    if isinstance(value, list):
        inner = re.fullmatch(r"list\[(\w+)\]", type_name)
        assert inner, f"a list where {type_name} is meant"
        for item in value:
            check_kserve(item, inner.group(1), models)
        return
    path = pathlib.Path(models) / (re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type_name).lower() + ".py")
    if not path.exists():
        assert not re.match(r"V1(alpha|beta)1", type_name), f"KServe has no {type_name}"
        return  # a plain value, or a type of Kubernetes' own
    types, names = (ast.literal_eval(re.search(rf"{table} = (\{{.*?\}})", path.read_text(), re.DOTALL).group(1))
                    for table in ("openapi_types", "attribute_map"))
    by_name = {name: types[attribute] for attribute, name in names.items()}
    for key, field in value.items():
        assert key in by_name, f"{type_name} has no field {key}"
        check_kserve(field, by_name[key], models)
