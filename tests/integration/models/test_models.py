# SPDX-License-Identifier: Apache-2.0
"""Models that are loaded, replaced and unloaded while clients use them, by the stock tritonclient."""

import collections
import queue
import shutil
import threading

import numpy as np
import pytest
import tritonclient.grpc as triton

from harness import attendant, exposition, memory, settings
from harness.attendant import DEADLINE, pb
from harness.model_folder import write_model
from harness.server import Server, wait_until
from harness.workers import Workers

RELOADS = 100
WORKERS = 3
MAX_MODEL_BYTES = 64 << 20
IDLE_SECONDS = 3
MAX_GROWTH_BYTES = 48 << 20
OUTPUT = "last_hidden_state"


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    root = tmp_path_factory.mktemp("repository")
    write_model(root / "swap", False)
    write_model(root / "versions" / "1", False)
    write_model(root / "versions" / "2", True)
    (root / "big").mkdir()
    for file in settings.model_dir().iterdir():
        if file.is_file():
            shutil.copy(file, root / "big")
    return root


@pytest.fixture(scope="module")
def server(tmp_path_factory, repository):
    (repository / "outside").symlink_to(settings.TINY_MODEL)
    running = Server(tmp_path_factory.mktemp("server"), {"fixed": settings.TINY_MODEL}, "--dtype=f32",
                     f"--model_repository={repository}", "--model_control=explicit", "--max_model_versions=2",
                     f"--max_model_bytes={MAX_MODEL_BYTES}", f"--unload_idle_s={IDLE_SECONDS}")
    try:
        yield running.wait_ready()
    finally:
        running.stop()


@pytest.fixture(scope="module")
def client(server):
    with triton.InferenceServerClient(server.grpc) as connected:
        yield connected


def inputs(ids):
    values = np.array([ids], dtype=np.int64)
    tensor = triton.InferInput("input_ids", list(values.shape), "INT64")
    tensor.set_data_from_numpy(values)
    return [tensor]


def states(client, model, ids=(5, 6, 7), **options):
    return client.infer(f"{model}.encoder", inputs(ids), client_timeout=DEADLINE, **options).as_numpy(OUTPUT).tobytes()


def index(client):
    return {(entry.name, entry.version): entry for entry in client.get_model_repository_index().models}


def code(call, *arguments, **options):
    with pytest.raises(triton.InferenceServerException) as caught:
        call(*arguments, **options)
    return caught.value.status().removeprefix("StatusCode."), caught.value.message()


class Load(Workers):
    """Requests without a pause from several threads, each with what it was answered."""

    def __init__(self, server, model, stream_too=False):
        calls = [self._call] * WORKERS + [self._stream] * stream_too
        super().__init__([(call, server, model) for call in calls], threading.Event())
        self.answers = collections.Counter()
        self.errors = collections.Counter()
        self.sent = 0
        self.lock = threading.Lock()

    def __exit__(self, *unused):
        super().__exit__(*unused)
        assert not self.faults

    def _count(self, counter, key):
        with self.lock:
            counter[key] += 1

    def _call(self, server, model):
        with triton.InferenceServerClient(server.grpc, channel_args=[("grpc.use_local_subchannel_pool", 1)]) as client:
            while not self.stop.is_set():
                with self.lock:
                    self.sent += 1
                try:
                    self._count(self.answers, states(client, model))
                except triton.InferenceServerException as error:
                    self._count(self.errors, (error.status(), error.message()))

    def _stream(self, server, model):
        """Each id must come back once: 16 requests are always under way."""
        found, sent = queue.Queue(), 0
        with triton.InferenceServerClient(server.grpc) as client:
            client.start_stream(lambda result, error: found.put((result, error)))
            open_ids = set()
            while not self.stop.is_set() or open_ids:
                while len(open_ids) < 16 and not self.stop.is_set():
                    open_ids.add(str(sent))
                    client.async_stream_infer(f"{model}.encoder", inputs((5, 6, 7)), request_id=str(sent))
                    sent += 1
                    with self.lock:
                        self.sent += 1
                result, error = found.get(timeout=DEADLINE)
                if error is not None:
                    self._count(self.errors, (error.status(), error.message()))
                    break
                open_ids.remove(result.get_response().id)  # KeyError: answered twice
                self._count(self.answers, result.as_numpy(OUTPUT).tobytes())
            client.stop_stream()
        if not found.empty():
            self._count(self.errors, ("twice", "an answer that nobody waits for"))


