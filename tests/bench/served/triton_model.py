# SPDX-License-Identifier: Apache-2.0
"""Triton's side, run by its Python back end: texts to embeddings with OpenVINO, all requests of a dynamic batch at once.

`max_padded_tokens` 0 pads the whole dynamic batch to its longest text, as is usual. Above 0 its texts are sorted by length
first and cut into batches of at most so many padded tokens: the best that can be done without a server that knows tokens.
"""

import json
import os
import site

site.addsitedir(os.environ["TRITON_MODEL_PACKAGES"])  # the back end's interpreter does not read PYTHONPATH

import numpy  # noqa: E402
import openvino  # noqa: E402
import tokenizers  # noqa: E402
import triton_python_backend_utils as triton  # noqa: E402


class TritonPythonModel:
    def initialize(self, args):
        parameters = {name: value["string_value"] for name, value in json.loads(args["model_config"])["parameters"].items()}
        self.max_padded_tokens = int(parameters["max_padded_tokens"])
        self.tokenizer = tokenizers.Tokenizer.from_file(parameters["tokenizer"])
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(512)
        compiled = openvino.Core().compile_model(parameters["openvino"], "CPU", {
            "INFERENCE_NUM_THREADS": int(parameters["threads"]), "NUM_STREAMS": 1,
            "INFERENCE_PRECISION_HINT": parameters["dtype"]})
        self.request = compiled.create_infer_request()

    def execute(self, requests):
        texts = [triton.get_input_tensor_by_name(request, "text").as_numpy().reshape(-1) for request in requests]
        embeddings = self.embed([text.decode() for batch in texts for text in batch])
        responses, row = [], 0
        for batch in texts:
            rows = embeddings[row:row + len(batch)]
            row += len(batch)
            responses.append(triton.InferenceResponse([triton.Tensor("sentence_embedding", rows)]))
        return responses

    def embed(self, texts):
        ids = [encoding.ids for encoding in self.tokenizer.encode_batch_fast(texts)]
        order = sorted(range(len(ids)), key=lambda i: len(ids[i])) if self.max_padded_tokens else range(len(ids))
        embeddings = [None] * len(ids)
        for batch in self.cut(ids, order):
            for i, embedding in zip(batch, self.run([ids[i] for i in batch])):
                embeddings[i] = embedding
        return numpy.stack(embeddings)

    def cut(self, ids, order):
        batches, longest = [[]], 0
        for i in order:
            longest = max(longest, len(ids[i]))
            if self.max_padded_tokens and batches[-1] and longest * (len(batches[-1]) + 1) > self.max_padded_tokens:
                batches.append([])
                longest = len(ids[i])
            batches[-1].append(i)
        return batches

    def run(self, ids):
        tokens = numpy.zeros((len(ids), max(map(len, ids))), numpy.int64)
        mask = numpy.zeros_like(tokens)
        for row, sequence in enumerate(ids):
            tokens[row, :len(sequence)] = sequence
            mask[row, :len(sequence)] = 1
        inputs = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": numpy.zeros_like(tokens)}
        states = self.request.infer(inputs, share_inputs=True, share_outputs=True)[0]
        weights = mask[:, :, None].astype(numpy.float32)
        means = (states * weights).sum(axis=1) / weights.sum(axis=1)
        return means / numpy.linalg.norm(means, axis=1, keepdims=True)
