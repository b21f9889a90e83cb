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


def test_idle_streams_take_no_threads(server, channel):
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    done = threading.Event()

    def ask_and_stay():
        yield request
        done.wait()

    before = len(server.threads())
    streams = [stub.ServerReflectionInfo(ask_and_stay()) for _ in range(64)]
    for stream in streams:
        assert next(stream).list_services_response.service
    assert len(server.threads()) < before + 16  # gRPC's own threads come and go
    done.set()
    for stream in streams:
        stream.cancel()


@pytest.mark.parametrize("ask, code", [
    ({"file_by_filename": "gone.proto"}, grpc.StatusCode.NOT_FOUND),
    ({"file_containing_symbol": "attendant.v1.Gone"}, grpc.StatusCode.NOT_FOUND),
    ({"file_containing_extension": {"containing_type": "attendant.v1.Tensor", "extension_number": 9}},
     grpc.StatusCode.NOT_FOUND),
    ({"all_extension_numbers_of_type": "attendant.v1.Gone"}, grpc.StatusCode.NOT_FOUND),
    ({}, grpc.StatusCode.INVALID_ARGUMENT),
])
def test_what_is_not_there(channel, ask, code):
    request = reflection_pb2.ServerReflectionRequest(**ask)
    answers = list(reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(iter([request, request])))
    assert [answer.error_response.error_code for answer in answers] == [code.value[0]] * 2


def test_extensions_are_listed(channel):
    request = reflection_pb2.ServerReflectionRequest(all_extension_numbers_of_type="attendant.v1.Tensor")
    answer, = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(iter([request]))
    assert answer.all_extension_numbers_response.base_type_name == "attendant.v1.Tensor"
    assert not answer.all_extension_numbers_response.extension_number
