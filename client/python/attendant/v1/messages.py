# SPDX-License-Identifier: Apache-2.0
"""Message classes, from the descriptors that were compiled when the package was built. They live in a pool of their own:
another copy of the same .proto files in the process does not clash with them."""

from importlib import resources
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper


def _read_pool() -> descriptor_pool.DescriptorPool:
    data = resources.files(__package__).joinpath("descriptors.binpb").read_bytes()
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(data).file:  # imported files come first
        pool.AddSerializedFile(file.SerializeToString())
    return pool


_POOL = _read_pool()


def load(path: str) -> dict[str, Any]:
    """What protoc's module of this .proto file would define: messages, enums, the values of enums, DESCRIPTOR."""
    file = _POOL.FindFileByName(path)
    names: dict[str, Any] = {"DESCRIPTOR": file}
    for name, message in file.message_types_by_name.items():
        names[name] = message_factory.GetMessageClass(message)
    for name, enum in file.enum_types_by_name.items():
        names[name] = EnumTypeWrapper(enum)
        names.update((value.name, value.number) for value in enum.values)
    return names
