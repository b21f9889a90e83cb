# SPDX-License-Identifier: Apache-2.0
"""One part of a corpus: read, embedded by the servers, written. Workers import this module; it needs grpcio, protobuf,
NumPy and PyArrow there."""

import collections
import functools
import json
import os
import pathlib
import time
import uuid

import grpc
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "attendant.v1"
WINDOW = 4  # requests of a part at the same time
CALL_SECONDS = 120
TRANSIENT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.DEADLINE_EXCEEDED)
SERVICE_CONFIG = json.dumps({"loadBalancingConfig": [{"round_robin": {}}]})

# A range of one input. JSONL: `start` is a byte and `size` a number of bytes; Parquet: both count rows of the file.
# `row` is the number of its first row in the corpus.
Part = collections.namedtuple("Part", "index path start size row rows")
# What all parts need. `descriptors` is a FileDescriptorSet of encoder.proto, for workers that have no copy of it.
Job = collections.namedtuple("Job", "servers model output format text id rows_per_request give_up_s descriptors")


class UsageError(Exception):
    """The user's input cannot be used."""


class Unreachable(Exception):
    """The servers did not answer in time."""


def read(job, part):
    """Texts and, with --id, ids of a part."""
    rows = read_parquet(job, part) if part.path.endswith(".parquet") else read_jsonl(job, part)
    for number, row in enumerate(rows, part.row):
        if not isinstance(row.get(job.text), str):
            raise UsageError(f"{part.path}: row {number} of the corpus has no text in '{job.text}'")
        if job.id and not isinstance(row.get(job.id), (str, int)):
            raise UsageError(f"{part.path}: row {number} of the corpus has no text or whole number in '{job.id}'")
    return rows


def read_jsonl(job, part):
    with open(part.path, "rb") as file:
        file.seek(part.start)
        lines = file.read(part.size).splitlines()
    rows = []
    for number, line in enumerate(lines, part.row):
        try:
            rows.append(json.loads(line))
        except ValueError as error:
            raise UsageError(f"{part.path}: row {number} of the corpus is not JSON: {error}") from None
        if not isinstance(rows[-1], dict):
            raise UsageError(f"{part.path}: row {number} of the corpus is not a JSON object")
    return rows


def read_parquet(job, part):
    """Only the groups of rows that the part touches are read."""
    file = pq.ParquetFile(part.path)
    columns = [job.text] + ([job.id] if job.id else [])
    missing = set(columns) - set(file.schema_arrow.names)
    if missing:
        raise UsageError(f"{part.path} has no column {sorted(missing)[0]}")
    groups, first, at = [], None, 0
    for group in range(file.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        if at < part.start + part.size and at + rows > part.start:
            first = at if first is None else first
            groups.append(group)
        at += rows
    table = file.read_row_groups(groups, columns=columns)
    return table.slice(part.start - first, part.size).to_pylist()


@functools.lru_cache(maxsize=4)
def messages(descriptors):
    """name -> class of a message of attendant.v1."""
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors).file:
        pool.Add(file)
    return lambda name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))


@functools.lru_cache(maxsize=4)
def channel(servers):
    """One for each process: it spreads calls over all servers."""
    return grpc.insecure_channel(servers, options=[
        ("grpc.service_config", SERVICE_CONFIG), ("grpc.max_receive_message_length", -1),
        ("grpc.max_reconnect_backoff_ms", 2000)])


def method(job, name, request, answer):
    make = messages(job.descriptors)
    return channel(job.servers).unary_unary(
        f"/{PACKAGE}.Encoder/{name}", request_serializer=make(request).SerializeToString,
        response_deserializer=make(answer).FromString)


def insist(job, start):
    """The answer of a call that start() begins; begun again while servers are away or full."""
    end, pause = time.monotonic() + job.give_up_s, 0.1
    call = start()
    while True:
        try:
            return call.result()
        except grpc.RpcError as error:
            if error.code() not in TRANSIENT:
                raise UsageError(f"{error.code().name}: {error.details()}") from None
            if time.monotonic() + pause > end:
                raise Unreachable(f"{error.code().name}: {error.details()}") from None
        time.sleep(pause)
        pause = min(2 * pause, 5)
        call = start()


def model_info(job):
    """The model as the servers describe it: name, version, dtype."""
    make = messages(job.descriptors)
    list_models = method(job, "ListModels", "ListModelsRequest", "ListModelsResponse")
    listed = insist(job, lambda: list_models.future(make("ListModelsRequest")(), timeout=CALL_SECONDS)).models
    fitting = [info for info in listed if info.name == job.model or not job.model]
    if len(fitting) != 1:
        names = ", ".join(info.name for info in listed)
        raise UsageError(f"--model must be one of: {names}" if names else "the servers have no model")
    info = fitting[0]
    return {"name": info.name, "version": info.version, "dtype": info.dtype}


def embed(job, texts):
    """[rows, dims]"""
    make = messages(job.descriptors)
    encode = method(job, "Encode", "EncodeRequest", "EncodeResponse")

    def begin(first):
        message = make("EncodeRequest")(model=job.model)
        message.outputs.pooled.SetInParent()
        for text in texts[first:first + job.rows_per_request]:
            message.sequences.sequences.add(text=text)
        return functools.partial(encode.future, message, timeout=CALL_SECONDS)

    found, waiting = [], collections.deque()
    for first in range(0, len(texts), job.rows_per_request):
        start = begin(first)
        waiting.append((start, start()))
        if len(waiting) == WINDOW:
            found.append(collect(job, *waiting.popleft()))
    found += [collect(job, *item) for item in waiting]
    return np.concatenate(found)


def collect(job, start, call):
    """[rows of the request, dims]"""
    calls = iter([call])
    tensor = insist(job, lambda: next(calls, None) or start()).pooled
    return np.frombuffer(tensor.data, "<f4").reshape(tensor.shape)


def part_path(job, part):
    return pathlib.Path(job.output) / f"part-{part.index:06d}.{job.format}"


def compute(job, part):
    """Writes a part whole or not at all: two workers that compute the same part write the same bytes. Its rows."""
    rows = read(job, part)
    values = embed(job, [row[job.text] for row in rows])
    columns = {"row": pa.array(range(part.row, part.row + part.rows), pa.int64())}
    if job.id:
        columns["id"] = pa.array([row[job.id] for row in rows])
    flat = pa.array(values.reshape(-1), pa.float32())
    columns["embedding"] = pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
    table = pa.table(columns)
    path = part_path(job, part)
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    if job.format == "parquet":
        pq.write_table(table, partial, compression="zstd")
    else:
        with open(partial, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in table.to_pylist())
    with open(partial, "rb") as file:
        os.fsync(file.fileno())
    os.replace(partial, path)
    return part.rows