def test_only_fixed_models_are_loaded_at_the_start(client):
    found = index(client)
    assert found["fixed.ids", "1"].state == "READY"
    assert (found["swap", "1"].state, found["swap", "1"].reason) == ("UNAVAILABLE", "unloaded")
    assert not client.is_model_ready("swap.ids")
    status, message = code(states, client, "swap")
    assert status == "UNAVAILABLE" and "not loaded" in message


def test_a_hundred_reloads_under_load_lose_nothing(server, client, repository):
    variants = []
    for negate in (False, True):
        write_model(repository / "swap", negate)
        client.load_model("swap")
        variants.append(states(client, "swap"))
    assert variants[0] != variants[1]
    lines = server.get("/metrics")[1].count("\n")
    resident = memory.resident_bytes(server.pid)
    with Load(server, "swap", stream_too=True) as load:
        for i in range(RELOADS):
            write_model(repository / "swap", i % 2 == 1)
            client.load_model("swap", client_timeout=DEADLINE)
            assert states(client, "swap") == variants[i % 2], "new requests go to the new model"
    assert not load.errors
    assert load.answers.keys() == set(variants), "each answer is that of one model, bit for bit"
    assert sum(load.answers.values()) == load.sent
    memory.check_growth(f"{load.sent} requests during {RELOADS} reloads",
                        memory.resident_bytes(server.pid) - resident, MAX_GROWTH_BYTES)
    assert server.get("/metrics")[1].count("\n") <= lines + 10, "series of methods that were used"
    page = exposition.Page(server.get("/metrics")[1])
    assert page.value("attendant_queue_requests", model="swap") == 0
    assert page.value("attendant_inflight_requests", model="swap") == 0


def test_a_load_that_fails_keeps_what_serves(client, repository):
    before = states(client, "swap")
    (repository / "swap" / "config.json").write_text("{", encoding="utf-8")
    status, message = code(client.load_model, "swap")
    assert status == "INVALID_ARGUMENT" and "config.json" in message
    assert states(client, "swap") == before
    entry = index(client)["swap.ids", "1"]
    assert entry.state == "READY" and "config.json" in entry.reason
    write_model(repository / "swap", False)
    client.load_model("swap")
    assert index(client)["swap.ids", "1"].reason == ""


def test_versions_answer_by_their_number(server, client, repository):
    client.load_model("versions")
    first, second = (states(client, "versions", model_version=version) for version in "12")
    assert first != second
    assert states(client, "versions") == second, "the highest version"
    metadata = client.get_model_metadata("versions.ids")
    assert list(metadata.versions) == ["1", "2"]
    assert code(states, client, "versions", model_version="3")[0] == "NOT_FOUND"
    with attendant.Client(server.grpc) as typed:
        for version, expected in (("", second), ("1", first), ("2", second)):
            message = attendant.request("versions", [attendant.ids((5, 6, 7))], last_hidden_state=True)
            message.model_version = version
            assert typed.encode(message).last_hidden_state.data == expected
    write_model(repository / "versions" / "3", False)
    client.load_model("versions")
    assert list(client.get_model_metadata("versions.ids").versions) == ["2", "3"]
    assert states(client, "versions") == first
    assert code(states, client, "versions", model_version="1")[0] == "NOT_FOUND"


def test_unloading_under_load_gives_clean_statuses(server, client):
    client.load_model("swap")
    with Load(server, "swap") as load:
        wait_until("answers", 30, lambda: sum(load.answers.values()) > 20)
        client.unload_model("swap")
        wait_until("refusals", 30, lambda: load.errors)
        client.load_model("swap")
        answered = sum(load.answers.values())
        wait_until("answers after the load", 30, lambda: sum(load.answers.values()) > answered + 20)
    assert sum(load.answers.values()) + sum(load.errors.values()) == load.sent
    for status, message in load.errors:
        assert status == "StatusCode.UNAVAILABLE", message
        assert "unloaded" in message or "not loaded" in message or "loading" in message, message


