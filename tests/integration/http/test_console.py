# SPDX-License-Identifier: Apache-2.0
"""The console in a real browser: what people click, type and see. Skipped where there is no browser:
console_requirements.txt says what to install."""

import json
import re
import shutil
import time
import urllib.parse

import numpy as np
import pytest

from harness import settings
from harness.attendant import Client, array, pb, request, texts
from harness.server import Server, serving

REASON = "the console's tests need chromium and console_requirements.txt"
playwright = pytest.importorskip("playwright.sync_api", reason=REASON)
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason=REASON)
CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip(REASON, allow_module_level=True)

WIDE, NARROW = {"width": 1600, "height": 1000}, {"width": 390, "height": 844}
VIEWS = ["overview", "models", "playground", "attention", "lab"]
TEXT = "The keys to the old cabinet are on the table."
KEY = "console-key-0123456789"
LABELS = ["B-LOC", "B-PER", "O", "I-PER"]


@pytest.fixture(scope="module")
def browser():
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


@pytest.fixture
def page(browser, server):
    opened = Page(browser, server)
    yield opened
    opened.close()
    assert opened.faults == [] and opened.hosts <= {server.http}


def shown(tab, view):
    """Waits until a view has what the server gives it."""
    ready = {"overview": ".legend b", "models": ".model", "playground": "textarea", "attention": ".thumb", "lab": ".picture"}
    tab.wait_for_selector(f".{view} {ready[view]}", timeout=20000)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_every_view_is_accessible_and_fits(browser, server, scheme, size):
    opened = Page(browser, server, viewport=size, color_scheme=scheme)
    try:
        for view in VIEWS:
            tab = opened.open(f"#{view}")
            shown(tab, view)
            found = axe.Axe().run(tab)
            assert found.violations_count == 0, f"{view}: {found.generate_report()}"
            assert tab.evaluate("document.documentElement.scrollWidth") <= size["width"], view
        assert opened.faults == []
    finally:
        opened.close()


def test_the_first_view_is_small(browser, server):
    opened = Page(browser, server)
    try:
        session = opened.context.new_cdp_session(opened.tab)
        session.send("Network.enable")
        sizes = []
        session.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
        shown(opened.open(), "overview")
        assert 20_000 < sum(sizes) <= 200 << 10
    finally:
        opened.close()


def weights_by_grpc(server, text):
    """[layers, heads, tokens, tokens]"""
    with Client(server.grpc) as client:
        answer = client.encode(request("minilm", texts(text), attention_weights=pb.AttentionSelection()))
        return array(answer.attention_weights[0])


def bars(tab, place):
    """[(token, percent)] of one of the lists beside the picture."""
    rows = tab.locator(f".detail .bars >> nth={place} >> li")
    return [(row.locator("code").inner_text(), float(row.locator("b").inner_text().rstrip(" %"))) for row in rows.all()]


def test_explorer_shows_the_models_weights(page, server):
    tab = page.open("#attention?model=minilm")
    shown(tab, "attention")
    tab.fill("#attention-text", TEXT)
    tab.click("text=Show attention")
    tab.wait_for_selector("text=/13 tokens, 6 layers/")
    weights = weights_by_grpc(server, TEXT)

    tab.click("[aria-label='Next layer']")
    tab.click(".head-chip >> text='5'")
    tab.click(".head-chip >> text='1'")
    tab.click(".looking li >> nth=2")
    tokens = tab.locator(".looking li").all_inner_texts()
    assert tokens[0] == "[CLS]" and tokens[2] == "keys"
    row = weights[1, 4, 2]
    assert [name for name, _ in bars(tab, 0)] == [tokens[i] for i in np.argsort(-row)[:6]]
    assert bars(tab, 0)[0][1] == pytest.approx(100 * row.max(), abs=0.6)
    assert bars(tab, 1)[0][1] == pytest.approx(100 * weights[1, 4, :, 2].max(), abs=0.6)

    # The address restores the view.
    address = tab.evaluate("location.hash")
    again = page.open(address)
    shown(again, "attention")
    assert again.input_value("#attention-text") == TEXT
    assert again.locator(".detail h2").inner_text() == "keys"
    assert again.locator(".thumb[aria-pressed=true]").get_attribute("aria-label").startswith("Layer 2, head 5")


