#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes grafana/dashboards/attendant.json from the table below: deploy/observability/make_dashboard.py [--check]

A row of the dashboard is a title and its panels. A panel is a title, a unit of Grafana's, what kind it is and its
queries, legend to PromQL. $M stands for the matchers of the dashboard's variables, $I for those of series without a
model, $R for the range that Grafana chooses.
"""

import json
import pathlib
import sys

FILE = pathlib.Path(__file__).parent / "grafana/dashboards/attendant.json"
SUBSTITUTES = {
    "$M": 'job=~"$job",instance=~"$instance",model=~"$model"',
    "$I": 'job=~"$job",instance=~"$instance"',
    "$R": "$__rate_interval",
}
COLUMNS = 24
HEIGHTS = {"stat": 4, "table": 7}
WIDTHS = {"stat": 4, "timeseries": 8, "heatmap": 8, "table": 24}


def quantiles(metric, matchers, *shares):
    """{"p99": the quantile over all servers, ...}"""
    return {f"p{share:g}": f"histogram_quantile({share / 100:g}, sum by (le) (rate({metric}_bucket{{{matchers}}}[$R])))"
            for share in shares}


def mean(metric, matchers, by):
    total, count = (f"sum by ({by}) (rate({metric}_{part}{{{matchers}}}[$R]))" for part in ("sum", "count"))
    return f"{total} / ({count} > 0)"


DURATION = "attendant_request_duration_seconds"
ERRORS = 'attendant_requests_total{$M,code!~"OK|CANCELLED"}'

ROWS = (
    ("Overview", (
        ("Servers", "none", "stat", {"": "count(up{$I} == 1)"}),
        ("Requests per second", "reqps", "stat", {"": "sum(rate(attendant_requests_total{$M}[$R]))"}),
        ("Not OK", "percentunit", "stat",
         {"": f"sum(rate({ERRORS}[$R])) / sum(rate(attendant_requests_total{{$M}}[$R]))"}),
        ("p99 latency", "s", "stat", quantiles(DURATION, '$M,phase="total"', 99)),
        ("Tokens per second", "none", "stat", {"": 'sum(rate(attendant_tokens_total{$M,kind="valid"}[$R]))'}),
        ("Processors in use", "none", "stat", {"": "sum(rate(process_cpu_seconds_total{$I}[$R]))"}),
    )),
    ("Traffic", (
        ("Requests by method", "reqps", "timeseries",
         {"{{model}} {{method}}": "sum by (model, method) (rate(attendant_requests_total{$M}[$R])) > 0"}),
        ("Requests by server", "reqps", "timeseries",
         {"{{instance}}": "sum by (instance) (rate(attendant_requests_total{$M}[$R]))"}),
        ("In flight", "none", "timeseries", {"{{model}}": "sum by (model) (attendant_inflight_requests{$M})"}),
        ("Tokens", "none", "timeseries",
         {"{{model}} {{kind}}": "sum by (model, kind) (rate(attendant_tokens_total{$M}[$R]))"}),
        ("Tokens of a sequence", "none", "timeseries", quantiles("attendant_sequence_tokens", "$M", 50, 95, 99)),
        ("Connections", "none", "timeseries",
         {"{{instance}}": "attendant_connections{$I}",
          "new per second": 'sum(rate(attendant_connections_total{$I,result="accepted"}[$R]))'}),
    )),
    ("Errors", (
        ("Answers by code", "reqps", "timeseries",
         {"{{model}} {{code}}": f"sum by (model, code) (rate({ERRORS}[$R]))"}),
        ("Not computed, by reason", "reqps", "timeseries",
         {"{{model}} {{reason}}": "sum by (model, reason) (rate(attendant_rejected_total{$M}[$R]))"}),
        ("Refused for memory or keys", "reqps", "timeseries",
         {"{{reason}}": "sum by (reason) (rate(attendant_refused_total{$I}[$R]))"}),
        ("Connections closed at once", "none", "timeseries",
         {"{{result}}": 'sum by (result) (rate(attendant_connections_total{$I,result!="accepted"}[$R]))'}),
        ("HTTP connections ended by the server", "none", "timeseries",
         {"{{result}}": 'sum by (result) (rate(attendant_http_connections_total{$I,result!="normal"}[$R]))'}),
        ("Access log lines", "none", "timeseries",
         {"{{result}}": "sum by (result) (rate(attendant_access_log_lines_total{$I}[$R]))"}),
        ("Spans of traces", "none", "timeseries",
         {"{{result}}": "sum by (result) (rate(attendant_spans_total{$I}[$R]))",
          "requests to the collector {{result}}": "sum by (result) (rate(attendant_span_exports_total{$I}[$R]))"}),
        ("Failed loads", "none", "timeseries",
         {"{{instance}} {{model}}": "attendant_model_failed{$M}",
          "{{instance}} {{file}}": "attendant_reload_failed{$I}"}),
        ("Starts", "none", "timeseries", {"{{instance}}": "changes(process_start_time_seconds{$I}[15m])"}),
    )),
    ("Latency by phase", (
        ("Whole request", "s", "timeseries", quantiles(DURATION, '$M,phase="total"', 50, 90, 99)),
        ("p99 of each phase", "s", "timeseries",
         {"{{phase}}": "histogram_quantile(0.99, sum by (le, phase) "
                       f'(rate({DURATION}_bucket{{$M,phase!="total"}}[$R])))'}),
        ("Mean of each phase", "s", "timeseries", {"{{phase}}": mean(DURATION, '$M,phase!="total"', "phase")}),
        ("Distribution", "s", "heatmap",
         {"{{le}}": f'sum by (le) (increase({DURATION}_bucket{{$M,phase="total"}}[$R]))'}),
        ("p99 by method", "s", "timeseries",
         {"{{method}}": "histogram_quantile(0.99, sum by (le, method) "
                        f'(rate({DURATION}_bucket{{$M,phase="total"}}[$R])))'}),
        ("p99 by server", "s", "timeseries",
         {"{{instance}}": "histogram_quantile(0.99, sum by (le, instance) "
                          f'(rate({DURATION}_bucket{{$M,phase="total"}}[$R])))'}),
    )),
    ("Batches", (
        ("Tokens of a batch", "none", "timeseries",
         {"mean": mean("attendant_batch_tokens", "$M", "job"), **quantiles("attendant_batch_tokens", "$M", 50, 95)}),
        ("Requests of a batch", "none", "timeseries",
         {"mean": mean("attendant_batch_requests", "$M", "job"),
          **quantiles("attendant_batch_requests", "$M", 50, 95)}),
        ("Batches per second", "none", "timeseries",
         {"{{model}}": "sum by (model) (rate(attendant_batches_total{$M}[$R]))"}),
    )),
    ("Queue and saturation", (
        ("Waiting tokens", "none", "timeseries",
         {"{{instance}} {{model}}": "attendant_queue_tokens{$M}"}),
        ("Waiting requests", "none", "timeseries",
         {"{{instance}} {{model}}": "attendant_queue_requests{$M}"}),
        ("Time to empty the queue", "s", "timeseries",
         {"{{instance}} {{model}}": "instance_model:attendant_queue:seconds{$M}"}),
        ("Share of the time that requests wait", "percentunit", "timeseries",
         {"{{instance}} {{model}}": "avg_over_time((attendant_queue_tokens{$M} > bool 0)[5m:])"}),
        ("Refused because of load", "percentunit", "timeseries",
         {"{{model}}": 'job_model:attendant_overload:ratio5m{job=~"$job",model=~"$model"}',
          "{{instance}} HTTP": "instance:attendant_http_overload:ratio5m{$I}"}),
        ("Stalled and lost workers", "none", "timeseries",
         {"{{instance}} {{model}} stalled": "attendant_stalled_workers{$M}",
          "{{instance}} {{model}} lost": "attendant_lost_workers{$M}"}),
    )),
    ("Process", (
        ("Processors in use", "none", "timeseries", {"{{instance}}": "rate(process_cpu_seconds_total{$I}[$R])"}),
        ("Memory", "bytes", "timeseries",
         {"{{instance}} resident": "process_resident_memory_bytes{$I}",
          "{{instance}} models": "sum by (instance) (attendant_model_weight_bytes{$I}) "
                                 "+ sum by (instance) (attendant_model_arena_bytes{$I})"}),
        ("File descriptors and threads", "none", "timeseries",
         {"{{instance}} descriptors": "process_open_fds{$I}", "{{instance}} threads": "process_threads{$I}"}),
        ("Programs", "none", "table", {"": "attendant_build_info{$I}"}),
        ("Models", "none", "table", {"": "attendant_model_loaded_info{$M}"}),
        ("Loading took", "s", "timeseries", {"{{instance}} {{model}}": "attendant_model_load_seconds{$M}"}),
    )),
    ("Devices", (
        ("Busy", "percentunit", "timeseries",
         {"{{instance}} {{device}} {{model}}": "rate(attendant_device_busy_seconds_total{$M}[$R])"}),
        ("Memory", "bytes", "timeseries", {"{{instance}} {{device}} {{kind}}": "attendant_device_memory_bytes{$I}"}),
        ("Time by group of kernels", "percentunit", "timeseries",
         {"{{group}}": "sum by (group) (rate(attendant_device_kernel_seconds_total{$M}[$R]))"}),
        ("GPUs", "none", "table", {"": "attendant_device_info{$I}"}),
    )),
)

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


def expand(query):
    for short, text in SUBSTITUTES.items():
        query = query.replace(short, text)
    return query


def targets(kind, queries):
    shape = {"table": {"format": "table", "instant": True}, "heatmap": {"format": "heatmap"}}.get(kind, {})
    return [{"datasource": DATASOURCE, "expr": expand(query), "legendFormat": legend, "refId": chr(ord("A") + index),
             **shape} for index, (legend, query) in enumerate(queries.items())]


def panel(number, place, title, unit, kind, queries):
    made = {"id": number, "type": kind, "title": title, "gridPos": place, "datasource": DATASOURCE,
            "targets": targets(kind, queries), "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []}}
    if kind == "stat":
        made["options"] = {"reduceOptions": {"calcs": ["lastNotNull"]}, "graphMode": "area"}
    if kind == "heatmap":
        made["options"] = {"calculate": False, "yAxis": {"unit": unit}}
    return made


def panels():
    """All rows and panels, laid out from left to right and from top to bottom."""
    made, y = [], 0
    for title, row in ROWS:
        made.append({"id": len(made) + 1, "type": "row", "title": title, "collapsed": False, "panels": [],
                     "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": y}})
        x, y = 0, y + 1
        for name, unit, kind, queries in row:
            width, height = WIDTHS[kind], HEIGHTS.get(kind, 8)
            if x + width > COLUMNS:
                x, y = 0, y + last_height
            made.append(panel(len(made) + 1, {"h": height, "w": width, "x": x, "y": y}, name, unit, kind, queries))
            x, last_height = x + width, height
        y += last_height
    return made


def variable(name, label, query, **more):
    """Where `more` has no allValue, "All" means the values that the query finds: a shared Prometheus has other jobs too."""
    return {"name": name, "label": label, "type": "query", "datasource": DATASOURCE, "definition": query,
            "query": {"query": query, "refId": name}, "refresh": 2, "sort": 1, "multi": True, "includeAll": True,
            **more, "current": {"text": ["All"], "value": ["$__all"]}}


def dashboard():
    return {
        "uid": "attendant", "title": "Attendant", "tags": ["attendant"], "schemaVersion": 39, "version": 1,
        "editable": True, "graphTooltip": 1, "refresh": "10s", "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [
            {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
            variable("job", "Job", "label_values(attendant_build_info, job)"),
            variable("instance", "Server", 'label_values(attendant_build_info{job=~"$job"}, instance)'),
            # A request for a model that does not exist counts with an empty label.
            variable("model", "Model", 'label_values(attendant_inflight_requests{job=~"$job"}, model)', allValue=".*"),
        ]},
        "panels": panels(),
    }


def main():
    text = json.dumps(dashboard(), indent=1) + "\n"
    if "--check" in sys.argv[1:]:
        if FILE.read_text(encoding="utf-8") != text:
            sys.exit(f"{FILE.name} is stale; run deploy/observability/make_dashboard.py")
        return
    FILE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
