# SPDX-License-Identifier: Apache-2.0
"""Embeds the lines of standard input on one stream, however many: stream_embeddings.py [SERVER [MODEL]] < lines

Prints a line of JSON for each, as they are answered; a line that fails does not stop the others."""

import json
import sys

from attendant import Client, operations

server, model = [*sys.argv[1:], *["127.0.0.1:8001", ""][len(sys.argv) - 1:]]
with Client(server, model=model or None) as client:
    jobs = (operations.embed(line.rstrip("\n"), truncation="none") for line in sys.stdin)
    for outcome in client.stream_outcomes(jobs):
        answer = {"error": str(outcome.error)} if outcome.error else {"embedding": outcome.value.tolist()}
        print(json.dumps({"line": outcome.index, **answer}))
