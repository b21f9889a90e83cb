# SPDX-License-Identifier: Apache-2.0
"""How far outputs of the server were from their oracle's, for docs/make_parity.py."""

import json
import os


def record(model, output, difference, limit, dtype="f32"):
    """As RecordParity of tests/support/parity.h. `difference` is relative to the oracle's norm; of another format than
    f32, it is 1 less the lowest cosine."""
    path = os.environ.get("ATTENDANT_PARITY_FILE")
    if path:
        figure = {"model": model, "output": output, "dtype": dtype, "backend": "server",
                  "measure": "relative" if dtype == "f32" else "cosine",
                  "value": float(difference), "limit": limit}
        with open(path, "a", encoding="ascii") as file:
            file.write(json.dumps(figure) + "\n")
