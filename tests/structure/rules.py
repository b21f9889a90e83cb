# SPDX-License-Identifier: Apache-2.0
"""What a module may include: the design's table of the house, as data.

A module is a folder; `server` and `client` stand for the files that lie directly in them and in folders
that have no row of their own. `private` libraries may be included by .cc files only.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Row:
    modules: frozenset[str] = frozenset()
    libraries: frozenset[str] = frozenset()
    private: frozenset[str] = frozenset()


def row(modules="", libraries="", private=""):
    return Row(frozenset(modules.split()), frozenset(libraries.split()), frozenset(private.split()))


TABLE = {
    "proto": row(),
    "kernels/core": row(libraries="absl"),
    "kernels/io": row("kernels/core", "absl", private="json"),
    "kernels/reference": row("kernels/core", "absl"),
    "kernels/cpu": row("kernels/core", "absl dnnl"),
    "kernels/cuda": row(libraries="cuda"),
    "kernels/attention": row("kernels/core kernels/cpu", "absl"),
    "kernels/backends": row("kernels/core kernels/reference kernels/cpu kernels/cuda", "absl"),
    "server/text": row("kernels/core kernels/io", "absl", private="icu"),
    "server/batching": row("kernels/core", "absl"),
    "server/metrics": row(libraries="absl prometheus"),
    "server/models": row(
        "kernels/core kernels/io kernels/attention kernels/backends server/text server/batching server/metrics", "absl",
        private="json spdlog"),
    "server/requests": row(
        "kernels/core server/text server/batching server/models server/metrics", "absl"),
    "server/rpc": row(
        "proto kernels/core kernels/attention server/batching server/models server/metrics server/requests",
        "absl grpc protobuf", private="spdlog"),
    "server/http": row("server/metrics", "absl"),
    "server": row(
        "proto kernels/core kernels/backends server/text server/batching server/models server/metrics server/requests "
        "server/rpc server/http client/flags",
        "absl grpc protobuf", private="spdlog"),
    "client": row("proto", "absl grpc protobuf"),
    "client/flags": row(libraries="absl", private="cli11"),  # the server's flags too
    "client/load": row("proto client", "absl grpc"),
    "client/heatmap": row(libraries="absl pango"),
    "client/cli": row("client client/flags client/heatmap", "absl json"),
    "client/cli/files": row("client", "absl", private="json"),
    "client/cli/commands": row(
        "client client/flags client/load client/heatmap client/cli client/cli/files", "absl json"),
    "tests": row(
        "proto kernels/core kernels/io kernels/reference kernels/cpu kernels/cuda kernels/attention kernels/backends "
        "server/text server/batching server/metrics server/models server/requests server/rpc server/http server client client/flags "
        "client/load client/heatmap client/cli client/cli/files client/cli/commands",
        "absl dnnl cuda json icu pango prometheus grpc protobuf spdlog gtest benchmark"),
}

# A library by how its includes begin. What is neither here nor in the tree is the system's.
LIBRARIES = {
    "absl": ("absl/",),
    "dnnl": ("dnnl", "oneapi/"),
    "cuda": ("cuda", "cublas", "cudnn", "nvml"),
    "json": ("nlohmann/",),
    "cli11": ("CLI/",),
    "icu": ("unicode/",),
    "pango": ("pango/",),
    "prometheus": ("prometheus/",),
    "grpc": ("grpc/", "grpcpp/"),
    "protobuf": ("google/protobuf/",),
    "spdlog": ("spdlog/", "fmt/"),
    "gtest": ("gtest/", "gmock/"),
    "benchmark": ("benchmark/",),
}

MAX_LINES = {".h": 240, ".cuh": 240, ".cc": 400, ".cu": 400, ".py": 400, ".sh": 400}
LONGER = {"kernels/cuda/cuda_interface.h": 220}  # one table, in C, to be read as a whole
MAX_FUNCTION_LINES = 70

SOURCE_SUFFIXES = (".h", ".cuh", ".cc", ".cu", ".proto", ".py", ".sh", ".cmake")
SOURCE_NAMES = ("CMakeLists.txt", "Dockerfile")
