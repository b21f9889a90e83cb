# SPDX-License-Identifier: Apache-2.0
"""The console in a real browser: what people click, type and see. Its playground is in test_console_playground.py."""

import re
import shutil
import time
import urllib.parse

import numpy as np
import pytest

from harness import settings
from harness.attendant import Client, array, pb, request, texts
from harness.console import NARROW, WIDE, Page, check_sight, shown
from harness.server import serving

VIEWS = ["overview", "models", "playground", "attention", "lab"]
TEXT = "The keys to the old cabinet are on the table."
KEY = "console-key-0123456789"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_every_view_is_accessible_and_fits(browser, server, scheme, size):
    opened = Page(browser, server, viewport=size, color_scheme=scheme)
    try:
        for view in VIEWS:
            tab = opened.open(f"#{view}")
            shown(tab, view)
            check_sight(tab, view, size)
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
    tab.click(".head-chip >> text='4'")
    tab.click(".head-chip >> text='0'")
    tab.click(".looking li >> nth=2")
    tokens = tab.locator(".looking li").all_inner_texts()
    assert tokens[0] == "[CLS]" and tokens[2] == "keys"
    row = weights[1, 4, 2]
    assert [name for name, _ in bars(tab, 0)] == [tokens[i] for i in np.argsort(-row)[:6]]
    assert bars(tab, 0)[0][1] == pytest.approx(100 * row.max(), abs=0.6)
    assert bars(tab, 1)[0][1] == pytest.approx(100 * weights[1, 4, :, 2].max(), abs=0.6)

    # The address restores the view, and counts layers and heads as the page does.
    address = tab.evaluate("location.hash")
    assert "layer=1&heads=4&" in address
    again = page.open(address)
    shown(again, "attention")
    assert again.input_value("#attention-text") == TEXT
    assert again.locator(".detail h2").inner_text() == "keys"
    assert again.locator(".thumb[aria-pressed=true]").get_attribute("aria-label").startswith("Layer 1, head 4")


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
    assert tab.locator(".detail h2").inner_text().startswith("Layer 0, head 0")

    tab.click(".thumb[aria-label^='Layer 2, head 1:']")
    tab.click(".thumb[aria-label^='Layer 2, head 3:']", modifiers=["Control"])
    assert tab.locator(".head-chip[aria-pressed=true]").all_inner_texts() == ["1", "3"]
    tab.click("text=Grid")
    assert tab.locator(".grid-of-head").count() == 2
    tab.focus(".heat >> nth=0")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowDown")
    assert re.fullmatch(r"the looks at \[CLS\] with [0-9.]+ %", tab.locator(".readout >> nth=0").inner_text())


def test_explorer_keeps_the_maps_of_a_model_until_another_answers(page):
    """What is shown is of the model that answered, though the chosen one has other numbers of layers and heads."""
    tab = page.open(f"#attention?model=minilm&text={urllib.parse.quote(TEXT)}")
    shown(tab, "attention")
    tab.select_option(".slot select", "tiny")  # it has no tokenizer
    tab.wait_for_selector(".status .error >> text=tokenizer")
    page.faults.clear()  # the browser's own words about this answer
    tab.click("[aria-label='Previous layer']")
    tab.click(".head-chip >> text='11'")
    assert tab.locator(".head-chip").count() == 12
    assert "model=minilm" in tab.evaluate("location.hash") and "layer=5&heads=0%2C11&" in tab.evaluate("location.hash")
    tab.select_option(".slot select", "minilm")
    tab.wait_for_selector("text=/13 tokens, 6 layers/")
    assert tab.locator(".head-chip[aria-pressed=true]").all_inner_texts() == ["0", "11"]


