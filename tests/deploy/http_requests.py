# SPDX-License-Identifier: Apache-2.0
"""Requests to the HTTP port, as (path, method): those that a proxy passes, and those that it hides."""

import json

HIDDEN = [("/", "GET"), ("/metrics", "GET"), ("/connections", "GET"), ("/healthz", "GET"), ("/readyz", "GET"),
          ("/openapi.json", "GET"), ("/console/live", "GET"), ("/console.js", "GET"), ("//metrics", "GET")]


def of_protocols(server):
    """All that the server's own description of them has."""
    described = json.loads(server.get("/openapi.json")[1])["paths"]
    found = [(path, method.upper()) for path, methods in described.items() for method in methods]
    assert ("/v1/embeddings", "POST") in found
    return [request for request in found if request not in HIDDEN]
