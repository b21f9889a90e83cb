# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the console's tests: `browser`, and `page` on the common server. The browser lives as long as a module:
while it runs, other tests cannot start an event loop."""

import pytest


@pytest.fixture(scope="module")
def browser():
    from harness import console
    with console.launched() as running:
        yield running


@pytest.fixture
def page(browser, server):
    from harness import console
    with console.watched(browser, server) as opened:
        yield opened