@pytest.mark.parametrize("numbers", [
    "layer=-1&heads=-2&token=-3", "layer=1.5&heads=0.5&token=1.5", "layer=1e400&heads=x,,&token=NaN",
    "layer=99999999999999999999&heads=99,12&token=13", "layer=toString&heads=constructor&token=__proto__",
])
def test_explorer_bears_hand_made_addresses(page, numbers):
    tab = page.open(f"#attention?model=minilm&text={urllib.parse.quote(TEXT)}&view=toString&{numbers}")
    shown(tab, "attention")
    assert tab.locator(".status .error").count() == 0
    layer = "5" if "9999" in numbers else "0"
    assert tab.locator(".detail h2").inner_text() == f"Layer {layer}, head 0"
    assert tab.locator(".thumb[aria-pressed=true]").count() == 1


def test_an_address_may_have_a_question_in_it(page):
    tab = page.open("#attention?model=minilm&text=Who+is+it?+Is+it+me?&layer=2")
    shown(tab, "attention")
    assert tab.input_value("#attention-text") == "Who is it? Is it me?"
    assert tab.locator(".detail h2").inner_text() == "Layer 2, head 0"


def test_explorer_shows_a_model_that_has_taken_the_name_of_another(page):
    """The page counts layers and heads as the answer does, not as the list of models did before."""
    def fewer(route):
        models = route.fetch().json()
        for model in models["models"]:
            model |= {"layers": 2, "heads": 3}
        route.fulfill(json=models)

    page.tab.route("**/attendant.v1.Encoder/ListModels", fewer)
    tab = page.open(f"#attention?model=minilm&text={urllib.parse.quote(TEXT)}&layer=5&heads=11")
    shown(tab, "attention")
    assert tab.locator(".status p").inner_text().startswith("minilm: 13 tokens, 6 layers × 12 heads")
    assert tab.locator(".detail h2").inner_text() == "Layer 5, head 11"
    assert tab.locator(".thumb").count() == 72


def test_explorer_draws_long_texts(browser, tmp_path):
    """A map of 402 tokens has more values than a function of JavaScript takes arguments."""
    model = tmp_path / "long"
    # Without the settings of sentence-transformers texts are cut at 512 tokens, not at 256.
    shutil.copytree(settings.model_dir(), model, ignore=shutil.ignore_patterns("modules.json", "sentence_bert_config.json"))
    with serving(tmp_path, {"long": model}) as running:
        opened = Page(browser, running)
        tab = opened.open(f"#attention?text={'+'.join(['keys'] * 400)}")
        tab.wait_for_selector(".status p, .status .notice", timeout=60000)
        assert tab.locator(".status .error").all_inner_texts() == []
        shown(tab, "attention")
        assert "402 tokens" in tab.locator(".status").inner_text()
        assert tab.locator(".detail h2").inner_text() == "Layer 0, head 0"
        opened.close()


def test_lab_agrees_with_the_server_on_every_kind(page):
    tab = page.open("#lab")
    shown(tab, "lab")
    kinds = tab.locator("#lab-kind option").evaluate_all("all => all.map((option) => option.value)")
    assert len(kinds) == 10

    def settle(name, value, action, *arguments):
        """What the page shows after an action that gives a setting this value, once it has drawn the answer."""
        before = tab.query_selector(".facts")
        action(*arguments)
        tab.wait_for_function("([name, value]) => new URLSearchParams(location.hash.split('?')[1]).get(name) === value", arg=[name, value])
        tab.wait_for_function("(before) => !before.isConnected || document.querySelector('.lab-results .notice')", arg=before)
        assert tab.locator(".lab-results .notice").all_inner_texts() == []
        facts = dict(zip(tab.locator("dt").all_inner_texts(), tab.locator("dd").all_inner_texts()))
        assert float(facts["server and page differ by"]) < 1e-5, (name, value, facts)
        return facts

    for kind in kinds[1:] + kinds[:1]:
        settle("kind", kind if kind != kinds[0] else None, tab.select_option, "#lab-kind", kind)
        for group in ["mask", "positions"]:
            for choice in tab.locator(f"[aria-label='{group}'] button").all_inner_texts()[1:]:
                settle(group, choice.lower(), tab.click, f"[aria-label='{group}'] button:has-text('{choice}')")
            settle(group, None, tab.click, f"[aria-label='{group}'] button >> nth=0")

    # A cell drawn by hand is hidden, and has no weight.
    settle("mask", "drawn", tab.click, "text=Drawn")
    tab.focus(".heat >> nth=1")
    for key in ["ArrowDown", "ArrowRight"]:
        tab.keyboard.press(key)
    assert settle("drawn", "1", tab.keyboard.press, "Enter")["pairs scored"].startswith("143 of 144")
    tab.click("text=Measure it for longer texts")
    tab.wait_for_selector("figure svg circle", timeout=60000)


