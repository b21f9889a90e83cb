# SPDX-License-Identifier: Apache-2.0
"""What a module may include: the design's table of the house, as data.

A module is a folder with the folders in it that have no row of their own. `FOLDER/*` stands for all modules in a
folder. Sources of a module may include `private` libraries, its headers may not.
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
    "cmake": row(libraries="absl"),  # a type for the sources that it makes

    "kernels/core/threads": row(libraries="absl"),
    "kernels/core": row("kernels/core/threads", "absl"),
    "kernels/io": row("kernels/core", "absl", private="json"),
    "kernels/heads": row("kernels/core kernels/core/threads", "absl"),
    "kernels/checkpoints/families": row("kernels/core kernels/io", "absl"),
    "kernels/checkpoints": row("kernels/core kernels/heads kernels/io kernels/checkpoints/families", "absl"),
    "kernels/reference": row("kernels/core kernels/core/threads", "absl"),

    "kernels/cpu/simd/attention": row(),
    "kernels/cpu/simd": row("kernels/core kernels/cpu/simd/attention", "absl"),
    "kernels/cpu/matmul": row("kernels/core kernels/cpu/simd", "absl dnnl"),
    "kernels/cpu/attention": row("kernels/core kernels/cpu/simd kernels/cpu/simd/attention", "absl"),
    "kernels/cpu/encoder": row(
        "kernels/core kernels/core/threads kernels/cpu/simd kernels/cpu/matmul kernels/cpu/attention", "absl"),
    "kernels/cpu/heads": row(
        "kernels/core kernels/core/threads kernels/heads kernels/cpu/simd kernels/cpu/matmul", "absl"),
    "kernels/cpu": row("kernels/core kernels/cpu/simd kernels/cpu/encoder", "absl"),

    "kernels/cuda": row(),  # the C interface
    "kernels/cuda/runtime": row("kernels/cuda", "cuda"),
    "kernels/cuda/matmul": row("kernels/cuda/runtime", "cuda"),
    "kernels/cuda/kernels": row("kernels/cuda kernels/cuda/runtime", "cuda"),
    "kernels/cuda/model": row("kernels/cuda kernels/cuda/runtime kernels/cuda/matmul kernels/cuda/kernels", "cuda"),
    "kernels/cuda/engine": row(
        "kernels/cuda kernels/cuda/runtime kernels/cuda/matmul kernels/cuda/kernels kernels/cuda/model", "cuda"),

    "kernels/attention": row("kernels/core kernels/core/threads kernels/cpu/simd", "absl"),
    "kernels/attention/reference": row("kernels/attention kernels/core kernels/reference", "absl"),
    "kernels/attention/exact": row(
        "kernels/attention kernels/attention/reference kernels/core kernels/core/threads kernels/cpu/simd "
        "kernels/cpu/simd/attention kernels/cpu/attention", "absl"),
    "kernels/attention/scored": row(
        "kernels/attention kernels/attention/reference kernels/core kernels/core/threads kernels/cpu/simd", "absl"),
    "kernels/attention/modules": row(
        "kernels/attention kernels/attention/reference kernels/attention/exact kernels/core kernels/core/threads "
        "kernels/cpu/simd kernels/cpu/matmul kernels/cpu/encoder", "absl"),
    "kernels/backends": row(
        "kernels/core kernels/core/threads kernels/heads kernels/reference kernels/cpu kernels/cpu/simd "
        "kernels/cpu/matmul kernels/cpu/heads kernels/cuda", "absl", private="dnnl"),

    "server/limits": row(),
    "server/text/unicode": row(libraries="absl", private="icu"),
    "server/text/base": row("kernels/core kernels/io server/text/unicode", "absl"),
    "server/text/chat_template": row("kernels/core server/text/unicode", "absl"),
    "server/text/models": row("server/text/base server/text/unicode", "absl"),
    "server/text/normalizers": row("server/text/base server/text/unicode", "absl"),
    "server/text/pre_tokenizers": row("server/text/base server/text/unicode", "absl"),
    "server/text/decoders": row("server/text/base server/text/unicode", "absl"),
    "server/text/sentencepiece": row("kernels/core kernels/io server/text/base server/text/unicode", "absl", private="protobuf"),
    "server/text/esm": row("kernels/core kernels/io server/text/base server/text/unicode", "absl"),
    "server/text": row(
        "kernels/core kernels/io server/text/base server/text/decoders server/text/esm server/text/models server/text/normalizers "
        "server/text/pre_tokenizers server/text/sentencepiece server/text/unicode", "absl"),
    "server/threads": row(libraries="absl"),
    "server/retry": row(libraries="absl"),
    "server/batching": row("kernels/core kernels/core/threads kernels/heads server/retry server/threads server/tracing", "absl"),
    "server/metrics": row(libraries="absl prometheus"),
    "server/tracing": row("client/address kernels/core", "absl", private="json"),
    "server/tracing/export": row("kernels/core server/metrics server/threads server/tracing", "absl"),
    "server/models": row(
        "kernels/core kernels/core/threads kernels/io kernels/checkpoints kernels/attention kernels/attention/modules "
        "kernels/backends kernels/heads server/limits server/text server/text/base server/text/chat_template server/text/unicode server/retry server/threads server/batching server/metrics", "absl"),
    "server/access": row(
        "kernels/core server/limits server/metrics server/threads server/tracing server/tracing/export", "absl",
        private="json openssl"),
    "server/requests/memory": row("server/access server/limits server/metrics server/retry", "absl"),
    "server/requests/formats": row(libraries="absl"),
    "server/requests": row(
        "kernels/core kernels/heads server/access server/limits server/text server/threads server/batching server/models "
        "server/metrics server/requests/formats server/requests/memory server/tracing", "absl"),
    "server/protocols": row("server/requests", "absl"),
    "server/protocols/wire": row("proto server/models server/requests server/requests/formats", "absl"),
    "server/protocols/encoder": row(
        "proto kernels/core kernels/heads server/limits server/models server/protocols server/protocols/wire server/requests "
        "server/requests/formats", "absl protobuf"),
    "server/protocols/attention": row(
        "proto kernels/core kernels/core/threads kernels/attention kernels/attention/modules server/batching server/limits "
        "server/metrics server/models server/protocols server/protocols/wire server/requests server/requests/formats "
        "server/requests/memory", "absl"),
    "server/protocols/kserve": row(
        "proto kernels/core kernels/heads server/batching server/models server/requests", "absl"),
    "server/rpc/scan": row("server/protocols server/requests server/text/unicode", "absl grpc protobuf"),
    "server/rpc/call": row(
        "server/access server/limits server/retry server/threads server/metrics server/requests server/requests/memory "
        "server/rpc/scan", "absl grpc protobuf"),
    "server/rpc/tei": row(
        "proto kernels/heads server/access server/limits server/metrics server/models server/protocols server/requests "
        "server/rpc/call server/rpc/scan server/text/unicode", "absl grpc protobuf"),
    "server/rpc": row(
        "proto kernels/core server/access server/limits server/metrics server/models server/protocols server/protocols/* "
        "server/requests server/requests/memory server/rpc/call server/rpc/scan server/threads", "absl grpc protobuf"),
    "server/net": row("client/address", "absl"),
    "server/http": row("server/access server/requests server/retry", "absl", private="zlib"),
    "server/http/connection": row(
        "kernels/core server/access server/http server/metrics server/net server/requests server/requests/memory "
        "server/threads", "absl",
        private="boost"),
    "server/http/port": row(
        "server/access server/http server/http/connection server/limits server/metrics server/net server/requests "
        "server/retry server/threads", "absl",
        private="boost"),
    "server/http/client": row(
        "client/http kernels/core server/http server/tracing server/tracing/export", "absl"),
    "server/http/json": row("server/text/unicode", "absl", private="simdjson"),
    "server/http/doors": row(
        "kernels/core kernels/heads server/access server/http server/http/json server/limits server/metrics "
        "server/models server/requests server/requests/formats server/threads server/tracing", "absl"),
    "server/http/proto_json": row("kernels/core server/http/json", "absl protobuf"),
    "server/http/kserve": row(
        "proto kernels/core server/access server/http server/http/doors server/http/json server/http/proto_json "
        "server/metrics server/models server/protocols/kserve server/requests", "absl protobuf"),
    "server/http/attendant": row(
        "proto server/access server/http server/http/doors server/http/json server/http/proto_json server/metrics "
        "server/protocols server/protocols/attention server/protocols/encoder server/requests", "absl protobuf"),
    "server/http/console": row(
        "cmake server/access server/http server/http/attendant server/http/doors server/http/json server/metrics",
        "absl prometheus"),
    "server/log": row("server/http/json server/text/unicode server/threads", "absl", private="grpc protobuf spdlog"),
    "server": row(
        "client/flags kernels/core kernels/core/threads kernels/backends server/access server/limits server/log server/net server/threads server/batching "
        "server/models server/metrics server/protocols/* server/requests server/requests/memory server/rpc server/rpc/* server/http server/http/* "
        "server/tracing server/tracing/export",
        "absl grpc protobuf",
        private="spdlog"),

    "client": row("proto", "absl grpc protobuf"),
    "client/flags": row(libraries="absl", private="cli11"),  # the server's flags too
    "client/address": row(libraries="absl"),  # and these addresses
    "client/http": row("client/address", "absl", private="boost openssl"),  # the server's exporter of traces uses it too
    "client/load": row("client", "absl grpc", private="json"),
    "client/load/protocols": row("proto client client/load", "absl grpc"),
    "client/load/protocols/http": row(
        "proto client client/address client/http client/load client/load/protocols", "absl grpc json", private="protobuf"),
    "client/load/results": row("client/load cmake", "absl grpc json", private="zlib"),
    "client/heatmap": row(libraries="absl pango"),
    "client/cli": row("client client/flags client/heatmap", "absl json"),
    "client/cli/local": row("client/cli client/flags server/models", "absl json"),  # commands that ask no server
    "client/cli/files": row("client", "absl", private="json"),
    "client/cli/load": row("client/flags client/load client/load/* client/cli client/cli/files", "absl grpc json"),
    "client/cli/commands": row(
        "client client/flags client/heatmap client/cli client/cli/files", "absl json"),

    "tests": row(
        "proto kernels/* server server/* client client/*",
        "absl dnnl cuda json icu pango prometheus grpc protobuf spdlog zlib gtest benchmark"),
}

# Headers that every module may include: each stands alone, with nothing of the tree and at most Abseil.
ANYWHERE = {"kernels/core/check.h", "kernels/core/status_macros.h", "kernels/core/base/half.h"}

# A library by how its includes begin. What is neither here nor in the tree is the system's.
LIBRARIES = {
    "absl": ("absl/",),
    "dnnl": ("dnnl", "oneapi/"),
    "cuda": ("cuda", "cublas", "cudnn", "nvml"),
    "json": ("nlohmann/",),
    "cli11": ("CLI/",),
    "icu": ("unicode/",),
    "boost": ("boost/",),
    "simdjson": ("simdjson",),
    "zlib": ("zlib",),
    "pango": ("pango/",),
    "prometheus": ("prometheus/",),
    "grpc": ("grpc/", "grpcpp/"),
    "protobuf": ("google/protobuf/",),
    "openssl": ("openssl/",),
    "spdlog": ("spdlog/", "fmt/"),
    "gtest": ("gtest/", "gmock/"),
    "benchmark": ("benchmark/",),
}

MAX_LINES = {".h": 240, ".cuh": 240, ".cc": 400, ".cu": 400, ".inc": 400, ".py": 400, ".sh": 400}
MAX_COLUMNS = 100  # of C++ outside tests
MAX_FILES = 25  # in a folder
MAX_FUNCTION_LINES = 70

CODE_SUFFIXES = (".h", ".cuh", ".cc", ".cu", ".inc")
HEADER_SUFFIXES = (".h", ".cuh", ".inc")
SOURCE_SUFFIXES = CODE_SUFFIXES + (".proto", ".py", ".sh", ".cmake")
SOURCE_NAMES = ("CMakeLists.txt", "Dockerfile")
