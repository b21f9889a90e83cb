# SPDX-License-Identifier: Apache-2.0
"""Triton's perf_analyzer, the binary as it was published, measures a running server."""

import subprocess

from harness import settings

FOLDER = settings.ROOT / "tests" / "integration" / "kserve"
TEXTS_FILE, IDS_FILE = FOLDER / "texts.json", FOLDER / "ids.json"
# A window of time may pass without an answer where other programs compute. These last until they have their requests, and
# may differ as much as they like.
WINDOWS = ("--measurement-mode", "count_windows", "--measurement-request-count", "20", "--stability-percentage", "1e9")


def measure(protocol, address, model, *arguments):
    """Its exit code and what it printed."""
    command = [FOLDER / "perf_analyzer.sh", "-i", protocol, "-u", address, "-m", model, *WINDOWS, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240, check=False)
    return done.returncode, done.stdout
