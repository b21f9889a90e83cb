# SPDX-License-Identifier: Apache-2.0
"""Makes of one model what each peer loads, once, in a folder of the cache.

    export.py minilm|SHAPE FOLDER MINILM_FOLDER ODD_TEXTS

SHAPE is a folder of tests/bench/shapes: that model with random weights.

checkpoint/   config.json and model.safetensors, minilm's with its tokenizer: Attendant and PyTorch
onnx/         model.onnx with dynamic axes        fused/  the same, fused by ONNX Runtime's optimizer
int8/         fused, dynamically quantized        openvino/, ctranslate2/
texts/        MiniLM only: ids.json and reference.json, real_texts.py's tokens and their f32 embeddings by PyTorch
odd_texts/    the same of the texts that the golden files hold, some of them a single character or no English
A step that fails is reported and leaves nothing; the peers that need it fail to load, the others do not notice.
"""

import inspect
import json
import os
import pathlib
import shutil
import subprocess
import sys

import torch
import transformers

SEED = 1
BENCH = pathlib.Path(__file__).parent.parent
REAL_TEXTS = BENCH / "real_texts.py"
INPUTS = {"input_ids": torch.ones, "attention_mask": torch.ones, "token_type_ids": torch.zeros}


def export_checkpoint(model, minilm, folder):
    if model == "minilm":
        shutil.copytree(minilm, folder, dirs_exist_ok=True)
        return
    torch.manual_seed(SEED)
    config = transformers.AutoConfig.from_pretrained(BENCH / "shapes" / model)
    transformers.AutoModel.from_config(config).save_pretrained(folder)
    if model == "bert-base":  # CTranslate2's converter wants a tokenizer; MiniLM's has the same vocabulary
        for file in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
            shutil.copy(minilm / file, folder)


def load_model(checkpoint, attention):
    return transformers.AutoModel.from_pretrained(
        checkpoint, attn_implementation=attention, dtype=torch.float32).eval()


class LastHiddenState(torch.nn.Module):
    """Of those inputs that the model has."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.names = [name for name in INPUTS if name in inspect.signature(model.forward).parameters]

    def forward(self, *inputs):
        return self.model(**dict(zip(self.names, inputs))).last_hidden_state


def export_onnx(checkpoint, folder):
    # Not every family of transformers has another attention than the eager one.
    model = LastHiddenState(load_model(checkpoint, "eager"))
    example = tuple(INPUTS[name](2, 16, dtype=torch.int64) for name in model.names)
    axes = {name: {0: "batch", 1: "seq"} for name in [*model.names, "last_hidden_state"]}
    with torch.inference_mode():
        torch.onnx.export(model, example, str(folder / "model.onnx"), input_names=model.names,
                          output_names=["last_hidden_state"], dynamic_axes=axes, opset_version=17, dynamo=False)


def export_fused(checkpoint, onnx, folder):
    from onnxruntime.transformers import optimizer
    # Its patterns are BERT's: what does not match them stays as it is.
    config = json.loads((checkpoint / "config.json").read_text())
    fused = optimizer.optimize_model(str(onnx), model_type="bert", num_heads=config["num_attention_heads"],
                                     hidden_size=config["hidden_size"])
    print("fused:", fused.get_fused_operator_statistics())
    fused.save_model_to_file(str(folder / "model.onnx"))


def export_int8(fused, folder):
    import onnx
    from onnxruntime import quantization
    # Shape inference does not know the types of what the fused operators return.
    quantization.quantize_dynamic(
        str(fused), str(folder / "model.onnx"), weight_type=quantization.QuantType.QInt8,
        extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})


def export_openvino(onnx, folder):
    import openvino
    openvino.save_model(openvino.convert_model(onnx), folder / "model.xml", compress_to_fp16=False)


def export_ctranslate2(checkpoint, folder):
    import ctranslate2
    # The converter reads a field that current versions of transformers no longer have.
    transformers.BertConfig.position_embedding_type = "absolute"
    ctranslate2.converters.TransformersConverter(str(checkpoint)).convert(str(folder), force=True)


def real_texts(checkpoint, folder):
    subprocess.run([sys.executable, "-B", REAL_TEXTS, checkpoint / "tokenizer.json", folder / "texts.json"], check=True)
    return [text["text"] for text in json.loads((folder / "texts.json").read_text())]


def export_texts(checkpoint, texts, folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint)
    ids = [tokenizer(text, truncation=True, max_length=512)["input_ids"] for text in texts]
    model = load_model(checkpoint, "sdpa")
    with torch.inference_mode():
        means = [model(input_ids=torch.tensor([sequence])).last_hidden_state[0].mean(dim=0) for sequence in ids]
    (folder / "ids.json").write_text(json.dumps(ids))
    (folder / "reference.json").write_text(json.dumps([(mean / mean.norm()).tolist() for mean in means]))


def main():
    model, minilm, odd_texts = sys.argv[1], pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4])
    root = pathlib.Path(sys.argv[2])
    checkpoint, onnx, fused = root / "checkpoint", root / "onnx" / "model.onnx", root / "fused" / "model.onnx"
    steps = {
        "checkpoint": lambda folder: export_checkpoint(model, minilm, folder),
        "onnx": lambda folder: export_onnx(checkpoint, folder),
        "fused": lambda folder: export_fused(checkpoint, onnx, folder),
        "int8": lambda folder: export_int8(fused, folder),
        "openvino": lambda folder: export_openvino(onnx, folder),
        "ctranslate2": lambda folder: export_ctranslate2(checkpoint, folder),
    }
    if model == "minilm":
        steps["texts"] = lambda folder: export_texts(checkpoint, real_texts(checkpoint, folder), folder)
        steps["odd_texts"] = lambda folder: export_texts(checkpoint, json.loads(odd_texts.read_text()), folder)
    for name, make in steps.items():
        if (root / name).exists():
            continue
        unfinished = root / f"{name}.{os.getpid()}"
        unfinished.mkdir(parents=True)
        try:
            make(unfinished)
            unfinished.rename(root / name)
        except Exception as error:  # one peer's trouble is not the others'
            print(f"cannot export {model} for {name}: {type(error).__name__}: {error}")
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)


main()
