# SPDX-License-Identifier: Apache-2.0
"""deploy/observability with Debian's Prometheus: it scrapes servers under load, and every query of the dashboard and of
the rules returns data."""

import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import urllib.parse
import urllib.request

import pytest
import yaml

import manifests
from harness import settings
from harness.server import wait_until

FOLDER = settings.ROOT / "deploy/observability"
DASHBOARD = FOLDER / "grafana/dashboards/attendant.json"
HERE = pathlib.Path(__file__).parent
LABEL_VALUES = re.compile(r"label_values\((?P<series>.*), (?P<label>\w+)\)")
LISTENS = re.compile(r'msg="Listening on" address=(\S+)')  # in Prometheus's log
COMPARISON = re.compile(r"\s(==|>)\s+([\d.]+)\s*$")
# These say that something is missing: they have data when it is, and alerts_test.yml has shown it.
OF_ABSENCE = {"AttendantMissing", "AttendantNoModel", "AttendantModelMissing"}
SECONDS = 120


def dashboard_queries(values):
    """(panel, query) of the dashboard, as Grafana would send it: `values` has what stands for each $NAME."""
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", ()):
            yield f"panel '{panel['title']}'", replace(target["expr"], values)


def replace(query, values):
    for name, value in values.items():
        query = query.replace(name, value)
    return query


def dashboard_values(prometheus):
    """What Grafana puts in the place of each $NAME where a person has chosen "All"."""
    values = {"$__rate_interval": "10s"}
    for variable in json.loads(DASHBOARD.read_text())["templating"]["list"]:
        if variable["type"] != "query":
            continue
        asked = LABEL_VALUES.fullmatch(variable["query"]["query"])
        found = prometheus.get(f"label/{asked['label']}/values", **{"match[]": replace(asked["series"], values)})
        escaped = (re.escape(value).replace("\\", "\\\\") for value in found)
        values[f"${variable['name']}"] = variable.get("allValue") or f"({'|'.join(escaped)})"
    return values


def rules(name):
    groups = yaml.safe_load((FOLDER / "rules" / name).read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def rule_queries():
    """(rule, query). An alert's comparison becomes 0 or 1: its series must be there though nothing is wrong."""
    for rule in rules("recording.yml"):
        yield rule["record"], rule["expr"]
        yield rule["record"] + " (recorded)", rule["record"]
    for rule in rules("alerts.yml"):
        if rule["alert"] not in OF_ABSENCE:
            query, comparisons = COMPARISON.subn(r" \1 bool \2", rule["expr"])
            assert comparisons == 1, f"{rule['alert']}: no comparison at the end of {rule['expr']}"
            yield rule["alert"], query


def autoscalers():
    """(name, query, target) of what deploy/kubernetes counts servers by, with the labels that this Prometheus adds."""
    folder = settings.ROOT / "deploy/kubernetes/components"
    of_operator = 'namespace="attendant",service="attendant"'
    for trigger in yaml.safe_load((folder / "keda/scaledobject.yaml").read_text())["spec"]["triggers"]:
        query = trigger["metadata"]["query"]
        assert query.count(of_operator) == query.count("{")
        kind = {"AverageValue": "waiting", "Value": "refused"}[trigger["metricType"]]
        yield f"KEDA, {kind}", query.replace(of_operator, 'job="attendant"'), float(trigger["metadata"]["threshold"])
    scaler = yaml.safe_load((folder / "hpa/horizontalpodautoscaler.yaml").read_text())
    targets = {metric["pods"]["metric"]["name"]: float(metric["pods"]["target"]["averageValue"])
               for metric in scaler["spec"]["metrics"]}
    for rule in yaml.safe_load((folder / "hpa/prometheus-adapter.yaml").read_text())["rules"]["custom"]:
        query = rule["metricsQuery"].replace("<<.GroupBy>>", "instance").replace("<<.LabelMatchers>>", 'job="attendant"')
        name = rule["name"]["as"]
        kind = {"attendant_queue_seconds": "waiting", "attendant_refused_ratio": "refused"}[name]
        yield f"HPA, {kind}", query, targets.pop(name)
    assert not targets, "a metric without a rule"


def autoscaler_queries():
    for name, query, _ in autoscalers():
        yield name, query


def needs_device(query):
    return "attendant_device_" in query


class Prometheus:
    """Runs with the committed configuration, but scrapes `targets`, and more often. Another job is itself, as where one
    Prometheus watches all."""

    FOREIGN = "another"

    def __init__(self, program, folder, targets):
        config = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config["rule_files"] = [str(FOLDER / pattern) for pattern in config["rule_files"]]
        job, = config["scrape_configs"]
        del job["dns_sd_configs"]
        job["static_configs"] = [{"targets": targets}]
        self.config, self.config_file = config, folder / "prometheus.yml"
        self.config_file.write_text(yaml.safe_dump(config))
        self.log = open(folder / "prometheus.log", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [program, f"--config.file={self.config_file}", f"--storage.tsdb.path={folder}/data",
             "--web.listen-address=127.0.0.1:0"], stdout=self.log, stderr=self.log)
        self.address = None

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.terminate()
        self.process.wait(SECONDS)
        self.log.close()

    def get(self, path, **arguments):
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
        try:
            with urllib.request.urlopen(url, timeout=SECONDS) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{arguments}: {error.read().decode()}") from None

    def ready(self):
        log = pathlib.Path(self.log.name).read_text()
        assert self.process.poll() is None, log
        if self.address is None:
            listens = LISTENS.search(log)
            if listens is None:
                return False
            self.address = listens.group(1)
        try:
            urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=SECONDS).close()
        except OSError:
            return False
        self.scrape_itself()
        return True

    def scrape_itself(self):
        self.config["scrape_configs"].append({"job_name": self.FOREIGN, "static_configs": [{"targets": [self.address]}]})
        self.config_file.write_text(yaml.safe_dump(self.config))
        self.process.send_signal(signal.SIGHUP)  # it reads the file again

    def samples(self, query):
        return self.get("query", query=query)["result"]

    def has(self, query):
        """Whether the query returns numbers."""
        return any(sample["value"][1] != "NaN" for sample in self.samples(query))

    def scrapes(self, jobs):
        """Whether so many targets of each job are up."""
        return {sample["metric"]["job"]: int(sample["value"][1]) for sample in self.samples("sum by (job) (up)")} == jobs