def test_explorer_works_by_keys_and_pointer(page):
    tab = page.open(f"#attention?model=minilm&text={urllib.parse.quote(TEXT)}")
    shown(tab, "attention")
    tab.focus(".looking")
    for _ in range(3):
        tab.keyboard.press("ArrowDown")
    assert tab.locator(".detail h2").inner_text() == "keys"
    tab.hover(".seen li >> nth=6")
    assert tab.locator(".detail h2").inner_text() == "cabinet"
    tab.mouse.move(5, 5)
    assert tab.locator(".detail h2").inner_text() == "keys"
    tab.focus(".looking")
    tab.keyboard.press("Escape")
    assert tab.locator(".detail h2").inner_text().startswith("Layer 1, head 1")

    tab.click(".thumb[aria-label^='Layer 3, head 2:']")
    tab.click(".thumb[aria-label^='Layer 3, head 4:']", modifiers=["Control"])
    assert tab.locator(".head-chip[aria-pressed=true]").all_inner_texts() == ["2", "4"]
    tab.click("text=Grid")
    assert tab.locator(".grid-of-head").count() == 2
    tab.focus(".heat >> nth=0")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowDown")
    assert re.fullmatch(r"the looks at \[CLS\] with [0-9.]+ %", tab.locator(".readout >> nth=0").inner_text())


def test_playground_compares_and_ranks(page, server):
    tab = page.open("#playground")
    shown(tab, "playground")
    lines = ["A man is eating pasta.", "Someone has lunch.", "Prices fell."]
    if tab.locator(".field select").count():
        tab.select_option(".field select", "minilm")
    tab.fill("textarea", "\n".join(lines))
    tab.click("form button.primary")
    tab.wait_for_selector(".vectors")
    with Client(server.grpc) as client:
        vectors = client.pooled("minilm", texts(*lines))
    tab.focus(".heat")
    tab.keyboard.press("ArrowDown")
    assert tab.locator(".readout").inner_text() == f"“{lines[0]}” and “{lines[0]}”: 1.000"
    tab.keyboard.press("ArrowRight")
    assert tab.locator(".readout").inner_text().endswith(f": {vectors[0] @ vectors[1]:.3f}")
    tab.click("summary")
    assert tab.locator("pre").inner_text().startswith(f"curl http://{server.http}/attendant.v1.Encoder/Encode")

    tab.click("text=Rank")
    tab.click("form button.primary")
    tab.wait_for_selector(".bars.wide")
    assert "energy" in tab.locator(".bars.wide li >> nth=0").inner_text()
    tab.click("text=Classify")
    assert "is a classifier" in tab.locator(".notice").inner_text()


