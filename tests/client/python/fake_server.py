# SPDX-License-Identifier: Apache-2.0
"""attendant.v1.Encoder, and KServe's changes of models, with answers of the test's choice."""

import functools
import threading
from concurrent import futures

import grpc
import numpy as np

from attendant.v1 import encoder_pb2 as pb
from attendant.v1.messages import load

_inference = load("inference/grpc_service.proto")

PUSHBACK = "grpc-retry-pushback-ms"


def embedding(text):
    """What the fake server answers for a text: [2]."""
    return [len(text), sum(map(ord, text)) % 1000]


def encoded(request):
    rows = np.array([embedding(sequence.text) for sequence in request.sequences.sequences], "<f4")
    tensor = pb.Tensor(dtype=pb.DTYPE_F32, shape=rows.shape, data=rows.tobytes())
    sequences = [pb.SequenceInfo(tokens=len(sequence.text)) for sequence in request.sequences.sequences]
    return pb.EncodeResponse(id=request.id, model=request.model, pooled=tensor, sequences=sequences)


def answer(request):
    """What ends a request of a stream."""
    return pb.EncodeStreamResponse(id=request.id, response=encoded(request))


def refusal(request, code, hint_ms=0):
    """The same, for one that failed."""
    return pb.EncodeStreamResponse(id=request.id, error=pb.Error(code=code.value[0], message="as told",
                                                                 retry_after_ms=hint_ms))


def model(name, version=1, state=pb.MODEL_STATE_READY, **fields):
    """A line of ListModels."""
    return pb.ModelInfo(name=name, version=version, state=state, **fields)


class FakeServer:
    """`script` holds what the next Encode calls and changes of models meet, in order: None is an answer, a function gets (request, context).
    Stream requests are answered by `on_stream(requests, context)`."""

    def __init__(self):
        self.lock = threading.Lock()
        self.script = []
        self.requests = []
        self.metadata = []
        self.changes = []
        self.models = [model("m")]
        self.listed = threading.Event()
        self.on_stream = None
        self.streams = 0
        self.pool = futures.ThreadPoolExecutor(16)
        self.server = grpc.server(self.pool)
        handlers = {
            "Encode": grpc.unary_unary_rpc_method_handler(
                self._encode, pb.EncodeRequest.FromString, pb.EncodeResponse.SerializeToString),
            "ListModels": grpc.unary_unary_rpc_method_handler(
                self._list_models, pb.ListModelsRequest.FromString, pb.ListModelsResponse.SerializeToString),
            "EncodeStream": grpc.stream_stream_rpc_method_handler(
                self._stream, pb.EncodeRequest.FromString, pb.EncodeStreamResponse.SerializeToString)}
        changes = {
            f"RepositoryModel{word}": grpc.unary_unary_rpc_method_handler(
                functools.partial(self._change, word), _inference[f"RepositoryModel{word}Request"].FromString,
                _inference[f"RepositoryModel{word}Response"].SerializeToString) for word in ("Load", "Unload")}
        self.server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler("attendant.v1.Encoder", handlers),
             grpc.method_handlers_generic_handler("inference.GRPCInferenceService", changes)])
        self.target = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def stop(self):
        self.server.stop(0).wait()
        self.pool.shutdown()

    def _encode(self, request, context):
        with self.lock:
            self.requests.append(request)
            self.metadata.append(dict(context.invocation_metadata()))
            step = self.script.pop(0) if self.script else None
        if step is not None:
            step(request, context)
        context.send_initial_metadata((("x-request-id", "as the real server does, with answers"),))
        return encoded(request)

    def _list_models(self, _, context):
        self.metadata.append(dict(context.invocation_metadata()))
        answer = pb.ListModelsResponse(models=self.models)
        self.listed.set()
        return answer

    def _change(self, word, request, context):
        self.changes.append((word, request.model_name))
        if self.script:
            self.script.pop(0)(request, context)
        return _inference[f"RepositoryModel{word}Response"]()

    def _stream(self, requests, context):
        self.streams += 1
        yield from self.on_stream(requests, context)


def fails(code, details="as told", pushback_ms=None):
    """A step of the script."""
    def step(_, context):
        if pushback_ms is not None:
            context.set_trailing_metadata(((PUSHBACK, str(pushback_ms)),))
        context.abort(code, details)
    return step
