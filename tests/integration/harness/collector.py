# SPDX-License-Identifier: Apache-2.0
"""An OpenTelemetry collector that keeps the spans it gets: OTLP over HTTP, in JSON."""

import base64
import gzip
import http.server
import json
import threading

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

IDS = ("traceId", "spanId", "parentSpanId")


def with_binary_ids(value):
    """OTLP writes ids in hexadecimal, protobuf's own JSON in base64; all else is the same."""
    if isinstance(value, list):
        return [with_binary_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: base64.b64encode(bytes.fromhex(item)).decode() if name in IDS else with_binary_ids(item)
            for name, item in value.items()}


def attributes(message):
    """{name: value} of a span or of a resource; no name occurs twice."""
    found = {entry.key: getattr(entry.value, entry.value.WhichOneof("value")) for entry in message.attributes}
    assert len(found) == len(message.attributes)
    return found


class Collector:
    """Listens on a free port of the loopback interface, or on `port`. `answer(n)` is code and headers for the request
    number n, from 1; without it, each is taken. `context` is of TLS."""

    def __init__(self, port=0, answer=None, context=None):
        self.requests = []  # headers and message of each, as it came
        self.resources = []
        self.spans = []  # of the requests that were taken
        self.faults = []
        self.lock = threading.Lock()
        self.answer = answer or (lambda number: (200, {}))
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                collector.take(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # a connection that ends early
        if context is not None:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                     do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        self.url = f"{'http' if context is None else 'https'}://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def take(self, handler):
        try:
            body = handler.rfile.read(int(handler.headers["content-length"]))
            with self.lock:
                message = self.read(handler, body)
                self.requests.append((handler.headers, message))
                number = len(self.requests)
            code, headers = self.answer(number)
        except Exception as error:  # pylint: disable=broad-except
            self.faults.append(repr(error))
            code, headers = 400, {}
        if code == 200:
            with self.lock:
                for resource in message.resource_spans:
                    self.resources.append(attributes(resource.resource))
                    self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", "2")
        handler.end_headers()
        handler.wfile.write(b"{}")

    @staticmethod
    def read(handler, body):
        assert handler.path == "/v1/traces" and handler.headers["content-type"] == "application/json"
        if handler.headers["content-encoding"] == "gzip":
            body = gzip.decompress(body)
        return json_format.ParseDict(with_binary_ids(json.loads(body)), ExportTraceServiceRequest())

    def of_trace(self, trace_id):
        with self.lock:
            return [span for span in self.spans if span.trace_id.hex() == trace_id]

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
        assert not self.faults, self.faults
