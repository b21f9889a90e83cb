# SPDX-License-Identifier: Apache-2.0
"""The console in a real browser. A module that imports this one is skipped where there is no browser:
http/console_requirements.txt says what to install."""

import contextlib
import shutil
import urllib.parse

import pytest

REASON = "the console's tests need chromium and console_requirements.txt"
playwright = pytest.importorskip("playwright.sync_api", reason=REASON)
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason=REASON)
CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip(REASON, allow_module_level=True)

WIDE, NARROW = {"width": 1600, "height": 1000}, {"width": 390, "height": 844}


@contextlib.contextmanager
def launched():
    """A browser."""
    with playwright.sync_playwright() as engine:
        running = engine.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


class Page:
    """A page of its own browser context, which notes what goes wrong and what it asks for."""

    def __init__(self, browser, server, **options):
        self.context = browser.new_context(**{"viewport": WIDE, **options})
        self.tab = self.context.new_page()
        self.base = f"http://{server.http}/"
        self.faults, self.hosts = [], set()
        self.tab.on("console", lambda message: message.type in ("error", "warning") and self.faults.append(message.text))
        self.tab.on("pageerror", lambda error: self.faults.append(str(error)))
        self.tab.on("request", lambda request: self.hosts.add(urllib.parse.urlsplit(request.url).netloc))

    def open(self, address=""):
        self.tab.goto("about:blank")
        self.tab.goto(self.base + address)
        return self.tab

    def close(self):
        self.context.close()


@contextlib.contextmanager
def watched(browser, server):
    """A page that must end without faults, and without a word to other hosts."""
    opened = Page(browser, server)
    yield opened
    opened.close()
    assert opened.faults == [], opened.faults
    assert opened.hosts <= {server.http}, opened.hosts


def shown(tab, view):
    """Waits until a view has what the server gives it."""
    ready = {"overview": ".legend b", "models": ".model", "playground": "textarea", "attention": ".thumb", "lab": ".picture"}
    tab.wait_for_selector(f".{view} {ready[view]}", timeout=60000)


def check_sight(tab, what, size):
    """The page is accessible, and not wider than the window."""
    found = axe.Axe().run(tab)
    assert found.violations_count == 0, f"{what}: {found.generate_report()}"
    assert tab.evaluate("document.documentElement.scrollWidth") <= size["width"], what
