# SPDX-License-Identifier: Apache-2.0
"""Fixture: `package`, the .deb of the build folder."""

import subprocess

import pytest

from harness import settings


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    build = settings.bin_dir().parent
    if not (build / "CPackConfig.cmake").exists():
        pytest.skip(f"{build} is no build folder")
    folder = tmp_path_factory.mktemp("package")
    made = subprocess.run(["cpack", "--config", build / "CPackConfig.cmake", "-B", folder], capture_output=True, text=True,
                          check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    found, = folder.glob("*.deb")
    return found
