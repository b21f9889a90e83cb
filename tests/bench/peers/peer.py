# SPDX-License-Identifier: Apache-2.0
"""The peers: each loads what export.py made of a model and runs padded batches of token ids.

`prepare` is not timed: it turns a list of id lists into what the library takes at once. `run` returns the last hidden
state, in the library's own type; `states` makes a float array of it.
"""

import pathlib

import numpy


def padded(batch):
    """Ids, mask and segments, each [batch, seq], of the batch's sequences filled up with zeros."""
    longest = max(map(len, batch))
    ids = numpy.zeros((len(batch), longest), numpy.int64)
    mask = numpy.zeros_like(ids)
    for row, sequence in enumerate(batch):
        ids[row, :len(sequence)] = sequence
        mask[row, :len(sequence)] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}


class OpenVino:
    DTYPES = ("f32", "bf16")

    def __init__(self, folder, dtype, threads):
        import openvino
        self.version = f"OpenVINO {openvino.__version__.split('-')[0]}"
        compiled = openvino.Core().compile_model(folder / "openvino" / "model.xml", "CPU", {
            "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": dtype})
        self.request = compiled.create_infer_request()

    prepare = staticmethod(padded)

    def run(self, batch):
        return self.request.infer(batch, share_inputs=True, share_outputs=True)

    def states(self, output):
        return numpy.array(output[0])


class OnnxRuntime:
    DTYPES = ("f32", "int8")

    def __init__(self, folder, dtype, threads):
        import onnxruntime
        self.version = f"ONNX Runtime {onnxruntime.__version__}"
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        file = folder / {"f32": "fused", "int8": "int8"}[dtype] / "model.onnx"
        self.session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])

    prepare = staticmethod(padded)

    def run(self, batch):
        return self.session.run(None, batch)

    def states(self, output):
        return output[0]


class CTranslate2:
    DTYPES = ("f32", "int8")

    def __init__(self, folder, dtype, threads):
        import ctranslate2
        self.library = ctranslate2
        self.version = f"CTranslate2 {ctranslate2.__version__}"
        self.encoder = ctranslate2.Encoder(
            str(folder / "ctranslate2"), device="cpu", compute_type={"f32": "float32", "int8": "int8"}[dtype],
            inter_threads=1, intra_threads=threads)

    def prepare(self, batch):
        view = self.library.StorageView.from_array
        lengths = numpy.array([len(sequence) for sequence in batch], numpy.int32)
        return view(padded(batch)["input_ids"].astype(numpy.int32)), view(lengths)

    def run(self, batch):
        ids, lengths = batch
        return self.encoder.forward_batch(ids, lengths).last_hidden_state

    def states(self, output):
        return numpy.array(output)


class PyTorch:
    DTYPES = ("f32", "bf16")

    def __init__(self, folder, dtype, threads):
        import torch
        import transformers
        self.torch = torch
        self.version = f"PyTorch {torch.__version__.split('+')[0]}"
        torch.set_num_threads(threads)
        self.model = transformers.BertModel.from_pretrained(
            folder / "checkpoint", add_pooling_layer=False, attn_implementation="sdpa",
            dtype={"f32": torch.float32, "bf16": torch.bfloat16}[dtype]).eval()

    def prepare(self, batch):
        return {name: self.torch.from_numpy(array) for name, array in padded(batch).items()}

    def run(self, batch):
        with self.torch.inference_mode():
            return self.model(**batch).last_hidden_state

    def states(self, output):
        return output.float().numpy()


PEERS = {"openvino": OpenVino, "onnxruntime": OnnxRuntime, "ctranslate2": CTranslate2, "pytorch": PyTorch}


def load(name, folder, dtype, threads):
    return PEERS[name](pathlib.Path(folder), dtype, threads)