@pytest.fixture
def servers(start_server):
    """A server of the real model and, where the emulated GPU is built, one that computes on it."""
    started = [start_server({"minilm": settings.model_dir()}, "--access_log=/dev/null")]
    library = os.environ.get("ATTENDANT_FAKE_CUDA", "")
    if os.path.exists(library):
        started.append(start_server({"minilm": settings.TINY_MODEL}, "--backend=cuda", f"--cuda_library={library}"))
    return [server.wait_ready() for server in started]


@pytest.fixture
def load(servers):
    """Clients that send for longer than the test takes."""
    running = [subprocess.Popen(
        [settings.bin_dir() / "attendant", "load", f"--server={server.grpc}", "--duration=10m", "--rate=50",
         "--lengths=uniform:4:24"], stdout=subprocess.DEVNULL) for server in servers]
    yield running
    for process in running:
        process.terminate()
        process.wait(SECONDS)


def test_every_query_returns_data(tool, tmp_path, servers, load):
    has_device = len(servers) > 1
    with Prometheus(tool("prometheus"), tmp_path, [server.http for server in servers]) as prometheus:
        wait_until("Prometheus", SECONDS, prometheus.ready)
        wait_until("scrapes", SECONDS, lambda: prometheus.scrapes({"attendant": len(servers), prometheus.FOREIGN: 1}))
        of_dashboard = [*dashboard_queries(dashboard_values(prometheus))]
        queries = [*of_dashboard, *rule_queries(), *autoscaler_queries()]
        assert len(queries) > 60
        waiting = [item for item in queries if has_device or not needs_device(item[1])]

        def all_have_data():
            waiting[:] = [item for item in waiting if not prometheus.has(item[1])]
            return not waiting
        try:
            wait_until("data", SECONDS, all_have_data)
        except AssertionError:
            pytest.fail("no data:\n" + "\n".join(f"{name}: {query}" for name, query in waiting))
        counted, = (query for name, query in of_dashboard if name == "panel 'Servers'")
        assert int(prometheus.samples(counted)[0]["value"][1]) == len(servers)
        foreign = [item for item in of_dashboard if any(
            sample["metric"].get("instance") == prometheus.address for sample in prometheus.samples(item[1]))]
        assert not foreign, "the dashboard shows what is no server"
        if not has_device:
            assert not any(prometheus.has(query) for _, query in queries if needs_device(query))
        groups = prometheus.get("rules")["groups"]
        assert {rule["health"] for group in groups for rule in group["rules"]} == {"ok"}
        firing = [alert["labels"] for alert in prometheus.get("alerts")["alerts"] if alert["state"] == "firing"]
        assert not firing, "alerts on servers that are well"
        assert all(process.poll() is None for process in load), "the load was over before the queries"
        servers[0].terminate()
        wait_until("the alert for a server that is gone", SECONDS, lambda: [
            alert for alert in prometheus.get("alerts")["alerts"] if alert["labels"]["alertname"] == "AttendantDown"])