@pytest.fixture(scope="module")
def token_server(tmp_path_factory):
    """A masked language model, and a model that labels tokens: its random weights choose the label "O" too."""
    folder = settings.ROOT / "tests" / "golden" / "tokens"
    entities = tmp_path_factory.mktemp("models") / "entities"
    shutil.copytree(folder / "modernbert_tokens", entities)
    config = json.loads((entities / "config.json").read_text(encoding="utf-8"))
    config |= {"id2label": dict(enumerate(LABELS)), "label2id": {label: i for i, label in enumerate(LABELS)}}
    (entities / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with serving(tmp_path_factory.mktemp("server"), {"bert_splade": folder / "bert_splade", "entities": entities},
                 "--dtype=f32") as running:
        yield running


@pytest.fixture
def token_page(browser, token_server):
    opened = Page(browser, token_server)
    yield opened
    opened.close()
    assert opened.faults == [] and opened.hosts <= {token_server.http}


def played(page, task, lines):
    """The playground after a task."""
    tab = page.open(f"#playground?task={task}")
    shown(tab, "playground")
    tab.fill("textarea", "\n".join(lines))
    tab.click("form button.primary")
    tab.wait_for_selector(".result h2")
    return tab


def encoded(server, model, lines, **outputs):
    with Client(server.grpc) as client:
        return client.encode(request(model, texts(*lines), token_strings=True, **outputs))


def names_of(tab, place):
    """The names in one of the lists of bars."""
    return tab.locator(f".bars.wide >> nth={place} >> li > span:first-child").all_inner_texts()


def test_playground_fills_masks(token_page, token_server):
    lines = ["never [MASK] again", "how [MASK] is the [MASK]?", "the quick brown fox"]
    tab = played(token_page, "mask", lines)
    words = list(encoded(token_server, "bert_splade", lines, fill_mask=pb.FillMaskOutput()).fill_mask.token_strings)
    assert [names_of(tab, mask) for mask in range(3)] == [words[:5], words[5:10], words[10:]]
    assert tab.locator(".result h3").all_inner_texts() == ["Mask 1", "Mask 2"]
    assert "No mask here" in tab.locator(".result .notice").inner_text()


def test_playground_labels_tokens(token_page, token_server):
    lines = ["never [MASK] again", "how [MASK] is the [MASK]? it has 330 metres."]
    tab = played(token_page, "tokens", lines)
    answer = encoded(token_server, "entities", lines, token_scores=pb.TokenScoreOutput())
    scores = array(answer.token_scores)
    tokens = [token for info in answer.sequences for token in info.token_strings]
    assert tab.locator(".tagged code").all_inner_texts() == tokens
    said = [text.split()[0] for text in tab.locator(".tagged span").all_inner_texts()]
    assert said == ["–" if LABELS[best] == "O" else LABELS[best] for best in scores.argmax(-1)]
    assert {"–", "B-PER"} <= set(said), "one label for all shows nothing"
    tab.click("summary >> nth=0")
    tab.focus(".heat >> nth=0")
    for key in ["ArrowDown", "ArrowDown", "ArrowRight"]:
        tab.keyboard.press(key)
    name, share = tab.locator(".readout >> nth=0").inner_text().split(": ")
    assert name == f"{tokens[1]}, B-PER" and float(share.rstrip(" %")) == pytest.approx(100 * scores[1, 1], abs=0.6)


def test_playground_shows_sparse_vectors(token_page, token_server):
    lines = ["the quick brown fox", "never again"]
    tab = played(token_page, "sparse", lines)
    answer = encoded(token_server, "bert_splade", lines, sparse=pb.SparseOutput())
    ends = np.cumsum([info.sparse_weights for info in answer.sequences])[:-1]
    weights = np.split(array(answer.sparse.weights), ends)
    ids, names = (np.split(np.array(list(part)), ends) for part in (answer.sparse.ids, answer.sparse.token_strings))
    for place in range(2):
        assert names_of(tab, place) == list(names[place][np.argsort(-weights[place], kind="stable")[:12]])
    first, second = (dict(zip(*vector)) for vector in zip(ids, weights))
    product = sum(weight * second[token] for token, weight in first.items() if token in second)
    tab.focus(".heat")
    for key in ["ArrowDown", "ArrowRight"]:
        tab.keyboard.press(key)
    said = re.search(r": ([0-9.e-]+)", tab.locator(".readout").inner_text()).group(1)
    assert float(said) == pytest.approx(product, rel=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_answers_of_the_playground_are_accessible_and_fit(browser, token_server, scheme, size):
    opened = Page(browser, token_server, viewport=size, color_scheme=scheme)
    try:
        for task in ["mask", "tokens", "sparse"]:
            tab = played(opened, task, ["how [MASK] is the [MASK]? it has 330 metres.", "the quick brown fox"])
            for summary in tab.locator(".result summary").all():
                summary.click()
            found = axe.Axe().run(tab)
            assert found.violations_count == 0, f"{task}: {found.generate_report()}"
            assert tab.evaluate("document.documentElement.scrollWidth") <= size["width"], task
        assert opened.faults == []
    finally:
        opened.close()


def test_models_lead_to_what_they_do(token_page):
    tab = token_page.open("#models")
    shown(tab, "models")
    tab.click(".model:has-text('entities') >> text=Try it")
    shown(tab, "playground")
    assert tab.locator("[aria-pressed=true]").inner_text() == "Label tokens"
    tab.click("text=Classify")
    assert "is a classifier" in tab.locator(".notice").inner_text()


def test_lab_agrees_with_the_server_on_every_kind(page):
    tab = page.open("#lab")
    shown(tab, "lab")
    kinds = tab.locator("#lab-kind option").evaluate_all("all => all.map((option) => option.value)")
    assert len(kinds) == 10

    def settle(name, value):
        """The difference that the page shows once its address says so."""
        tab.wait_for_function("([name, value]) => new URLSearchParams(location.hash.split('?')[1]).get(name) === value", arg=[name, value])
        tab.wait_for_load_state("networkidle")
        assert tab.locator(".lab-results .notice").all_inner_texts() == []
        facts = dict(zip(tab.locator("dt").all_inner_texts(), tab.locator("dd").all_inner_texts()))
        assert float(facts["server and page differ by"]) < 1e-5, (name, value, facts)
        return facts

    for kind in kinds[1:] + kinds[:1]:
        tab.select_option("#lab-kind", kind)
        settle("kind", kind if kind != kinds[0] else None)
        for group in ["mask", "positions"]:
            for choice in tab.locator(f"[aria-label='{group}'] button").all_inner_texts()[1:]:
                tab.click(f"[aria-label='{group}'] button:has-text('{choice}')")
                settle(group, choice.lower())
            tab.click(f"[aria-label='{group}'] button >> nth=0")
            settle(group, None)

    # A cell drawn by hand is hidden, and has no weight.
    tab.click("text=Drawn")
    settle("mask", "drawn")
    tab.focus(".heat >> nth=1")
    for key in ["ArrowDown", "ArrowRight", "Enter"]:
        tab.keyboard.press(key)
    assert settle("drawn", "1")["pairs scored"].startswith("143 of 144")
    tab.click("text=Measure it for longer texts")
    tab.wait_for_selector("figure svg circle", timeout=60000)


def test_overview_counts_requests(page, server):
    tab = page.open("#overview?model=minilm")
    shown(tab, "overview")
    with Client(server.grpc) as client:
        tiles = tab.locator(".tile strong")
        end = time.monotonic() + 20
        while tiles.nth(1).inner_text() in ("–", "0") or tiles.nth(2).inner_text() == "–":
            assert time.monotonic() < end
            client.pooled("minilm", texts(TEXT))
    assert "batches in a minute" in tab.locator("figure:has-text('Tokens in a batch')").inner_text()


def test_theme_is_chosen_and_kept(page):
    tab = page.open("#models")
    shown(tab, "models")
    background = "getComputedStyle(document.body).backgroundColor"
    light = tab.evaluate(background)
    tab.click("#theme")
    tab.click("#theme")
    assert tab.get_attribute("#theme", "aria-label") == "Colours: dark"
    dark = tab.evaluate(background)
    assert dark != light
    shown(page.open("#models"), "models")
    assert tab.evaluate(background) == dark


def test_data_needs_the_key(browser, tmp_path):
    (tmp_path / "keys").write_text(f"{KEY} operator infer,read\n")
    running = Server(tmp_path, {"tiny": settings.TINY_MODEL}, "--dtype=f32", f"--api_keys={tmp_path / 'keys'}")
    try:
        running.wait_ready()
        assert running.get("/console/live")[0] == 401
        tab = Page(browser, running).open("#models")
        tab.wait_for_selector("dialog[open]")
        assert tab.locator(".model").count() == 0
        tab.fill("#key-input", "not-the-key-0123456789")
        tab.click("text=Use the key")
        tab.wait_for_selector("dialog[open] >> text=does not know this key")
        tab.fill("#key-input", KEY)
        tab.keyboard.press("Enter")
        shown(tab, "models")
        assert KEY not in tab.evaluate("location.href + JSON.stringify([localStorage, sessionStorage])")
        assert running.get("/")[0] == 200
    finally:
        running.stop()
