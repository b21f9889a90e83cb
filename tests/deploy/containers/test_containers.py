# SPDX-License-Identifier: Apache-2.0
"""deploy/compose.yaml and deploy/sbom.py. No container runs here: deploy.image builds and runs the image."""

import json
import os
import re
import subprocess
import sys

import yaml

import manifests
from harness import settings
from manifests import DEPLOY, flags

GRAFANA_FOLDERS = {"/etc/grafana/provisioning": "provisioning", "/etc/grafana/dashboards": "dashboards"}


def compose():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def test_compose_keeps_the_specification(tmp_path):
    check = ("-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec")
    done = manifests.schema_python(*check, DEPLOY / "compose.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    wrong = tmp_path / "compose.yaml"
    wrong.write_text((DEPLOY / "compose.yaml").read_text().replace("stop_grace_period:", "stop_grace_time:"))
    done = manifests.schema_python(*check, wrong)
    assert done.returncode != 0 and "stop_grace_time" in done.stdout + done.stderr


def test_each_container_is_confined():
    services = compose()["services"]
    assert set(services) == {"attendant", "prometheus", "grafana", "jaeger"}
    for name, service in services.items():
        assert service["read_only"] is True and service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert all(port.startswith("127.0.0.1:") for port in service["ports"]), name


def test_each_mounted_path_is_there():
    for name, service in compose()["services"].items():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("./"):
                assert (DEPLOY / source).exists() and volume.endswith(":ro"), f"{name}: {volume}"
            elif not source.startswith("${MODELS"):
                assert source in compose()["volumes"], f"{name}: {volume}"


def test_prometheus_looks_for_the_server_by_its_service_name():
    job, = yaml.safe_load((DEPLOY / "observability/prometheus.yml").read_text())["scrape_configs"]
    found, = job["dns_sd_configs"]
    assert found["names"] == ["attendant"] and "attendant" in compose()["services"]
    assert found["port"] == int(flags(manifests.entry_point())["http_listen"].rpartition(":")[2])


def test_grafana_finds_prometheus_and_the_dashboard():
    provisioning = DEPLOY / "observability/grafana/provisioning"
    source, = yaml.safe_load((provisioning / "datasources/prometheus.yaml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    provider, = yaml.safe_load((provisioning / "dashboards/attendant.yaml").read_text())["providers"]
    assert provider["options"]["path"] in GRAFANA_FOLDERS
    for folder, name in GRAFANA_FOLDERS.items():
        assert f"./observability/grafana/{name}:{folder}:ro" in compose()["services"]["grafana"]["volumes"]
    home = compose()["services"]["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (DEPLOY / "observability/grafana/dashboards" / os.path.basename(home)).exists()


def test_grafana_has_no_admin_with_a_known_password():
    assert compose()["services"]["grafana"]["environment"]["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"


def test_traces_are_off_unless_asked_for():
    services = compose()["services"]
    assert services["attendant"]["environment"] == {"OTEL_EXPORTER_OTLP_ENDPOINT": "${OTEL_EXPORTER_OTLP_ENDPOINT:-}"}
    assert [name for name, service in services.items() if "profiles" in service] == ["jaeger"]
    text = (DEPLOY / "compose.yaml").read_text()
    assert "OTEL_EXPORTER_OTLP_ENDPOINT=http://jaeger:4318" in text and "--profile traces" in text


def test_documents_build_the_image_with_buildkit():
    """The Dockerfile needs it, and engines before 23.0 use it only where the command says so."""
    assert "RUN --mount=" in (settings.ROOT / "Dockerfile").read_text()
    documents = [settings.ROOT / "README.md", settings.ROOT / "Dockerfile",
                 *(path for suffix in ("md", "sh", "yaml") for path in DEPLOY.rglob(f"*.{suffix}"))]
    builds = [(path.name, line.strip()) for path in documents for line in path.read_text().splitlines()
              if "docker build " in line]
    assert {name for name, _ in builds} >= {"README.md", "Dockerfile", "compose.yaml", "image.sh"}
    assert [build for build in builds if "DOCKER_BUILDKIT=1 docker build " not in build[1]] == []


def test_server_of_compose(start_server, tmp_path):
    """Its flags are the server's, its memory is their sum, and it has time to drain."""
    service = compose()["services"]["attendant"]
    limit = int(service["mem_limit"].removesuffix("g")) << 30
    assert service["cpus"] == "${CPUS:-2}"
    needed = manifests.needed_bytes(service["command"], 4)
    assert manifests.needed_bytes(service["command"], 2) <= needed
    assert 0.9 * limit < needed <= limit, f"{needed >> 20} MiB of {limit >> 20} MiB"
    given = flags(service["command"])
    assert int(given["drain_timeout_s"]) < int(service["stop_grace_period"].removesuffix("s"))
    fixed = [argument for argument in service["command"] if not argument.startswith("--model_control")]
    start_server({"tiny": settings.TINY_MODEL}, *fixed).wait_ready()


STATUS = """Package: zlib1g
Status: install ok installed
Architecture: amd64
Source: zlib
Version: 1:1.3.dfsg+really1.3.1-1+b1
Description: compression library
 Version: not this one

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1

Package: libgrpc++1.51t64
Status: install ok installed
Architecture: amd64
Source: grpc (1.51.1-6)
Version: 1.51.1-6+b2
"""


def sbom(text):
    return subprocess.run([sys.executable, DEPLOY / "sbom.py", f"--version={manifests.version()}"], input=text, text=True,
                          capture_output=True)


def test_sbom():
    made = json.loads(sbom(STATUS).stdout)
    assert made["bomFormat"] == "CycloneDX" and made["metadata"]["component"]["version"] == manifests.version()
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", made["serialNumber"])
    assert [(item["name"], item["version"], item["purl"]) for item in made["components"]] == [
        ("libgrpc++1.51t64", "1.51.1-6+b2", "pkg:deb/debian/libgrpc%2B%2B1.51t64@1.51.1-6%2Bb2?arch=amd64"),
        ("zlib1g", "1:1.3.dfsg+really1.3.1-1+b1", "pkg:deb/debian/zlib1g@1%3A1.3.dfsg%2Breally1.3.1-1%2Bb1?arch=amd64"),
    ]
    sources = {item["name"]: {one["name"]: one["value"] for one in item["properties"]} for item in made["components"]}
    assert sources["zlib1g"] == {"debian:source": "zlib", "debian:source_version": "1:1.3.dfsg+really1.3.1-1+b1"}
    assert sources["libgrpc++1.51t64"] == {"debian:source": "grpc", "debian:source_version": "1.51.1-6"}


def test_sbom_is_the_same_for_the_same_packages():
    first, gone, last = STATUS.split("\n\n")
    assert sbom(STATUS).stdout == sbom("\n\n".join([last.rstrip(), gone, first]) + "\n").stdout
    assert sbom(STATUS).stdout != sbom(STATUS.replace("+b2", "+b3")).stdout


def test_sbom_of_nothing():
    done = sbom("nothing\n")
    assert done.returncode == 1 and "no installed package" in done.stderr and "Traceback" not in done.stderr


def test_every_version_is_the_projects():
    """CMakeLists.txt has it; what cannot read it there says the same."""
    version = manifests.version()
    chart = yaml.safe_load((DEPLOY / "helm/attendant/Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == version
    for path in [*(DEPLOY / "kubernetes").rglob("*.yaml"), *(DEPLOY / "helm").rglob("*.yaml")]:
        for tag in re.findall(r"(?:attendant[\w-]*:|newTag: )(\d+\.\d[\w.]*)", path.read_text()):
            assert tag == version, path
    assert f"\n## {version}" in (settings.ROOT / "CHANGELOG.md").read_text()
    printed = subprocess.run([settings.bin_dir() / "attendant-server", "--version"], check=True, capture_output=True, text=True)
    assert printed.stdout.split()[-1] == version