# Loads of a server that computes 6,000 tokens a second and answers 100 requests a second: the series of one that differ, with
# their values or what they gain each second, and what must ask for more servers.
LOADS = {
    "it keeps up": ({'queue_tokens{model="m"}': 600}, set()),
    "long texts wait": ({'queue_tokens{model="m"}': 32000}, {"waiting"}),
    "short texts fill the queue": ({'queue_tokens{model="m"}': 2800, 'rejected_total{model="m",reason="queue_full"}': 100},
                                   {"refused"}),
    "deadlines keep the queue short": ({'queue_tokens{model="m"}': 600, 'rejected_total{model="m",reason="infeasible"}': 50},
                                       {"refused"}),
    "too many requests over HTTP": ({'refused_total{reason="http_requests"}': 100}, {"refused"}),
    "deadlines that nobody can meet": ({'rejected_total{model="m",reason="infeasible"}': 50}, set()),
    "requests that are too large": ({'rejected_total{model="m",reason="too_large"}': 50}, set()),
    "attention waits": ({'queue_tokens{model="attention"}': 32000}, set()),
    "a module of attention waits": ({'queue_tokens{model="module"}': 32000,
                                     'model_loaded_info{model="module",backend="attention"}': 1}, set()),
    "long texts wait, and attention computes": ({'queue_tokens{model="m"}': 32000,
                                                 'tokens_total{model="attention",kind="valid"}': 600000}, {"waiting"}),
    "long texts wait, and a module computes": ({'queue_tokens{model="m"}': 32000,
                                                'tokens_total{model="module",kind="valid"}': 600000,
                                                'model_loaded_info{model="module",backend="attention"}': 1}, {"waiting"}),
}
AT_REST = {'queue_tokens{model="m"}': 0, 'tokens_total{model="m",kind="valid"}': 6000, 'requests_total{model="m",code="OK"}': 100,
           'model_loaded_info{model="m",backend="cpu"}': 1,
           'rejected_total{model="m",reason="queue_full"}': 0, 'refused_total{reason="http_requests"}': 0}


@pytest.mark.parametrize("load", LOADS)
def test_overload_asks_for_more_servers(tool, tmp_path, load):
    different, asking = LOADS[load]

    def series(name, value):
        gains = f"0+{15 * value}x20" if "_total" in name else f"{value}x20"
        return {"series": "attendant_" + name.replace("{", '{job="attendant",instance="a:8002",'), "values": gains}

    expected = [{"expr": f"({query}) > bool {target}", "eval_time": "4m",
                 "exp_samples": [{"labels": '{instance="a:8002"}' if name.startswith("HPA") else "{}",
                                  "value": int(name.partition(", ")[2] in asking)}]}
                for name, query, target in autoscalers()]
    assert len(expected) == 4
    test = {"interval": "15s", "input_series": [series(*item) for item in (AT_REST | different).items()],
            "promql_expr_test": expected}
    (tmp_path / "test.yml").write_text(yaml.safe_dump({"evaluation_interval": "15s", "tests": [test]}))
    subprocess.run([tool("promtool"), "test", "rules", tmp_path / "test.yml"], check=True)


def test_each_alert_has_a_test(tool):
    tests = yaml.safe_load((HERE / "alerts_test.yml").read_text())["tests"]
    expected = collections.defaultdict(set)
    for case in (case for test in tests for case in test["alert_rule_test"]):
        expected[case["alertname"]].add(bool(case["exp_alerts"]))
    assert expected == {rule["alert"]: {True, False} for rule in rules("alerts.yml")}
    subprocess.run([tool("promtool"), "test", "rules", HERE / "alerts_test.yml"], check=True)


def test_configuration(tool):
    subprocess.run([tool("promtool"), "check", "config", FOLDER / "prometheus.yml"], check=True)
    subprocess.run([sys.executable, FOLDER / "make_dashboard.py", "--check"], check=True)


def test_grafana_understands_the_dashboard(tmp_path):
    def unknown_fields(path):
        done = manifests.schema_python(HERE / "dashboard_fields.py", path)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()
    assert unknown_fields(DASHBOARD) == []
    wrong = tmp_path / "dashboard.json"
    wrong.write_text(DASHBOARD.read_text().replace('"graphMode"', '"graphMod"', 1))
    assert [path.rpartition("/")[2] for path in unknown_fields(wrong)] == ["graphMod"]


def test_queries_use_metrics_that_exist():
    """Each name in a query is a metric of docs/metrics.md, a recorded series, or Prometheus' own."""
    known = set(re.findall(r"^\| `(\w+)` \|", (settings.ROOT / "docs/metrics.md").read_text(), re.MULTILINE))
    for name, query in [*dashboard_queries({}), *rule_queries(), *autoscaler_queries()]:
        for metric in re.findall(r"\b(?<!:)((?:attendant|process)_\w+)(?!:)\b", re.sub(r'"[^"]*"', "", query)):
            metric = re.sub(r"_(bucket|sum|count)$", "", metric)
            assert metric in known or f":{metric}:" in query, f"{name}: {metric} is not in docs/metrics.md"
