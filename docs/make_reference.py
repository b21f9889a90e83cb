#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/flags.md, docs/metrics.md and docs/limits.md from what the programs say.

    docs/make_reference.py [--bin DIR] [--fake_cuda FILE] [--check]
      --bin        folder of attendant-server and attendant, default build/release/bin
      --fake_cuda  libattendant_fake_cuda.so: its metrics are a GPU's; default build/release/tests/support
      --check      write nothing; the exit code is 1 when a page is not what the programs say

Flags come from --help_markdown. Metrics come from a scrape of two servers that have answered a request, one of them
with a GPU that tests/support/fake_cuda.cc plays, and the methods from their table in the sources. Limits come from the
flags and from constants in the sources.
"""

import argparse
import collections
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests/golden"
MADE = "<!-- Made by docs/make_reference.py; a test fails when this page is stale. -->\n"

# Labels with a closed set of values, which the page lists. All others name a model, a build or a machine.
CLOSED_LABELS = ("file", "kind", "method", "phase", "reason", "result", "group")

# Limits without a flag: the constant, what it limits, and the answer beyond it.
CONSTANTS = (
    ("kMaxIdBytes", "bytes of a request's `id`", "INVALID_ARGUMENT"),
    ("kMaxSmallMessageBytes", "bytes of a request of a method without tensors", "INVALID_ARGUMENT"),
    ("kMaxElements", "elements of a repeated field of strings or messages, unless a flag says otherwise", "INVALID_ARGUMENT"),
    ("kMaxUnknownFields", "fields of a request that its type does not have", "INVALID_ARGUMENT"),
    ("kMaxPriority", "priority, and the lowest one with a minus sign", "INVALID_ARGUMENT"),
    ("kMaxTensorRank", "dimensions of an attention request's tensor", "INVALID_ARGUMENT"),
    ("kMaxNameBytes", "bytes of a model's name", "the server does not start"),
    ("kMaxJobs", "loads and unloads of models that wait", "RESOURCE_EXHAUSTED"),
    ("kMaxRegions", "registered regions of shared memory", "RESOURCE_EXHAUSTED"),
    ("kMaxMessageBytes", "bytes of an error's text", "the text is cut"),
    ("kPageConnections", "HTTP connections beside those of `--max_http_connections`", "the one idle for longest is closed"),
    ("kMaxTextBytes", "bytes of a text whose offsets are asked for", "INVALID_ARGUMENT"),
    ("kMaxDepth", "levels of a request's JSON", "INVALID_ARGUMENT"),
    ("kMaxRequestHeadBytes", "bytes of an HTTP request's head", "HTTP 431"),
    ("kMaxHeaders", "headers of an HTTP request", "HTTP 431"),
    ("kMaxTokenizerFileBytes", "bytes of a `tokenizer.json`", "the model does not load"),
    ("kMaxVocabularyBytes", "bytes of a vocabulary's words, and of all added tokens", "the model does not load"),
    ("kMaxItems", "characters of a text that a tokenizer replaces or cuts at", "the model does not load"),
    ("kMaxGroupDepth", "groups in each other in a regular expression of a tokenizer", "the model does not load"),
    ("kMaxTemplateParts", "tokens that a tokenizer's template makes, its texts counted as one each", "the model does not load"),
    ("kMaxNormalizedTimes", "times that a tokenizer's normalizer could make a text longer", "the model does not load"),
    ("kMaxPieceTimes", "times that a tokenizer's pre-tokenizer could make a piece longer", "the model does not load"),
    ("kMaxDecodedTimes", "times that a tokenizer's decoder could make tokens longer", "detokenizing gets INVALID_ARGUMENT"),
)


def run(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def flags_page(programs):
    server = run(programs / "attendant-server", "--help_markdown")
    client = run(programs / "attendant", "--help_markdown")
    return (f"# Flags\n\n{MADE}\nBoth programs take `--name=value` and `--name value`. The last use of a flag wins; "
            f"`--name=false` turns a switch off.\n\n# attendant-server\n{server}\n# attendant\n{client}")


class Server:
    """A server process that has answered one request for `model`."""

    def __init__(self, programs, model, *arguments):
        self.folder = tempfile.TemporaryDirectory()
        ports = pathlib.Path(self.folder.name, "ports")
        self.log = open(pathlib.Path(self.folder.name, "log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [programs / "attendant-server", "--listen=127.0.0.1:0", "--http_listen=127.0.0.1:0",
             f"--port_file={ports}", f"--model=tiny={model}", *arguments], stdout=self.log, stderr=self.log)
        self.ports = {}
        self.wait(lambda: ports.exists() and ports.read_text(encoding="utf-8").count("\n") == 2)
        self.ports = dict(line.split("=") for line in ports.read_text(encoding="utf-8").split())
        self.wait(lambda: self.get("/readyz") == "")
        run(programs / "attendant", "encode", f"--server=127.0.0.1:{self.ports['grpc']}", "--model=tiny",
            "--ids=1,2,3")

    def wait(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            if self.process.poll() is not None or time.monotonic() > end:
                self.log.seek(0)
                sys.exit(f"the server is not ready:\n{self.log.read()}")
            time.sleep(0.05)

    def get(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['http']}{path}", timeout=30) as answer:
                return answer.read().decode() if path == "/metrics" else ""
        except urllib.error.HTTPError as error:
            return str(error)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)
        self.log.close()
        self.folder.cleanup()


def read_exposition(text, families):
    """Adds to families: name -> {"help", "type", "labels": label -> values}."""
    for line in text.splitlines():
        if match := re.match(r"# (HELP|TYPE) (\S+) (.*)", line):
            families[match.group(2)][match.group(1).lower()] = match.group(3)
        elif match := re.match(r"([a-z_]+)(?:\{(.*)\})? ", line):
            name = match.group(1)
            if name not in families:
                name = re.sub(r"_(bucket|sum|count)$", "", name)
            for label, value in re.findall(r'(\w+)="([^"]*)"', match.group(2) or ""):
                if label != "le":
                    families[name].setdefault("labels", collections.defaultdict(set))[label].add(value)


def method_names():
    """All values of the label `method`: the series of most methods appear with the first request by each."""
    table = (ROOT / "server/metrics/metric_labels.h").read_text(encoding="utf-8")
    return re.findall(r'\{Method::\w+, "(\w+)"', table)


def label_text(label, values):
    if label not in CLOSED_LABELS:
        return f"`{label}`"
    if label == "method":
        values = method_names()
    return f"`{label}`: " + ", ".join(sorted(values))


def metrics_page(programs, fake_cuda):
    families = collections.defaultdict(dict)
    model = GOLDEN / "encoder/tiny_gelu"
    for arguments in ([f"--model=heads={GOLDEN / 'attention/mha'}"],
                      ["--backend=cuda", f"--cuda_library={fake_cuda}"]):
        with Server(programs, model, *arguments) as server:
            read_exposition(server.get("/metrics"), families)
    rows = []
    for name, family in sorted(families.items()):
        labels = "<br>".join(label_text(*item) for item in sorted(family.get("labels", {}).items()))
        rows.append(f"| `{name}` | {family['type']} | {labels} | {family['help']} |")
    return (f"# Metrics\n\n{MADE}\n`GET /metrics` on the HTTP port answers in Prometheus' text format. Times are in "
            "seconds. No label holds what a client sent.\nThe values of a label are those of a server that has answered "
            "one Encode; `code` is the name of a gRPC status. Of `method` all\nare listed; those of HTTP and of TEI's gRPC "
            "service appear with the first request by each.\nDevice metrics exist only where a GPU computes.\n\n"
            "`attendant_rejected_total` counts requests that a model does not compute: its queue is full, the deadline "
            "is too near\nor has passed, the client has cancelled, the model drains or has lost its GPU, memory is "
            "short. `attendant_refused_total`\ncounts what the server turns away to protect itself, whatever the model: "
            "calls without a valid API key, malformed messages,\ntoo much memory, clients that do not read. A request "
            "that the memory budgets refuse counts in both, if its model is known by\nthen. "
            "[access.md](access.md#what-counts-what-is-refused) lists each case.\n\n"
            "| metric | type | labels | meaning |\n|---|---|---|---|\n" + "\n".join(rows) + "\n")


def constant_value(name):
    """The value of a constant of the server. Its definitions must agree."""
    found = set()
    for path in sorted((ROOT / "server").rglob("*")):
        if path.suffix in (".h", ".cc"):
            found |= set(re.findall(rf"\b{name} = ([^;]+);", path.read_text(encoding="utf-8")))
    if len(found) != 1:
        sys.exit(f"{name} has {len(found)} values under server/")
    value = re.sub(r"\b(?:u?int\d+_t|uintmax_t|size_t)\{(\d+)\}", r"\1", found.pop().replace("'", ""))
    if not re.fullmatch(r"[\d<* ]+", value):
        sys.exit(f"{name} = {value}: not a number")
    shifted = re.fullmatch(r"(\d+) << (\d+)", value)
    return int(shifted.group(1)) << int(shifted.group(2)) if shifted else int(value)


def decode_threads(processors):
    """How many there are on so many processors, and that rule in words; out of the sources."""
    source = (ROOT / "server/app/running_app.cc").read_text(encoding="utf-8")
    rule = re.search(r"std::clamp\(ReadCpuBudget\(\)\.threads / (\d+), (\d+), (\d+)\)", source)
    divisor, least, most = map(int, rule.groups())
    return max(least, min(most, processors // divisor)), f"processors / {divisor}, at least {least} and at most {most}"


def memory_section(help_markdown, processors=4):
    """What a server of default flags takes on so many processors, part by part."""
    def default(flag):
        return int(re.search(rf"\| `--{flag} \w+` \| `(\d+)` \|", help_markdown).group(1))

    request, scratch = default("max_request_bytes"), default("max_attention_bytes")
    decoders, decoders_rule = decode_threads(processors)
    parts = (
        ("models; one that is replaced counts twice", "`attendant_model_weight_bytes` + `attendant_model_arena_bytes`",
         None),
        ("requests", "`--max_pending_request_bytes`", default("max_pending_request_bytes")),
        ("answers: f32 rows, message, send buffer", "3 × `--max_pending_response_bytes`",
         3 * default("max_pending_response_bytes")),
        ("open streams and watches", "`--max_open_stream_bytes`", default("max_open_stream_bytes")),
        ("gRPC calls that wait for their clients", "`--max_waiting_call_bytes`", default("max_waiting_call_bytes")),
        ("messages that gRPC receives", "16 × `--max_request_bytes`, at least 512 MiB", max(512 << 20, 16 * request)),
        (f"tokenizing, for each `decode` thread ({decoders_rule}); here {decoders}",
         "20 × `--max_request_bytes`, at least 160 MiB", decoders * max(160 << 20, 20 * request)),
        ("attention, for each replica of the service and of each attention module and version; here 1",
         "`--max_attention_bytes`", scratch),
        ("heads of HTTP requests, as fields", "384 KiB × (`--max_http_connections` + 64)",
         (default("max_http_connections") + 64) * (384 << 10)),
        ("the process itself", "64 MiB", 64 << 20),
    )
    rows = [f"| {part} | {rule} | {'' if size is None else f'{size >> 20:,}'} |" for part, rule, size in parts]
    total = sum(size for _, _, size in parts if size is not None)
    return ("## Memory\n\nA container's limit is the sum of these parts. Each is a bound under attack; honest traffic stays "
            "far below.\nThe flags lower it: the budgets first.\n\n| part | at most | MiB with default flags |\n|---|---|---|\n"
            + "\n".join(rows) + f"\n| all, without models | | {total >> 20:,} |\n")


def limits_page(programs):
    help_markdown = run(programs / "attendant-server", "--help_markdown")
    sections = re.split(r"\n(?=## )", help_markdown)
    flags = [s.strip() for s in sections if s.startswith(("## Batching", "## Limits"))]
    if len(flags) != 2:
        sys.exit("attendant-server --help_markdown has no sections 'Batching' and 'Limits'")
    rows = [f"| {what} | {constant_value(name):,} | {answer} |" for name, what, answer in CONSTANTS]
    return (f"# Limits\n\n{MADE}\nA request beyond a limit gets INVALID_ARGUMENT when it could never succeed, and "
            "RESOURCE_EXHAUSTED with a retry hint when it may\nsucceed later. The message names the field, the value and "
            "the limit. [Memory](#memory) adds them up.\n\n"
            "Two limits differ. A call that gives way to newer ones (`--max_waiting_call_bytes`) gets RESOURCE_EXHAUSTED without "
            "a hint:\nsend it again later. And gRPC itself refuses a message above `--max_request_bytes`, with RESOURCE_EXHAUSTED and "
            "\"Received\nmessage larger than max\". It never succeeds: do not send it again. HTTP answers 413.\n\n" +
            "\n\n".join(flags) +
            "\n\n## Fixed\n\n| limit of | value | beyond it |\n|---|---|---|\n" + "\n".join(rows) + "\n\n" +
            memory_section(help_markdown))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--fake_cuda", type=pathlib.Path,
                        default=ROOT / "build/release/tests/support/libattendant_fake_cuda.so")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    pages = {"flags.md": flags_page(arguments.bin), "metrics.md": metrics_page(arguments.bin, arguments.fake_cuda),
             "limits.md": limits_page(arguments.bin)}
    stale = False
    for name, text in pages.items():
        path = ROOT / "docs" / name
        if not arguments.check:
            path.write_text(text, encoding="utf-8")
        elif (old := path.read_text(encoding="utf-8") if path.exists() else "") != text:
            stale = True
            print(f"docs/{name} is stale; run docs/make_reference.py")
            print("\n".join(difflib.unified_diff(old.splitlines(), text.splitlines(), "committed", "made", n=0)))
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
