# SPDX-License-Identifier: Apache-2.0
"""Fixture `scripts`: deploy's scripts with stand-ins for the programs that they call."""

import pytest

from stubs import Scripts


@pytest.fixture
def scripts(tmp_path):
    made = Scripts(tmp_path)
    yield made
    made.close()
