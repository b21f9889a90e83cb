# SPDX-License-Identifier: Apache-2.0
"""The numbers behind the console's charts."""

import json

from harness import settings


def processor_s(server):
    """What the server's process has computed until now, as an update says it."""
    code, text = server.get("/console/live")
    assert code == 200
    return json.loads(text)["processor_s"]


def test_an_update_costs_little(start_server):
    """A chart asks once a second: an update may take a hundredth of that. The mean of the best of five rounds."""
    running = start_server({"tiny": settings.TINY_MODEL}).wait_ready()
    updates, costs = 200, []
    for _ in range(5):
        before = processor_s(running)
        for _ in range(updates):
            after = processor_s(running)
        costs.append((after - before) / updates)
    print(f"{1000 * min(costs):.3f} ms of a processor for each update")
    assert 0 < min(costs) <= 0.01
