#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/parity.md from what the tests measured: family, output, number format, largest difference to the oracle.

    export ATTENDANT_PARITY_FILE=$PWD/build/parity.jsonl; rm -f "$ATTENDANT_PARITY_FILE"
    export ATTENDANT_TEST_MODEL=$(deploy/fetch-model.sh | tail -1); deploy/fetch-model.sh all-mpnet-base-v2
    ctest --preset release -R 'ParityTest|HeadsTest|SentenceFoldersTest|integration.(tasks|real_models)'
    docs/make_parity.py "$ATTENDANT_PARITY_FILE" [--output docs/parity.md]

Each line of the file is one comparison (tests/support/parity.h). The page has the worst of each row, over all back ends,
models and cases. It is not written when the file lacks what one of these tests records.
"""

import argparse
import collections
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "golden"
MADE = "<!-- Made by docs/make_parity.py, which says how. -->\n"
MEASURES = {
    "absolute": ("Largest difference of two values", "The difference of a value to the oracle's, in f32."),
    "relative": ("Largest difference, relative to the norm",
                 "The difference of a value, or the length of the difference of two vectors, divided by the length of the oracle's."),
    "cosine": ("Narrow number formats", "1 less the cosine to the oracle's output in f32, for a text's embedding or all states of a sequence."),
}
HEAD = """# Parity

{made}
What the tests measure against transformers and sentence-transformers in f32: models with random weights of every family
(`tests/golden`), all-MiniLM-L6-v2 and all-mpnet-base-v2. A row has the worst of all models of the family, cases and
back ends. Each test fails above the limit. `docs/make_parity.py` says how to make this page.

Back ends of this run: {backends}.
"""
DTYPES = ("f32", "bf16", "int8")


REAL_MODELS = {"all-MiniLM-L6-v2": "bert", "all-mpnet-base-v2": "mpnet"}
# What a file must have, and the tests that record it.
OUTPUTS = {"hidden states": "ParityTest", "sparse weights": "HeadsTest",
           "embedding of a sentence-transformers folder": "SentenceFoldersTest",
           "embedding of a text": "integration.real_models",
           "logits of a classifier": "integration.tasks", "vectors of a ColBERT text": "integration.tasks",
           "scores of pairs by vectors": "integration.tasks"}


def lacking(lines):
    """What the tests have not recorded, each with the tests."""
    found = {line["output"] for line in lines}
    yield from (f"{output} ({tests})" for output, tests in OUTPUTS.items() if output not in found)
    for model in REAL_MODELS:
        of_model = {line["dtype"] for line in lines if line["model"] == model}
        for dtype in DTYPES:  # a format that no back end of the machine computes has no line at all
            if dtype not in of_model and any(line["dtype"] == dtype for line in lines):
                yield f"{model} in {dtype} (integration.real_models)"


def family(model):
    """The model's type, as its config.json says."""
    for path in sorted(GOLDEN.glob(f"*/{model}/config.json")):
        config = json.loads(path.read_text(encoding="utf-8"))
        if "jina-bert-v2-qk" in str(config.get("auto_map", "")):
            return f"{config['model_type']} (Jina v2 for code)"
        if "jina" in str(config.get("auto_map", "")):
            return f"{config['model_type']} (Jina v2)"
        if "num_experts" in config:
            return f"{config['model_type']} (v2)"
        return config["model_type"]
    return f"{REAL_MODELS[model]} ({model})" if model in REAL_MODELS else model


def worst(lines):
    """{measure: {(family, output, dtype): the line with the largest share of its limit}}."""
    found = collections.defaultdict(dict)
    for line in lines:
        rows, key = found[line["measure"]], (family(line["model"]), line["output"], line["dtype"])
        if key not in rows or line["value"] / line["limit"] > rows[key]["value"] / rows[key]["limit"]:
            rows[key] = line
    return found


def table(rows):
    text = "| family | output | format | largest | limit |\n|---|---|---|---|---|\n"
    for key in sorted(rows, key=lambda key: (key[0], key[1], DTYPES.index(key[2]))):
        text += f"| {key[0]} | {key[1]} | {key[2]} | {rows[key]['value']:.1e} | {rows[key]['limit']:.1e} |\n"
    return text


def page(lines):
    found = worst(lines)
    backends = ", ".join(sorted({line["backend"] for line in lines}))
    text = HEAD.format(made=MADE, backends=backends)
    for measure, (title, meaning) in MEASURES.items():
        if measure in found:
            text += f"\n## {title}\n\n{meaning}\n\n{table(found[measure])}"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "docs" / "parity.md")
    arguments = parser.parse_args()
    lines = [json.loads(line) for line in arguments.figures.read_text(encoding="utf-8").splitlines()]
    if missing := ", ".join(lacking(lines)):
        raise SystemExit(f"{arguments.figures} lacks: {missing}")
    arguments.output.write_text(page(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
