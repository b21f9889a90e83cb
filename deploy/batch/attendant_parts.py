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
MAX_FILE_BYTES = 16 << 20  # of certificates, or of a key
MAX_REQUEST_BYTES = 1 << 20  # of texts in a request; a longer text goes alone
TOO_LARGE = "larger than max"  # gRPC's words about a message above --max_request_bytes, which has a transient code
CERTIFICATE = "CERTIFICATE_VERIFY_FAILED"  # the same of a certificate that --tls_ca has not signed
TRANSIENT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.DEADLINE_EXCEEDED)
SERVICE_CONFIG = json.dumps({"loadBalancingConfig": [{"round_robin": {}}]})

# A range of one input. JSONL: `start` is a byte and `size` a number of bytes; Parquet: both count rows of the file.
# `row` is the number of its first row in the corpus.
Part = collections.namedtuple("Part", "index path start size row rows")
# What all parts need. `version` is that of the model; empty: the server chooses. `prompt_name` is None for the model's
# default. `id_type` is a key of ID_TYPES. `tls_ca` and `api_key_file` are files, or empty: workers read them, so that a key
# is in no message or log of Dask. `descriptors` is a FileDescriptorSet of encoder.proto, for workers without a copy of it.
Job = collections.namedtuple(
    "Job", "servers tls_ca api_key_file model version prompt_name output format text id id_type rows_per_request give_up_s "
           "descriptors")


class UsageError(Exception):
    """The user's input cannot be used."""


class Unreachable(Exception):
    """The servers did not answer in time."""


def read(job, part):
    """Texts and, with --id, ids of a part."""
    rows = read_rows(job, part)
    for number, row in enumerate(rows, part.row):
        if not is_text(row.get(job.text)):
            raise UsageError(f"{part.path}: row {number} of the corpus has no text in '{job.text}'")
        if job.id and not ID_TYPES[job.id_type].fits(row.get(job.id)):
            raise UsageError(f"{part.path}: row {number} of the corpus has no {ID_TYPES[job.id_type].words} in '{job.id}', "
                             "as the first row has")
    return rows


def read_rows(job, part):
    return read_parquet(job, part) if part.path.endswith(".parquet") else read_jsonl(job, part)


def is_text(value):
    r"""JSON may hold half of a surrogate pair, as "\ud800", which is no text in UTF-8."""
    return isinstance(value, str) and not any("\ud800" <= char <= "\udfff" for char in value)


def is_whole_number(value):
    return isinstance(value, int) and not isinstance(value, bool) and -2**63 <= value < 2**63


IdType = collections.namedtuple("IdType", "words fits arrow")
ID_TYPES = {"text": IdType("text", is_text, pa.string()),
            "number": IdType("whole number of 64 bits", is_whole_number, pa.int64())}


def id_type(job, part):
    """The type of the ids in all parts: that of the first row, which is in `part`."""
    first = read_rows(job, part)[0].get(job.id)
    for name, known in ID_TYPES.items():
        if known.fits(first):
            return name
    words = " or ".join(known.words for known in ID_TYPES.values())
    raise UsageError(f"{part.path}: row 0 of the corpus has no {words} in '{job.id}'")


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
def channel(servers, tls_ca):
    """One for each process: it spreads calls over all servers."""
    options = [("grpc.service_config", SERVICE_CONFIG), ("grpc.max_receive_message_length", -1),
               ("grpc.max_reconnect_backoff_ms", 2000)]
    if not tls_ca:
        return grpc.insecure_channel(servers, options)
    return grpc.secure_channel(servers, grpc.ssl_channel_credentials(read_file("--tls_ca", tls_ca)), options)


@functools.lru_cache(maxsize=4)
def metadata(api_key_file):
    """Of every call."""
    if not api_key_file:
        return ()
    words = read_file("--api_key_file", api_key_file).decode("ascii", "replace").split()
    if not words or not words[0].isascii():
        raise UsageError(f"--api_key_file {api_key_file}: its first word must be a key in ASCII")
    return (("authorization", f"Bearer {words[0]}"),)


def read_file(flag, path):
    try:
        with open(path, "rb") as file:
            contents = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{flag} {path}: {error.strerror}") from None
    if len(contents) > MAX_FILE_BYTES:  # /dev/zero has no end
        raise UsageError(f"{flag} {path}: it has more than {MAX_FILE_BYTES} bytes")
    return contents


def method(job, name, request, answer):
    """start(message): begins a call."""
    make = messages(job.descriptors)
    call = channel(job.servers, job.tls_ca).unary_unary(
        f"/{PACKAGE}.Encoder/{name}", request_serializer=make(request).SerializeToString,
        response_deserializer=make(answer).FromString)
    return functools.partial(call.future, metadata=metadata(job.api_key_file), timeout=CALL_SECONDS)


def insist(job, start):
    """The answer of a call that start() begins; begun again while servers are away or full."""
    end, pause = time.monotonic() + job.give_up_s, 0.1
    call = start()
    while True:
        try:
            return call.result()
        except grpc.RpcError as error:  # its locks cannot leave a worker: no error below may have it as its context
            code, details = error.code(), error.details()
        if code not in TRANSIENT or TOO_LARGE in details or CERTIFICATE in details:
            raise UsageError(f"{code.name}: {details}")
        if time.monotonic() + pause > end:
            raise Unreachable(f"{code.name}: {details}")
        time.sleep(pause)
        pause = min(2 * pause, 5)
        call = start()


def list_models(job):
    make = messages(job.descriptors)
    start = method(job, "ListModels", "ListModelsRequest", "ListModelsResponse")
    return insist(job, lambda: start(make("ListModelsRequest")())).models


def serves(info):
    """Whether it answers requests; an idle model is loaded for them."""
    words = info.DESCRIPTOR.fields_by_name["state"].enum_type.values_by_number
    return words[info.state].name in ("MODEL_STATE_READY", "MODEL_STATE_IDLE")


def model_info(job):
    """The model as the servers describe it: name, dtype, and the version that answers, which is the highest one."""
    listed = list_models(job)
    names = sorted({info.name for info in listed})
    fitting = [name for name in names if name == job.model or not job.model]
    if len(fitting) != 1:
        raise UsageError(f"--model must be one of: {', '.join(names)}" if names else "the servers have no model")
    if not any(serves(info) for info in listed if info.name == fitting[0]):
        embed(job._replace(model=fitting[0]), ["load"])  # a model tells its dtype once it has loaded
        listed = list_models(job)
    versions = [info for info in listed if info.name == fitting[0]]
    info = max(versions, key=lambda info: (serves(info), info.version))
    return {"name": info.name, "version": info.version, "dtype": info.dtype}


def groups(texts, most):
    """The texts of each request, at most `most`."""
    group, size = [], 0
    for text in texts:
        more = len(text.encode())
        if group and (len(group) == most or size + more > MAX_REQUEST_BYTES):
            yield group
            group, size = [], 0
        group.append(text)
        size += more
    if group:
        yield group


def embed(job, texts):
    """[rows, dims]"""
    make = messages(job.descriptors)
    encode = method(job, "Encode", "EncodeRequest", "EncodeResponse")

    def begin(group):
        message = make("EncodeRequest")(model=job.model, model_version=job.version, prompt_name=job.prompt_name)
        message.outputs.pooled.SetInParent()
        for text in group:
            message.sequences.sequences.add(text=text)
        return functools.partial(encode, message)

    found, waiting = [], collections.deque()
    for group in groups(texts, job.rows_per_request):
        start = begin(group)
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
        columns["id"] = pa.array([row[job.id] for row in rows], ID_TYPES[job.id_type].arrow)
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
