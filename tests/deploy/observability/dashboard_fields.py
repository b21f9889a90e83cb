# SPDX-License-Identifier: Apache-2.0
"""Prints the fields of a dashboard that Grafana would not understand, each with its path: reads the dashboard into the types
of Grafana's foundation SDK, writes it again, and compares.

    dashboard_fields.py DASHBOARD.json
"""

import json
import pathlib
import sys

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

MISSING_IN_SDK = "definition"  # of a variable; Grafana writes it itself


def lost(given, kept, path=""):
    """The paths of `given` that are gone or different in `kept`."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for key, value in given.items():
            if key in kept:
                yield from lost(value, kept[key], f"{path}/{key}")
            elif not (path.startswith("/templating/list") and key == MISSING_IN_SDK):
                yield f"{path}/{key}"
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for index, values in enumerate(zip(given, kept)):
            yield from lost(*values, f"{path}[{index}]")
    elif given != kept:
        yield path


def main():
    register_default_plugins()
    given = json.loads(pathlib.Path(sys.argv[1]).read_text())
    for path in lost(given, json.loads(JSONEncoder().encode(Dashboard.from_json(given)))):
        print(path)


if __name__ == "__main__":
    main()
