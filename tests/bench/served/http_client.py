# SPDX-License-Identifier: Apache-2.0
"""One HTTP client for every server: a text in each request, on as many connections as there are requests at a time.

    http_client.py URL openai-base64|openai-float|kserve-binary TEXTS_JSON CONCURRENCY SECONDS

Prints JSON: rate and latencies after a second of warm-up, the tokens of all requests, and the first text's embedding.
"""

import array
import asyncio
import base64
import itertools
import json
import math
import pathlib
import random
import sys
import time

WARMUP_SECONDS = 1
OUTPUT = "sentence_embedding"
PATHS = {"openai-base64": "/v1/embeddings", "openai-float": "/v1/embeddings", "kserve-binary": "/v2/models/minilm/infer"}


def body_of(way, text):
    if way == "kserve-binary":
        message = {"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1, 1], "data": [text]}],
                   "outputs": [{"name": OUTPUT, "parameters": {"binary_data": True}}]}
    else:
        message = {"model": "minilm", "input": text, "encoding_format": way.removeprefix("openai-")}
    return json.dumps(message).encode()


def embedding_of(way, headers, body):
    """The numbers of an answer."""
    if way == "kserve-binary":
        return list(array.array("f", body[int(headers["Inference-Header-Content-Length"]):]))
    found = json.loads(body)["data"][0]["embedding"]
    return found if way == "openai-float" else list(array.array("f", base64.b64decode(found)))


def percentile(ordered, share):
    """The smallest of the ordered values that at least this share of them does not exceed."""
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]


def summary(requests, begin, end):
    """`requests`: (start, end, tokens) in seconds. Counts those that ended from `begin` to `end`; tokens of all."""
    latencies = sorted(ended - started for started, ended, _ in requests if begin <= ended <= end)
    if not latencies:
        raise ValueError(f"no request ended within {end - begin:g} s")
    return {"inferences_per_second": len(latencies) / (end - begin), "tokens": sum(tokens for _, _, tokens in requests),
            **{f"p{name}_ms": 1000 * percentile(latencies, name / 100) for name in (50, 90, 99)}}


async def drive(url, way, texts, concurrency, seconds):
    """Shuffled: every connection takes the next text, so that those in work at the same time differ."""
    import aiohttp
    first = texts[0]["text"]
    shuffled = random.Random(1).sample(texts, len(texts))
    source = itertools.cycle([(body_of(way, text["text"]), text["tokens"]) for text in shuffled])
    done = []

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0),
                                     headers={"Content-Type": "application/json"}) as session:
        async def ask(body):
            async with session.post(url, data=body) as answer:
                received = await answer.read()
                if answer.status != 200:
                    raise RuntimeError(f"{url} answered {answer.status}: {received[:500]!r}")
                return answer.headers, received

        async def slot(end):
            while (started := time.perf_counter()) < end:
                body, tokens = next(source)
                await ask(body)
                done.append((started, time.perf_counter(), tokens))

        embedding = embedding_of(way, *await ask(body_of(way, first)))
        begin = time.perf_counter() + WARMUP_SECONDS
        end = begin + seconds
        await asyncio.gather(*(slot(end) for _ in range(concurrency)))
    done.append((0, 0, texts[0]["tokens"]))  # the first text's
    return summary(done, begin, end) | {"embedding": embedding}


def main():
    address, way, texts, concurrency, seconds = sys.argv[1:]
    print(json.dumps(asyncio.run(drive(address + PATHS[way], way, json.loads(pathlib.Path(texts).read_text()),
                                       int(concurrency), float(seconds)))))


if __name__ == "__main__":
    main()
