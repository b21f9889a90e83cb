# SPDX-License-Identifier: Apache-2.0
"""A client of attendant.v1 on stubs that are compiled from proto/ when the tests start."""

import importlib
import sys
import tempfile

import grpc
import numpy as np
from grpc_tools import protoc

from harness import settings

DEADLINE = 60 * settings.PATIENCE


def compiled(package, *names):
    """The messages and the stubs of proto/PACKAGE/NAME.proto, for each name."""
    folder = tempfile.TemporaryDirectory(prefix="attendant-stubs-")
    proto = settings.ROOT / "proto"
    files = [str(proto / package / f"{name}.proto") for name in names]
    code = protoc.main(["protoc", f"-I{proto}", f"--python_out={folder.name}", f"--grpc_python_out={folder.name}",
                        *files])
    assert code == 0, "protoc failed"
    sys.path.insert(0, folder.name)
    try:
        return [importlib.import_module(f"{package.replace('/', '.')}.{name}_{kind}")
                for name in names for kind in ("pb2", "pb2_grpc")]
    finally:
        for name in ("attendant", "attendant.v1"):  # also the name of the package of client/python
            sys.modules.pop(name, None)
        sys.path.remove(folder.name)
        folder.cleanup()


pb, stubs, attention_pb, attention_stubs = compiled("attendant/v1", "encoder", "attention")


def ids(token_ids, mask=None, segments=None):
    """A Sequence of token ids."""
    return pb.Sequence(ids=pb.TokenIds(token_ids=list(token_ids), attention_mask=list(mask if mask is not None else []),
                                       segment_ids=list(segments if segments is not None else [])))


def texts(*strings):
    """Sequences of texts."""
    return [pb.Sequence(text=string) for string in strings]


def request(model, sequences, **outputs):
    """An EncodeRequest of ragged sequences; the pooled embedding unless other outputs are named."""
    return pb.EncodeRequest(model=model, sequences=pb.Sequences(sequences=sequences),
                            outputs=pb.OutputSelection(**outputs))


def array(tensor):
    """A Tensor of the wire as float32."""
    assert tensor.dtype in (pb.DTYPE_F32, pb.DTYPE_F16)
    dtype = np.dtype("<f4") if tensor.dtype == pb.DTYPE_F32 else np.dtype("<f2")
    return np.frombuffer(tensor.data, dtype).reshape(tensor.shape)


class Client:
    def __init__(self, target, *options):
        self.channel = grpc.insecure_channel(target, options=[("grpc.max_receive_message_length", -1), *options])
        self.stub = stubs.EncoderStub(self.channel)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.channel.close()

    def encode(self, message):
        return self.stub.Encode(message, timeout=DEADLINE)

    def pooled(self, model, sequences, **options):
        """[sequences, dims]"""
        message = request(model, sequences, pooled=pb.PooledOutput(**options))
        return array(self.encode(message).pooled)

    def states(self, model, sequences):
        """One [len, hidden] for each sequence."""
        answer = self.encode(request(model, sequences, last_hidden_state=True))
        ends = np.cumsum([info.tokens for info in answer.sequences])
        return np.split(array(answer.last_hidden_state), ends[:-1])

    def models(self):
        """{name: ModelInfo}"""
        answer = self.stub.ListModels(pb.ListModelsRequest(), timeout=DEADLINE)
        return {info.name: info for info in answer.models}

    def error(self, message):
        """Code and details of the error that a request must end in."""
        try:
            self.encode(message)
        except grpc.RpcError as error:
            return error.code(), error.details()
        raise AssertionError("the request was answered")
