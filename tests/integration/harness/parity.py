# SPDX-License-Identifier: Apache-2.0
"""How far outputs of the server were from their oracle's, for docs/make_parity.py."""

import json
import os


def record(model, output, difference, limit):
    """As RecordParity of tests/support/parity.h; `difference` is relative to the oracle's norm."""
    path = os.environ.get("ATTENDANT_PARITY_FILE")
    if path:
        figure = {"model": model, "output": output, "dtype": "f32", "backend": "server", "measure": "relative",
                  "value": float(difference), "limit": limit}
        with open(path, "a", encoding="ascii") as file:
            file.write(json.dumps(figure) + "\n")
