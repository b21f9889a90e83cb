# SPDX-License-Identifier: Apache-2.0
"""System shared memory, as tritonclient's users write it: tensors that never are in a message."""

import os

import numpy as np
import pytest
import tritonclient.grpc as triton
import tritonclient.utils.shared_memory as shm

from harness import settings
from harness.server import serving
from kserve_tensors import ids_inputs, int_input

IDS = np.array([[5, 6, 7, 8], [9, 10, 11, 12]], dtype=np.int64)
OUTPUT = "sentence_embedding"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("server"), {"tiny": settings.TINY_MODEL}, "--dtype=f32",
                 "--system_shared_memory=on", f"--max_request_bytes={1 << 20}",
                 f"--max_pending_request_bytes={4 << 20}") as running:
        yield running


@pytest.fixture(scope="module")
def client(server):
    with triton.InferenceServerClient(server.grpc) as connected:
        yield connected


@pytest.fixture
def region(client):
    """region(bytes): the handle and the name of a registered region."""
    handles = []

    def make(size):
        name = f"attendant_{os.getpid()}_{len(handles)}"
        handles.append(shm.create_shared_memory_region(name, f"/{name}", size))
        client.register_system_shared_memory(name, f"/{name}", size)
        return handles[-1], name

    yield make
    client.unregister_system_shared_memory()
    for handle in handles:
        shm.destroy_shared_memory_region(handle)


def shared_input(name, offset=0):
    tensor = triton.InferInput("input_ids", list(IDS.shape), "INT64")
    tensor.set_shared_memory(name, IDS.nbytes, offset=offset)
    return tensor


def error(client, *arguments, **options):
    with pytest.raises(triton.InferenceServerException) as caught:
        client.infer("tiny.ids", *arguments, **options)
    return caught.value.status(), caught.value.message()


def test_tensors_travel_in_shared_memory_with_the_same_bits(client, region):
    expected = client.infer("tiny.ids", ids_inputs(IDS)).as_numpy(OUTPUT)
    source, source_name = region(1000)
    target, target_name = region(expected.nbytes + 64)
    shm.set_shared_memory_region(source, [np.zeros(16, np.uint8), IDS])
    output = triton.InferRequestedOutput(OUTPUT)
    output.set_shared_memory(target_name, expected.nbytes, offset=64)
    result = client.infer("tiny.ids", [shared_input(source_name, offset=16)], outputs=[output])
    tensor = result.get_output(OUTPUT)
    assert tensor.parameters["shared_memory_region"].string_param == target_name
    assert tensor.parameters["shared_memory_byte_size"].int64_param == expected.nbytes
    assert result.get_response().raw_output_contents[0] == b""
    assert np.array_equal(shm.get_contents_as_numpy(target, np.float32, expected.shape, offset=64), expected)


def test_shared_and_other_inputs_mix(client, region):
    mask = np.array([[1, 1, 1, 0], [1, 1, 1, 1]])
    expected = client.infer("tiny.ids", ids_inputs(IDS, mask)).as_numpy(OUTPUT)
    source, name = region(IDS.nbytes)
    shm.set_shared_memory_region(source, [IDS])
    for inputs in ([shared_input(name), int_input("attention_mask", mask)],
                   [int_input("attention_mask", mask), shared_input(name)]):
        assert np.array_equal(client.infer("tiny.ids", inputs).as_numpy(OUTPUT), expected)


def test_the_status_lists_regions_until_they_are_unregistered(client, region):
    _, name = region(128)
    status = client.get_system_shared_memory_status(name).regions[name]
    assert (status.key, status.offset, status.byte_size) == (f"/{name}", 0, 128)
    client.unregister_system_shared_memory(name)
    assert not client.get_system_shared_memory_status().regions
    assert error(client, [shared_input(name)])[0] == "StatusCode.NOT_FOUND"


def test_what_does_not_fit_is_refused_and_a_shortened_region_ends_nothing(client, region):
    source, name = region(IDS.nbytes)
    shm.set_shared_memory_region(source, [IDS])
    status, message = error(client, [shared_input(name, offset=1)])
    assert status == "StatusCode.INVALID_ARGUMENT" and "64 bytes" in message
    output = triton.InferRequestedOutput(OUTPUT)
    output.set_shared_memory(name, IDS.nbytes)
    status, message = error(client, [shared_input(name)], outputs=[output])
    assert status == "StatusCode.INVALID_ARGUMENT" and OUTPUT in message
    os.truncate(f"/dev/shm/{name}", 8)
    status, message = error(client, [shared_input(name)])
    assert status == "StatusCode.INVALID_ARGUMENT" and "less than" in message
    with pytest.raises(triton.InferenceServerException, match="key"):
        client.register_system_shared_memory("escape", "/../etc/passwd", 8)
    assert client.is_server_live()


def test_large_inputs_count_in_the_request_budget(client, region):
    _, name = region(8 << 20)
    tensor = triton.InferInput("input_ids", [1, 1 << 20], "INT64")
    tensor.set_shared_memory(name, 8 << 20)
    status, message = error(client, [tensor])
    assert status in ("StatusCode.INVALID_ARGUMENT", "StatusCode.RESOURCE_EXHAUSTED") and "bytes" in message
