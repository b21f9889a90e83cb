# SPDX-License-Identifier: Apache-2.0
"""A client that knows nothing but the address finds the services and calls them."""

import threading

import grpc
import numpy as np
import pytest
from google.protobuf import descriptor_pool, message_factory
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase


@pytest.fixture
def channel(server):
    with grpc.insecure_channel(server.grpc) as connected:
        yield connected


def test_services_are_listed(channel):
    services = set(ProtoReflectionDescriptorDatabase(channel).get_services())
    assert services >= {"attendant.v1.Encoder", "inference.GRPCInferenceService", "grpc.health.v1.Health"}


def test_a_reflected_call_works(channel, sentences):
    pool = descriptor_pool.DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
    method = pool.FindServiceByName("attendant.v1.Encoder").FindMethodByName("Encode")
    request_type = message_factory.GetMessageClass(method.input_type)
    call = channel.unary_unary(f"/{method.containing_service.full_name}/{method.name}",
                               request_serializer=request_type.SerializeToString,
                               response_deserializer=message_factory.GetMessageClass(method.output_type).FromString)
    message = request_type(model="minilm")
    message.sequences.sequences.add().text = sentences[0][0]
    pooled = np.frombuffer(call(message, timeout=60).pooled.data, "<f4")
    assert np.abs(pooled - sentences[2][0]).max() <= 1e-5


@pytest.mark.parametrize("service, methods", [
    ("attendant.v1.Encoder", {"Encode", "EncodeStream", "ListModels"}),
    ("grpc.health.v1.Health", {"Check", "Watch"}),
])
def test_methods_are_described(channel, service, methods):
    pool = descriptor_pool.DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
    assert {method.name for method in pool.FindServiceByName(service).methods} >= methods


def test_idle_streams_do_not_take_threads_without_end(channel):
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    done = threading.Event()

    def ask_and_stay():
        yield request
        done.wait()

    streams = [stub.ServerReflectionInfo(ask_and_stay()) for _ in range(64)]
    answered = 0
    for stream in streams:
        try:
            next(stream)
            answered += 1
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert 1 <= answered < 32
    done.set()
    for stream in streams:
        stream.cancel()
