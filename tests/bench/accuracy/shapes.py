#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server's embeddings beside transformers', for the shapes of tests/bench/shapes whose code transformers itself has.

    tests/bench/accuracy/shapes.py [--backend cuda] [--dtypes f32,bf16,f16,fp8] [--shapes minilm,t5-base] [--layers 6]

Random weights, mean pooling, sequences of 1 to 511 random ids in one request. Prints 1 - cosine of the worst sequence for
each shape and number format, and ends with 1 if one is above the format's limit. `--backend cuda` leaves out what CUDA does not compute.
transformers computes in f32 on a GPU where PyTorch has one, else on the CPU. Needs torch and transformers, as the
environment of peers/compare.sh has them, and attendant-server in ATTENDANT_BIN_DIR (build/release/bin).
"""

import argparse
import pathlib
import sys
import tempfile

import torch
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "integration"))

from harness.server import serving  # noqa: E402

SHAPES = pathlib.Path(__file__).resolve().parents[1] / "shapes"
# The others' code lies in repositories of their own.
FAMILIES = ("albert-base", "bert-base", "deberta-v3-base", "distilbert-base", "electra-base", "electra-small",
            "embeddinggemma-300m", "eurobert-210m", "minilm", "modernbert-base", "mpnet-base", "qwen3-0.6b", "t5-base", "xlm-r-base")
NOT_ON_GPUS = ("albert-base", "deberta-v3-base", "electra-small")
LENGTHS = (1, 7, 16, 33, 64, 100, 129, 300, 511)
FIRST_ID, LAST_ID = 5, 20000  # beyond special tokens, within every vocabulary
LIMITS = {"f32": 1e-10, "f16": 5e-6, "bf16": 5e-4, "int8": 5e-3, "fp8": 3e-2}
LAYER_COUNTS = ("num_hidden_layers", "n_layers", "num_layers")


def shortened(config, layers):
    """Of a config with at most so many layers."""
    for name in LAYER_COUNTS:
        if (count := getattr(config, name, None)) is not None:
            setattr(config, name, min(count, layers))
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:config.num_hidden_layers]
    return config


def make(shape, layers, folder):
    """The model, saved in `folder`."""
    torch.manual_seed(5)
    config = shortened(transformers.AutoConfig.from_pretrained(SHAPES / shape), layers)
    make_model = transformers.T5EncoderModel if config.model_type == "t5" else transformers.AutoModel.from_config
    model = make_model(config).eval()
    model.save_pretrained(folder)
    return model


def sequences():
    generator = torch.Generator().manual_seed(11)
    return [torch.randint(FIRST_ID, LAST_ID, (length,), generator=generator).tolist() for length in LENGTHS]


@torch.inference_mode()
def means(model, ids):
    """The mean of each sequence's last hidden states, computed alone."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = model.to(device)
    states = (model(input_ids=torch.tensor([one], device=device)).last_hidden_state[0] for one in ids)
    return [state.double().mean(0).cpu() for state in states]


def embeddings(server, shape, ids):
    answer = server.post_json("/v1/embeddings", {"model": shape, "input": ids})
    return [torch.tensor(item["embedding"], dtype=torch.float64) for item in answer["data"]]


def worst(found, expected):
    return max(1 - float(torch.nn.functional.cosine_similarity(a, b, dim=0)) for a, b in zip(found, expected))


def errors(shape, dtypes, arguments, work):
    """Of each number format: 1 - cosine of the worst sequence."""
    model, ids = make(shape, arguments.layers, work / "model"), sequences()
    expected = means(model, ids)
    for dtype in dtypes:
        (work / dtype).mkdir()
        with serving(work / dtype, {shape: work / "model"}, f"--backend={arguments.backend}", f"--dtype={dtype}") as server:
            yield dtype, worst(embeddings(server, shape, ids), expected)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--dtypes", default="f32")
    parser.add_argument("--shapes", default=",".join(FAMILIES))
    parser.add_argument("--layers", type=int, default=6, help="of each model, at most")
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    transformers.utils.logging.disable_progress_bar()
    dtypes, failed = arguments.dtypes.split(","), False
    left_out = NOT_ON_GPUS if arguments.backend == "cuda" else ()
    for shape in filter(lambda name: name not in left_out, arguments.shapes.split(",")):
        with tempfile.TemporaryDirectory() as work:
            for dtype, error in errors(shape, dtypes, arguments, pathlib.Path(work)):
                above = not error <= LIMITS[dtype]
                failed |= above
                print(f"{shape:22} {dtype:5} {error:.1e}{'  above the limit' if above else ''}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
