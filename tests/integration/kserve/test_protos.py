# SPDX-License-Identifier: Apache-2.0
"""Our KServe .proto files against the descriptors inside tritonclient's wheel, field by field."""

import pytest
from google.protobuf import descriptor_pb2
from grpc_tools import protoc
from tritonclient.grpc import model_config_pb2, service_pb2

from harness import settings

FIELD = descriptor_pb2.FieldDescriptorProto


def our_files(folder):
    out = folder / "descriptors"
    code = protoc.main(["protoc", f"-I{settings.ROOT / 'proto'}", f"--descriptor_set_out={out}",
                        "inference/grpc_service.proto", "inference/model_config.proto"])
    assert code == 0, "protoc failed"
    return descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file


def their_files():
    for module in (service_pb2, model_config_pb2):
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        yield file


def fields(message):
    """{name: what the wire and the stubs see of the field}"""
    oneofs = [oneof.name for oneof in message.oneof_decl]
    return {field.name: (field.number, FIELD.Type.Name(field.type), FIELD.Label.Name(field.label), field.type_name,
                         oneofs[field.oneof_index] if field.HasField("oneof_index") else None)
            for field in message.field}


def walk(files):
    """(messages, enums, methods), each by full name."""
    messages, enums, methods = {}, {}, {}

    def add(prefix, message):
        name = f"{prefix}.{message.name}"
        messages[name] = fields(message)
        for nested in message.nested_type:
            add(name, nested)
        for enum in message.enum_type:
            enums[f"{name}.{enum.name}"] = {value.name: value.number for value in enum.value}

    for file in files:
        assert file.package == "inference"
        for message in file.message_type:
            add(file.package, message)
        for enum in file.enum_type:
            enums[f"{file.package}.{enum.name}"] = {value.name: value.number for value in enum.value}
        for service in file.service:
            for method in service.method:
                methods[f"{file.package}.{service.name}/{method.name}"] = (
                    method.input_type, method.output_type, method.client_streaming, method.server_streaming)
    return messages, enums, methods


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return walk(our_files(tmp_path_factory.mktemp("protos")))


THEIRS = walk(their_files())
SERVICE = walk([file for file in their_files() if file.service])


def test_every_call_is_there_with_its_types(ours):
    assert len(THEIRS[2]) == 20
    assert ours[2] == THEIRS[2]


@pytest.mark.parametrize("name", sorted(SERVICE[0]))
def test_service_messages_are_equal(ours, name):
    assert ours[0][name] == SERVICE[0][name]


def test_what_the_configuration_has_agrees(ours):
    messages = {name: found for name, found in ours[0].items() if name not in SERVICE[0]}
    assert {"inference.ModelConfig", "inference.ModelInput", "inference.ModelOutput"} <= messages.keys()
    for name, found in messages.items():
        for field, description in found.items():
            assert description == THEIRS[0][name][field], f"{name}.{field}"


def test_what_clients_read_of_a_configuration_is_there(ours):
    assert ours[0]["inference.ModelConfig"].keys() >= {
        "name", "platform", "max_batch_size", "input", "output", "instance_group", "dynamic_batching", "backend",
        "model_transaction_policy", "response_cache"}


def test_enums_are_equal(ours):
    assert "inference.DataType" in ours[1]
    for name, values in ours[1].items():
        assert values == THEIRS[1][name], name
