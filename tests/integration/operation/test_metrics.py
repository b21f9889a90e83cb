# SPDX-License-Identifier: Apache-2.0
"""The metrics page is well-formed, has what the design lists, and moves with what happens."""

import urllib.error
import urllib.request

import pytest

from harness.attendant import ids, pb, request
from harness.server import wait_until

PHASES = {"total", "tokenize", "queue", "compute", "serialize"}
FAMILIES = {
    "attendant_request_duration_seconds": "histogram",
    "attendant_requests_total": "counter",
    "attendant_tokens_total": "counter",
    "attendant_batches_total": "counter",
    "attendant_rejected_total": "counter",
    "attendant_refused_total": "counter",
    "attendant_access_log_lines_total": "counter",
    "attendant_batch_tokens": "histogram",
    "attendant_batch_requests": "histogram",
    "attendant_sequence_tokens": "histogram",
    "attendant_queue_tokens": "gauge",
    "attendant_queue_requests": "gauge",
    "attendant_stalled_workers": "gauge",
    "attendant_lost_workers": "gauge",
    "attendant_model_failed": "gauge",
    "attendant_reload_failed": "gauge",
    "attendant_inflight_requests": "gauge",
    "attendant_model_loaded_info": "gauge",
    "attendant_model_load_seconds": "gauge",
    "attendant_model_weight_bytes": "gauge",
    "attendant_model_arena_bytes": "gauge",
    "attendant_build_info": "gauge",
    "process_resident_memory_bytes": "gauge",
    "process_cpu_seconds_total": "counter",
    "process_open_fds": "gauge",
    "process_start_time_seconds": "gauge",
}
ENCODE = {"model": "tiny", "method": "encode"}


def moved(before, after, name, **labels):
    return after.value(name, **labels) - before.value(name, **labels)


def test_families_and_types(scrape):
    families = scrape().families
    assert {name: families[name].type for name in FAMILIES if name in families} == FAMILIES
    for name in families:
        assert name.startswith(("attendant_", "process_")), name


def test_durations_reach_from_100_us_to_a_minute(scrape):
    bounds = {dict(labels)["le"] for (name, labels) in scrape().samples
              if name == "attendant_request_duration_seconds_bucket"}
    finite = sorted(float(bound) for bound in bounds if bound != "+Inf")
    assert finite[0] <= 1e-4 and finite[-1] >= 60


def test_counters_and_histograms_move(client, scrape):
    before = scrape()
    lengths = [1, 7, 40]
    for length in lengths:
        client.encode(request("tiny", [ids([5] * length)], pooled=pb.PooledOutput()))
    padded = pb.PaddedBatch(batch=1, seq=5, token_ids=[5] * 5, attention_mask=[True] * 3 + [False] * 2)
    client.encode(pb.EncodeRequest(model="tiny", padded=padded))
    requests, tokens = len(lengths) + 1, sum(lengths) + 3

    def settled():
        page = scrape()
        return page if moved(before, page, "attendant_requests_total", **ENCODE) >= requests else None

    after = wait_until("the counters", 30, settled)
    assert moved(before, after, "attendant_requests_total", code="OK", **ENCODE) == requests
    assert moved(before, after, "attendant_tokens_total", model="tiny", kind="valid") == tokens
    assert moved(before, after, "attendant_tokens_total", model="tiny", kind="padding") == 2
    assert moved(before, after, "attendant_batches_total", model="tiny") == requests
    assert moved(before, after, "attendant_batch_tokens_sum", model="tiny") == tokens
    assert moved(before, after, "attendant_batch_requests_sum", model="tiny") == requests
    assert moved(before, after, "attendant_sequence_tokens_count", model="tiny") == requests
    for phase in PHASES:
        name = "attendant_request_duration_seconds"
        assert moved(before, after, name + "_count", phase=phase, **ENCODE) == requests, phase
        assert moved(before, after, name + "_sum", phase=phase, **ENCODE) >= 0, phase
    assert after.value("attendant_inflight_requests", model="tiny") == 0
    assert after.value("attendant_queue_tokens", model="tiny") == 0


def test_failures_are_counted_by_code(client, scrape):
    before = scrape()
    client.error(request("tiny", [ids([97])]))
    wait_until("the counter", 30, lambda: moved(
        before, scrape(), "attendant_requests_total", code="INVALID_ARGUMENT", **ENCODE) == 1)


def test_no_label_carries_what_a_client_sent(client, scrape):
    client.error(request("first-unknown", [ids([5])]))
    before = scrape()
    for index in range(20):
        client.error(request(f"unknown-{index}", [ids([5])]))
    wait_until("the counter", 30, lambda: moved(
        before, scrape(), "attendant_requests_total", model="", code="NOT_FOUND") == 20)
    assert scrape().samples.keys() == before.samples.keys()
    assert not any("unknown-" in value for value in scrape().label_values("model"))


def test_model_info(client, scrape):
    info = client.models()["tiny"]
    page = scrape()
    assert page.value("attendant_model_loaded_info", model="tiny", dtype=info.dtype, backend=info.backend,
                      isa=info.isa) == 1
    assert page.value("attendant_model_load_seconds", model="tiny") > 0
    assert page.value("attendant_model_weight_bytes", model="tiny") > 0
    assert page.value("attendant_model_arena_bytes", model="tiny") > 0
    assert page.value("attendant_build_info") == 1


@pytest.mark.parametrize("path, code", [("/healthz", 200), ("/readyz", 200), ("/nothing", 404), ("/", 200),
                                        ("/metrics/../etc/passwd", 404)])
def test_http_paths(server, path, code):
    assert server.get(path)[0] == code


def test_other_http_methods_are_refused(server):
    post = urllib.request.Request(f"http://{server.http}/metrics", data=b"x", method="POST")
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(post, timeout=30)
    assert error.value.code == 405
