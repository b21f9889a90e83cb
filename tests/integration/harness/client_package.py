# SPDX-License-Identifier: Apache-2.0
"""Installs client/python into a folder of this run and makes `import attendant` find it."""

import atexit
import shutil
import subprocess
import sys
import tempfile

from harness import settings

SOURCE = settings.ROOT / "client" / "python"


def _install():
    folder = tempfile.mkdtemp(prefix="attendant-client-")
    atexit.register(shutil.rmtree, folder)
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation",
                    "--target", folder, SOURCE], check=True)
    sys.path.insert(0, folder)
    return folder


FOLDER = _install()
