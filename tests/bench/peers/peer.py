# SPDX-License-Identifier: Apache-2.0
"""The peers: each loads what export.py made of a model and runs padded batches of token ids.

A peer has `split.streams` streams of `split.threads` threads. `prepare` is not timed: it turns a list of id lists into
what the library takes at once. `run` runs a batch on a stream and returns the last hidden state, in the library's own
type; `states` makes a float array of it. `run_all` keeps all streams busy.
"""

import functools
import inspect
import pathlib
import time

import numpy

from processes import Processes
from streams import Streams
from ways import Split


INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def padded(batch, names=INPUTS):
    """Ids, mask and segments, each [batch, seq], of the batch's sequences filled up with zeros: those of `names`, which
    the model has."""
    longest = max(map(len, batch))
    ids = numpy.zeros((len(batch), longest), numpy.int64)
    mask = numpy.zeros_like(ids)
    for row, sequence in enumerate(batch):
        ids[row, :len(sequence)] = sequence
        mask[row, :len(sequence)] = 1
    arrays = {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}
    return {name: arrays[name] for name in names}


class OpenVino(Streams):
    DTYPES = ("f32", "bf16")

    def __init__(self, folder, dtype, split):
        import openvino
        self.version = f"OpenVINO {openvino.__version__.split('-')[0]}"
        compiled = openvino.Core().compile_model(folder / "openvino" / "model.xml", "CPU", {
            "INFERENCE_NUM_THREADS": split.streams * split.threads, "NUM_STREAMS": split.streams,
            "INFERENCE_PRECISION_HINT": dtype})
        self.names = [one.get_any_name() for one in compiled.inputs]
        self.request = compiled.create_infer_request()
        # A stream that is done finds its next batch waiting.
        self.queue = openvino.AsyncInferQueue(compiled, 2 * split.streams)
        self.streams = split.streams

    def prepare(self, batch):
        return padded(batch, self.names)

    def run(self, batch):
        """Alone, as latency is measured."""
        return self.request.infer(batch, share_inputs=True, share_outputs=True)

    def run_all(self, batches, numbers):
        ended = []
        self.queue.set_callback(lambda request, _: ended.append(time.perf_counter()))
        for number in numbers:
            self.queue.start_async(batches[number], share_inputs=True)
        self.queue.wait_all()
        return sorted(ended)

    def states(self, output):
        return numpy.array(output[0])


class OnnxRuntime(Streams):
    DTYPES = ("f32", "int8")

    def __init__(self, folder, dtype, split):
        import onnxruntime
        self.version = f"ONNX Runtime {onnxruntime.__version__}"
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = split.threads
        options.inter_op_num_threads = 1
        file = folder / {"f32": "fused", "int8": "int8"}[dtype] / "model.onnx"
        make = functools.partial(onnxruntime.InferenceSession, str(file), options, providers=["CPUExecutionProvider"])
        # One thread is the caller's: then the streams can share a session and its weights.
        self.sessions = [make()] * split.streams if split.threads == 1 else [make() for _ in range(split.streams)]
        self.names = [one.name for one in self.sessions[0].get_inputs()]
        self.streams = split.streams

    def prepare(self, batch):
        return padded(batch, self.names)

    def run(self, batch, stream=0):
        return self.sessions[stream].run(None, batch)

    def states(self, output):
        return output[0]


class CTranslate2(Streams):
    DTYPES = ("f32", "int8")

    def __init__(self, folder, dtype, split):
        import ctranslate2
        self.library = ctranslate2
        self.version = f"CTranslate2 {ctranslate2.__version__}"
        self.encoder = ctranslate2.Encoder(
            str(folder / "ctranslate2"), device="cpu", compute_type={"f32": "float32", "int8": "int8"}[dtype],
            inter_threads=split.streams, intra_threads=split.threads)
        self.streams = split.streams

    def prepare(self, batch):
        view = self.library.StorageView.from_array
        lengths = numpy.array([len(sequence) for sequence in batch], numpy.int32)
        return view(padded(batch)["input_ids"].astype(numpy.int32)), view(lengths)

    def run(self, batch, stream=0):
        """The library chooses the stream; as many threads as it has streams call it."""
        ids, lengths = batch
        return self.encoder.forward_batch(ids, lengths).last_hidden_state

    def states(self, output):
        return numpy.array(output)


class PyTorch(Streams):
    """One stream: see `load`."""
    DTYPES = ("f32", "bf16")

    def __init__(self, folder, dtype, split):
        import torch
        import transformers
        self.torch = torch
        self.version = f"PyTorch {torch.__version__.split('+')[0]}"
        torch.set_num_threads(split.threads)
        # By itself transformers takes the fastest attention that the family has.
        self.model = transformers.AutoModel.from_pretrained(
            folder / "checkpoint", dtype={"f32": torch.float32, "bf16": torch.bfloat16}[dtype]).eval()
        self.model.pooler = None  # the last hidden state is all that is asked for
        self.names = inspect.signature(self.model.forward).parameters.keys() & set(INPUTS)

    def prepare(self, batch):
        return {name: self.torch.from_numpy(array) for name, array in padded(batch, self.names).items()}

    def run(self, batch, stream=0):
        with self.torch.inference_mode():
            return self.model(**batch).last_hidden_state

    def states(self, output):
        return output.float().numpy()


PEERS = {"openvino": OpenVino, "onnxruntime": OnnxRuntime, "ctranslate2": CTranslate2, "pytorch": PyTorch}


def load(name, folder, dtype, split):
    make = functools.partial(PEERS[name], pathlib.Path(folder), dtype)
    if name == "pytorch" and split.streams > 1:
        return Processes(functools.partial(make, Split(1, split.threads)), split.streams)
    return make(split)