def test_an_unloaded_model_has_no_series_and_no_health(server, client):
    client.load_model("swap")
    assert 'model="swap"' in server.get("/metrics")[1]
    client.unload_model("swap")
    assert not client.is_model_ready("swap.ids")
    wait_until("the series to go", 30, lambda: 'model="swap"' not in server.get("/metrics")[1])
    with attendant.Client(server.grpc) as typed:
        assert typed.models()["swap"].state == pb.MODEL_STATE_UNLOADED
    assert server.get("/readyz")[0] == 200


def test_a_model_that_does_not_fit_is_refused_with_the_figures(client):
    status, message = code(client.load_model, "big")
    assert status == "RESOURCE_EXHAUSTED"
    assert str(MAX_MODEL_BYTES) in message and "weights" in message
    assert index(client)["big", "1"].state == "UNAVAILABLE"


@pytest.mark.parametrize("name, expected", [
    ("nobody", "NOT_FOUND"), ("../repository/swap", "INVALID_ARGUMENT"), ("", "INVALID_ARGUMENT"),
    ("swap.ids", "INVALID_ARGUMENT"), ("outside", "PERMISSION_DENIED"), ("swap/1", "INVALID_ARGUMENT")])
def test_names_from_clients_stay_inside_the_repository(client, name, expected):
    assert code(client.load_model, name)[0] == expected


def test_calls_that_make_no_sense_say_why(client):
    assert code(client.load_model, "swap", config="{}")[0] == "UNIMPLEMENTED"
    assert code(client.register_system_shared_memory, "mine", "/mine", 64)[0] == "UNIMPLEMENTED"
    assert code(client.register_cuda_shared_memory, "mine", b"AAAA", 0, 64)[0] == "UNIMPLEMENTED"
    assert code(client.update_trace_settings, settings={"trace_level": "OFF"})[0] == "UNIMPLEMENTED"
    assert code(client.get_trace_settings)[0] == "UNIMPLEMENTED"
    assert code(client.update_log_settings, {"log_info": True})[0] == "UNIMPLEMENTED"
    assert code(client.get_log_settings)[0] == "UNIMPLEMENTED"


def test_shared_memory_is_empty(client):
    assert not client.get_system_shared_memory_status().regions
    assert not client.get_cuda_shared_memory_status().regions
    client.unregister_system_shared_memory("mine")
    client.unregister_cuda_shared_memory()
    assert code(client.get_system_shared_memory_status, "mine")[0] == "NOT_FOUND"


def test_an_idle_model_is_unloaded_and_the_next_request_waits_for_it(server, client):
    client.load_model("swap")
    expected = states(client, "swap")
    wait_until("idleness", 30, lambda: index(client)["swap.ids", "1"].reason.startswith("idle"))
    assert index(client)["swap.ids", "1"].state == "READY"
    assert client.is_model_ready("swap.ids")
    assert client.get_model_metadata("swap.encoder").outputs[0].shape[-1] > 0
    with attendant.Client(server.grpc) as typed:
        assert typed.models()["swap"].state == pb.MODEL_STATE_IDLE
    results = queue.Queue()
    for _ in range(20):
        client.async_infer("swap.encoder", inputs((5, 6, 7)), lambda result, error: results.put((result, error)))
    for _ in range(20):
        result, error = results.get(timeout=DEADLINE)
        assert error is None
        assert result.as_numpy(OUTPUT).tobytes() == expected


def test_without_explicit_control_calls_are_refused(start_server):
    running = start_server({"tiny": settings.TINY_MODEL}).wait_ready()
    with triton.InferenceServerClient(running.grpc) as connected:
        status, message = code(connected.load_model, "tiny")
        assert status == "UNAVAILABLE" and "--model_control=none" in message
        assert connected.is_model_ready("tiny.ids")