@pytest.mark.parametrize("address", [
    *(f"positions=alibi&heads={heads}&head={head}" for heads in (3, 4) for head in range(heads)),
    "kind=multi_head&positions=alibi&heads=3&head=2",
    "kind=strided&n=10&block=4",  # the last block is not full
    "kind=strided&n=9&block=4&mask=causal",
    "kind=strided&n=8&block=4",
])
def test_lab_agrees_with_the_server_on_odd_sizes(page, address):
    tab = page.open(f"#lab?{address}")
    shown(tab, "lab")
    assert tab.locator(".lab-results .notice").all_inner_texts() == []
    facts = dict(zip(tab.locator("dt").all_inner_texts(), tab.locator("dd").all_inner_texts()))
    assert float(facts["server and page differ by"]) < 1e-5


@pytest.mark.parametrize("address, expected", [
    ("kind=toString", {}),
    ("mask=toString&positions=toString&tokens=toString&toString=1&__proto__=2", {}),
    ("kind=linformer&mask=causal&positions=alibi", {"pairs": "48 of 48"}),
    ("kind=linear&mask=drawn&drawn=1.2", {}),
    ("n=7.5&d=5.5&heads=1.5&head=3&seed=1.5", {"pairs": "64 of 64"}),
    ("n=1e400&heads=-1&head=3&block=x", {}),
    ("mask=drawn&drawn=1.zzzz.-1.!.&n=4", {"pairs": "15 of 16"}),
])
def test_lab_bears_hand_made_addresses(page, address, expected):
    tab = page.open(f"#lab?{address}")
    shown(tab, "lab")
    assert tab.locator(".lab-results .notice").all_inner_texts() == []
    facts = dict(zip(tab.locator("dt").all_inner_texts(), tab.locator("dd").all_inner_texts()))
    assert float(facts["server and page differ by"]) < 1e-5
    assert facts["pairs scored"].startswith(expected.get("pairs", ""))
    assert tab.locator(".controls [aria-pressed=true]").count() == 3  # of masks, positions and tokens


def test_overview_names_a_model_that_is_gone(page):
    """The chosen one stays chosen, as a model that comes back is."""
    tab = page.open("#overview?model=gone")
    shown(tab, "overview")
    picker = tab.locator(".head select")
    assert picker.evaluate("one => one.selectedOptions[0].text") == "gone (not here)"
    assert re.search("NaN|Infinity|undefined", tab.locator("main").inner_text()) is None
    picker.select_option("minilm")
    assert "model=minilm" in tab.evaluate("location.hash")


def test_overview_counts_requests(page, server):
    tab = page.open("#overview?model=minilm")
    shown(tab, "overview")
    with Client(server.grpc) as client:
        tiles = tab.locator(".tile strong")
        end = time.monotonic() + 60
        while tiles.nth(1).inner_text() in ("–", "0") or tiles.nth(2).inner_text() == "–":
            assert time.monotonic() < end
            client.pooled("minilm", texts(TEXT))
    assert "batches in a minute" in tab.locator("figure:has-text('Tokens in a batch')").inner_text()


