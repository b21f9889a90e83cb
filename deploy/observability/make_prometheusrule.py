#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the PrometheusRule of deploy/kubernetes/components/monitoring from the rules beside this file.

    deploy/observability/make_prometheusrule.py [--check]
      --check  write nothing; the exit code is 1 when the file is not what the rules say

Kustomize reads no file outside its own folder, so the rules are copied. The Helm chart reads them through a link.
"""

import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
MADE = FOLDER.parent / "kubernetes/components/monitoring/prometheusrule.yaml"
HEADER = """# SPDX-License-Identifier: Apache-2.0
# Made by deploy/observability/make_prometheusrule.py; a test fails when it is stale. Needs the Prometheus operator.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: attendant
spec:
  groups:
"""


def groups(path):
    """The groups of a file of rules, two columns further right."""
    lines = path.read_text(encoding="utf-8").partition("\ngroups:\n")[2].splitlines()
    return "".join(f"  {line}\n" if line else "\n" for line in lines)


def main():
    text = HEADER + "".join(groups(path) for path in sorted((FOLDER / "rules").glob("*.yml")))
    if "--check" not in sys.argv:
        MADE.write_text(text, encoding="utf-8")
    elif MADE.read_text(encoding="utf-8") != text:
        print(f"{MADE} is stale; run deploy/observability/make_prometheusrule.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
