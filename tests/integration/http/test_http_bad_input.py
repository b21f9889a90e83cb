# SPDX-License-Identifier: Apache-2.0
"""What no client sends, on every path: a clear error in that protocol's own shape, and the server lives."""

import json
import random
import socket
import time

import pytest

from harness import exposition, settings
from harness.server import wait_until

GOOD = {
    "/v1/embeddings": {"model": "minilm", "input": ["a", "b"], "encoding_format": "float", "dimensions": 8},
    "/embed": {"inputs": ["a", "b"], "truncate": True, "normalize": True, "dimensions": 8},
    "/": {"inputs": {"source_sentence": "a", "sentences": ["b"]}},
    "/embed_all": {"inputs": [[101, 102], [101, 102]]},
    "/similarity": {"inputs": {"source_sentence": "a", "sentences": ["b"]}, "parameters": {"truncate": True}},
    "/tokenize": {"inputs": "a", "add_special_tokens": False},
    "/v2/embed": {"model": "minilm", "texts": ["a"], "input_type": "search_query", "embedding_types": ["binary"]},
    "/v1/embed": {"model": "minilm", "inputs": [{"content": [{"type": "text", "text": "a"}]}], "truncate": "START"},
    "/score": {"model": "minilm", "text_1": "a", "text_2": ["b", "c"], "truncate_prompt_tokens": -1},
    "/pooling": {"model": "minilm", "input": ["a", [101, 102]], "encoding_format": "base64", "task": "embed"},
    "/v2/models/minilm/infer": {"id": "x", "parameters": {"priority": 1}, "outputs": [{"name": "sentence_embedding"}],
                                "inputs": [{"name": "text", "datatype": "BYTES", "shape": [1, 1], "data": ["a"]}]},
    "/attendant.v1.Encoder/Encode": {"model": "minilm", "id": "x", "priority": 1, "truncation": "TRUNCATION_RIGHT",
                                     "sequences": {"sequences": [{"text": "a"}, {"ids": {"token_ids": [101, 102]}}]},
                                     "outputs": {"pooled": {"dims": 8}, "attention_weights": {"layers": [0]}}},
    "/attendant.v1.Attention/Attend": {"query": {"dtype": "DTYPE_F32", "shape": [1, 1, 1], "data": "AACAPw=="},
                                       "scale": 1, "local": {"window": 1}, "weights": "ATTENTION_WEIGHTS_PER_HEAD"},
}
ODD = [None, True, 0, -1, 1.5, 1e300, 2**63, 2**64, "", "\0", "x" * 70000, [], [[]], [[[]]], {}, {"a": {}}, [None],
       [1, "a"], [-1], [2**31], [1e9], ["\ud800"], "é🙂"]
DEEP = "[" * 100_000
MARK = b"\xef\xbb\xbf"  # the byte order mark, which counts for nothing before JSON


def message_of(path, answer):
    """The text of an error; fails when it has not the protocol's shape."""
    if path in ("/v1/embeddings", "/score", "/pooling"):
        assert set(answer["error"]) == {"message", "type", "param", "code"}
        return answer["error"]["message"]
    if path in ("/v1/embed", "/v2/embed"):
        return answer["message"]
    if path.startswith("/attendant.v1"):
        assert set(answer) == {"code", "message"}
        return answer["message"]
    if path.startswith("/v2/models"):
        return answer["error"]
    assert set(answer) == {"error", "error_type"}
    return answer["error"]


def check(server, path, body, headers=None):
    code, text = server.post(path, body, {"X-Model": "minilm"} | (headers or {}))
    assert code in (200, 400, 404, 413, 415, 501), (path, body[:200], code, text[:200])
    if code != 200:
        assert message_of(path, json.loads(text)), (path, body[:200])
    return code


def changed(value):
    """Copies of a message in which one field is odd, or gone."""
    if isinstance(value, dict):
        for name in value:
            yield {key: inner for key, inner in value.items() if key != name}
            for inner in [*ODD, *changed(value[name])]:
                yield value | {name: inner}
    elif isinstance(value, list):
        for i in range(len(value)):
            for inner in [*ODD, *changed(value[i])]:
                yield value[:i] + [inner] + value[i + 1:]