def test_overview_bears_counters_that_fall(page):
    """Those of a model that was unloaded start at 0 when it comes back."""
    answers = 0

    def answer(route):
        nonlocal answers
        answers += 1
        live = route.fetch().json()
        [model] = [model for model in live["models"] if model["model"] == "minilm"]
        old = answers <= 3
        for name, bounds in [("batch_tokens", "tokens"), ("batch_requests", "requests")]:
            counts = [0] * (len(live["bounds"][bounds]) + 1)
            counts[2 if old else 1] = 1000 if old else 10 * answers
            model[name] = {"counts": counts, "sum": 3 * sum(counts)}
        counts = [0] * (len(live["bounds"]["seconds"]) + 1)
        counts[3 if old else 2] = 1000 if old else 10 * answers
        model["phases"] = {"total": {"counts": counts, "sum": 1}}
        model["requests"] = sum(counts)
        route.fulfill(json=live)

    page.tab.route("**/console/live", answer)
    tab = page.open("#overview?model=minilm")
    with tab.expect_response(lambda _: answers > 5):
        pass
    said = tab.locator("main").inner_text()
    assert re.search("NaN|Infinity|undefined", said) is None
    median, shapes = tab.locator(".tile strong >> nth=2").inner_text(), tab.locator("figure:has-text('Tokens in a batch')").inner_text()
    assert re.fullmatch(r"[0-9.]+ (µs|ms)", median)
    assert re.search(r"[0-9]+ batches in a minute, [0-9.]+ tokens each", shapes)
    lines = tab.locator("path.line").evaluate_all("all => all.map((line) => line.getAttribute('d'))")
    assert not any(re.search("NaN|Infinity", line) for line in lines)


def test_skip_link_keeps_the_view(page):
    tab = page.open("#models")
    shown(tab, "models")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "main"
    tab.reload()
    shown(tab, "models")
    # An address from elsewhere.
    shown(page.open("#main"), "overview")


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


@pytest.fixture(scope="module")
def key_server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    (folder / "keys").write_text(f"{KEY} operator infer,read\n")
    with serving(folder, {"tiny": settings.TINY_MODEL}, "--dtype=f32", f"--api_keys={folder / 'keys'}") as running:
        yield running


def test_data_needs_the_key(browser, key_server):
    assert key_server.get("/console/live")[0] == 401
    tab = Page(browser, key_server).open("#models")
    tab.wait_for_selector("dialog[open]")
    assert tab.locator(".model").count() == 0
    tab.fill("#key-input", "not-the-key-0123456789")
    tab.click("text=Use the key")
    tab.wait_for_selector("dialog[open] >> text=does not know this key")
    tab.fill("#key-input", KEY)
    tab.keyboard.press("Enter")
    shown(tab, "models")
    assert KEY not in tab.evaluate("location.href + JSON.stringify([localStorage, sessionStorage])")
    assert key_server.get("/")[0] == 200


def test_closing_the_dialog_keeps_the_key(browser, key_server):
    tab = Page(browser, key_server).open("#models")
    tab.wait_for_selector("dialog[open]")
    tab.fill("#key-input", KEY)
    tab.keyboard.press("Enter")
    shown(tab, "models")
    tab.click("#key")
    tab.evaluate("document.getElementById('key-dialog').close()")  # as Escape does in browsers that keep the last value
    tab.click("text=Playground")
    shown(tab, "playground")
    assert tab.locator("dialog[open]").count() == 0


@pytest.mark.parametrize("view, path", [("overview", "/console/live"), ("models", "/attendant.v1.Encoder/ListModels")])
def test_a_view_asks_for_the_key_once(browser, key_server, view, path):
    opened = Page(browser, key_server)
    asked = []
    opened.tab.on("request", lambda request: asked.append(urllib.parse.urlsplit(request.url).path))
    opened.tab.clock.install()
    tab = opened.open(f"#{view}")
    tab.clock.run_for(1)
    tab.wait_for_selector("dialog[open]")
    tab.click("dialog >> text=Cancel")
    with tab.expect_response("**/readyz"):
        tab.clock.run_for(10000)
    assert asked.count(path) == 1
    assert tab.locator("dialog[open]").count() == 0
    # With a key the view goes on.
    tab.click("#key")
    tab.fill("#key-input", KEY)
    tab.keyboard.press("Enter")
    tab.clock.resume()
    shown(tab, view)
    opened.close()
