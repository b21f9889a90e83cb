#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Embeds the texts of JSONL or Parquet files with many servers, and writes a folder of Parquet or JSONL parts.

    embed_corpus.py corpus.jsonl --output embedded --servers host-a:8001,host-b:8001

Started again with the same arguments it goes on where it was: a part that is there is not computed again. Each row is in
exactly one part, in the order of the inputs. The file _SUCCESS is written last.

Exit codes: 0 done; 2 wrong usage, or an input that cannot be used; 3 the servers did not answer for --give_up_s.
"""

import argparse
import contextlib
import fcntl
import functools
import json
import os
import pathlib
import socket
import sys
import tempfile
import time

import pyarrow as pa
import pyarrow.parquet as pq

import attendant_parts
from attendant_parts import Job, Part, Unreachable, UsageError, compute, part_path

EXIT_USAGE, EXIT_UNREACHABLE = 2, 3


def plan(paths, rows_per_part):
    """The parts of all inputs."""
    parts = []
    for path in paths:
        ranges = parquet_ranges if path.suffix == ".parquet" else jsonl_ranges
        for start, size, rows in ranges(path, rows_per_part):
            row = parts[-1].row + parts[-1].rows if parts else 0
            parts.append(Part(len(parts), str(path), start, size, row, rows))
    return parts


def jsonl_ranges(path, rows_per_part):
    start = end = rows = 0
    with open(path, "rb") as lines:
        for line in lines:
            end += len(line)
            rows += 1
            if rows == rows_per_part:
                yield start, end - start, rows
                start, rows = end, 0
    if rows:
        yield start, end - start, rows


def parquet_ranges(path, rows_per_part):
    try:
        total = pq.ParquetFile(path).metadata.num_rows
    except pa.ArrowInvalid as error:
        raise UsageError(f"{path}: {error}") from None
    for start in range(0, total, rows_per_part):
        rows = min(rows_per_part, total - start)
        yield start, rows, rows


def remove_unfinished(output):
    """What a killed worker was writing. Only for times when no worker writes."""
    for left in output.glob(".part-*"):
        left.unlink()


def claim(output, description):
    """A lock on the folder. What is there must be of the same job."""
    output.mkdir(parents=True, exist_ok=True)
    lock = open(output / ".lock", "w", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise UsageError(f"another process writes to {output}") from None
    written, text = output / "job.json", json.dumps(description, indent=1) + "\n"
    if written.exists():
        before = json.loads(written.read_text(encoding="utf-8"))
        changed = [key for key in description if before.get(key) != description[key]]
        if changed:
            raise UsageError(f"{output} holds another job, with another {' and '.join(changed)}: choose another folder")
    else:
        partial = output / ".job.json"
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, written)
    remove_unfinished(output)
    return lock


@contextlib.contextmanager
def results(job, parts, arguments):
    """An iterator over the rows of each part, as parts end."""
    if not arguments.workers and not arguments.scheduler:
        yield (compute(job, part) for part in parts)
        return
    import distributed
    with contextlib.ExitStack() as stack:
        address = arguments.scheduler
        if not address:
            address = stack.enter_context(distributed.LocalCluster(
                n_workers=arguments.workers, threads_per_worker=arguments.threads, dashboard_address=None))
        client = stack.enter_context(distributed.Client(address))
        if arguments.scheduler:  # the local cluster finds the module, and uploads load it anew here: other classes of errors
            client.upload_file(attendant_parts.__file__)  # to workers of later too
        futures = client.map(functools.partial(compute, job), parts, pure=False)
        ended = distributed.as_completed(futures)
        yield (future.result() for future in ended)


def run(job, parts, arguments):
    from tqdm import tqdm
    open_parts = [part for part in parts if not part_path(job, part).exists()]
    total = sum(part.rows for part in parts)
    left = sum(part.rows for part in open_parts)
    start = time.monotonic()
    with tqdm(total=total, initial=total - left, unit=" texts", smoothing=0.05, mininterval=0.5) as bar:
        if open_parts:
            with results(job, open_parts, arguments) as rows:
                for done in rows:
                    bar.update(done)
    seconds = time.monotonic() - start
    missing = [part.index for part in parts if not part_path(job, part).exists()]
    assert not missing, f"parts {missing} were reported and are not there"
    remove_unfinished(pathlib.Path(job.output))
    success = pathlib.Path(job.output) / "_SUCCESS"
    success.write_text(json.dumps({"rows": total, "parts": len(parts)}) + "\n", encoding="utf-8")
    print(f"{left} texts in {seconds:.1f} s, {left / seconds:.0f} texts/s; {total} in all, {len(parts)} parts in {job.output}")


def compile_descriptors(proto):
    from grpc_tools import protoc
    with tempfile.NamedTemporaryFile() as file:
        if protoc.main(["protoc", f"-I{proto}", "--include_imports", f"--descriptor_set_out={file.name}",
                        str(proto / "attendant/v1/encoder.proto")]):
            raise UsageError(f"--proto {proto}: cannot compile attendant/v1/encoder.proto")
        return file.read()


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="+", type=pathlib.Path, help="files that end in .jsonl or .parquet")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="folder of the parts")
    parser.add_argument("--format", choices=["parquet", "jsonl"], default="parquet", help="of the parts")
    parser.add_argument("--servers", default="127.0.0.1:8001",
                        help="HOST:PORT,... or any gRPC target, as dns:///attendant-headless:8001")
    parser.add_argument("--tls_ca", default="", help="encrypt; trust the authorities in this PEM file")
    parser.add_argument("--api_key_file", default="", help="file with the API key to send, which may infer and read")
    parser.add_argument("--model", default="", help="not needed when the servers have one model")
    parser.add_argument("--prompt_name", help="prompt of the model before each text; '' is none; without it, the default one")
    parser.add_argument("--text", default="text", help="field or column of the texts")
    parser.add_argument("--id", default="", help="field or column to write beside each embedding")
    parser.add_argument("--rows_per_part", type=int, default=4096, help="what is lost when a worker dies")
    parser.add_argument("--rows_per_request", type=int, default=32)
    parser.add_argument("--workers", type=int, default=2, help="processes on this machine; 0 is this process alone")
    parser.add_argument("--threads", type=int, default=2, help="parts that a worker computes at the same time")
    parser.add_argument("--scheduler", default="", help="address of a Dask cluster, in the place of --workers")
    parser.add_argument("--give_up_s", type=float, default=600, help="how long to try when no server answers")
    parser.add_argument("--proto", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2] / "proto",
                        help="folder of attendant/v1/encoder.proto")
    arguments = parser.parse_args()
    if min(arguments.rows_per_part, arguments.rows_per_request, arguments.threads) < 1 or arguments.workers < 0:
        parser.error("numbers of rows and threads must be positive")
    return arguments


def absolute(path):
    return str(pathlib.Path(path).resolve()) if path else ""


def target(servers, encrypted):
    """One gRPC target for all addresses. gRPC resolves one name; several are resolved here, once."""
    if "://" in servers or servers.startswith(("dns:", "ipv4:", "ipv6:", "unix:")):
        return servers
    addresses = servers.split(",")
    if len(addresses) == 1:
        return f"dns:///{servers}"
    if encrypted:
        raise UsageError("--tls_ca: --servers must be one name, which their certificates have, as dns:///NAME:8001")
    for family, scheme, form in ((socket.AF_INET, "ipv4", "{}:{}"), (socket.AF_INET6, "ipv6", "[{}]:{}")):
        try:
            return f"{scheme}:" + ",".join(form.format(*found) for server in addresses for found in resolve(server, family))
        except socket.gaierror as error:
            problem = error.strerror
    raise UsageError(f"--servers {servers}: {problem}")


def resolve(server, family):
    """The addresses (host, port) of HOST:PORT, each once."""
    host, _, port = server.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise UsageError(f"--servers: '{server}' is not HOST:PORT")
    found = socket.getaddrinfo(host.strip("[]"), int(port), family, socket.SOCK_STREAM)
    return dict.fromkeys(address[:2] for *_, address in found)


def main():
    arguments = parse()
    try:
        for path in arguments.inputs:
            if path.suffix not in (".jsonl", ".parquet") or not path.is_file():
                raise UsageError(f"{path} is no file that ends in .jsonl or .parquet")
        job = Job(servers=target(arguments.servers, arguments.tls_ca), tls_ca=absolute(arguments.tls_ca),
                  api_key_file=absolute(arguments.api_key_file), model=arguments.model, version="",
                  prompt_name=arguments.prompt_name, output=str(arguments.output.resolve()), format=arguments.format,
                  text=arguments.text, id=arguments.id, id_type="", rows_per_request=arguments.rows_per_request,
                  give_up_s=arguments.give_up_s, descriptors=compile_descriptors(arguments.proto))
        model = attendant_parts.model_info(job)
        job = job._replace(model=model["name"], version=str(model["version"]))
        inputs = [[str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns] for path in arguments.inputs]
        description = {"inputs": inputs, "model": model, "rows_per_part": arguments.rows_per_part,
                       "prompt_name": job.prompt_name, "format": job.format, "text": job.text, "id": job.id}
        with claim(arguments.output, description):
            parts = plan([path.resolve() for path in arguments.inputs], arguments.rows_per_part)
            if job.id and parts:
                job = job._replace(id_type=attendant_parts.id_type(job, parts[0]))
            run(job, parts, arguments)
    except UsageError as error:
        print(f"embed_corpus: {error}", file=sys.stderr)
        return EXIT_USAGE
    except Unreachable as error:
        print(f"embed_corpus: no server answers: {error}", file=sys.stderr)
        return EXIT_UNREACHABLE
    return 0


if __name__ == "__main__":
    exit_code = main()
    # After an error calls may be on their way still. An interpreter that frees them while it ends can wait for ever: gRPC's
    # thread no longer runs, and may have their locks.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code)