@pytest.mark.parametrize("path", GOOD)
def test_odd_fields(server, path):
    assert check(server, path, json.dumps(GOOD[path])) == 200
    for message in changed(GOOD[path]):
        check(server, path, json.dumps(message))


@pytest.mark.parametrize("path", GOOD)
def test_damaged_bytes(server, path):
    good = json.dumps(GOOD[path]).encode()
    for cut in range(len(good)):
        assert check(server, path, good[:cut]) == 400
    generator = random.Random(path)
    for _ in range(300):
        damaged = bytearray(good)
        for _ in range(generator.randrange(1, 4)):
            damaged[generator.randrange(len(good))] = generator.randrange(256)
        check(server, path, bytes(damaged), {"Inference-Header-Content-Length": str(generator.randrange(-2, 200))}
              if generator.random() < 0.3 else None)
    for body in (DEEP, '{"inputs":' + DEEP, "[" + "1," * 100_000 + "1]", "\0" * 1000, b"\xff" * 1000,
                 '{"inputs":[' + '"",' * 5000 + '""]}', MARK, MARK + good[:-1], good + MARK, '{"a":1}' * 2):
        assert check(server, path, body) == 400
    assert check(server, path, MARK + good) == 200
    for coding in ("gzip", "br", "deflate"):
        assert check(server, path, good, {"Content-Encoding": coding}) in (400, 415)


def test_broken_http(server):
    """Nothing that is not HTTP ends the server, or keeps a probe waiting."""
    generator = random.Random(1)
    head = b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\n"
    pieces = [head + b"Content-Length: x\r\n\r\n", head + b"Content-Length: -1\r\n\r\n",
              head + b"Content-Length: 99999999999999999999\r\n\r\n",
              head + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
              head + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
              head + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
              head + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", head + b"Bad Header\r\n\r\n",
              head + b"X: " + b"a" * 20000, head + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
              head + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhelloX", b"\0" * 100, b"\x16\x03\x01\x02\x00\x01\x00"]
    pieces += [bytes(generator.randrange(256) for _ in range(200)) for _ in range(50)]
    for piece in pieces:
        with socket.create_connection(server.http.split(":"), timeout=60) as connection:
            connection.sendall(piece)
            connection.shutdown(socket.SHUT_WR)
            received = b""
            while data := connection.recv(4096):
                received += data
            assert not received or received.startswith((b"HTTP/1.1 4", b"HTTP/1.1 501 ")), piece
    start = time.monotonic()
    assert server.get("/healthz")[0] == 200
    assert time.monotonic() - start < 5


def test_slow_bodies_do_not_keep_a_probe_waiting(server):
    slow = []
    for _ in range(300):
        connection = socket.create_connection(server.http.split(":"), timeout=60)
        connection.sendall(b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n{")
        slow.append(connection)
    times = []
    for _ in range(20):
        start = time.monotonic()
        assert server.get("/healthz")[0] == 200 and server.get("/readyz")[0] == 200
        times.append(time.monotonic() - start)
    assert min(times) < 0.2, times  # the fastest: other programs compute too
    assert server.post("/embed", '{"inputs":"x"}', {"X-Model": "minilm"})[0] == 200
    for connection in slow:
        connection.close()


def test_a_reader_that_does_not_read_is_cut_off(start_server):
    own = start_server({"tiny": settings.TINY_MODEL}, "--max_write_s=1").wait_ready()
    body = json.dumps({"inputs": [[5] * 40] * 3000}).encode()  # its answer has about 60 MB
    with socket.create_connection(own.http.split(":"), timeout=30) as connection:
        connection.sendall(b"POST /embed_all HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        wait_until("the refusal", 60, lambda: exposition.Page(own.get("/metrics")[1]).value(
            "attendant_refused_total", reason="slow_reader") == 1)
