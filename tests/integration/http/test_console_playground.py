# SPDX-License-Identifier: Apache-2.0
"""The console's playground in a real browser."""

import json
import re
import shutil

import numpy as np
import pytest

from harness import settings
from harness.attendant import Client, array, pb, request, texts
from harness.console import NARROW, WIDE, Page, check_sight, shown, watched
from harness.server import serving

LABELS = ["B-LOC", "B-PER", "O", "I-PER"]


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


def test_playground_compares_many_texts(page):
    """The similarities of 400 texts are more values than a function of JavaScript takes arguments."""
    tab = page.open("#playground?model=minilm")
    shown(tab, "playground")
    tab.fill("textarea", "\n".join(f"text {i}" for i in range(400)))
    tab.click("form button.primary")
    tab.wait_for_selector(".result .vectors, .result .notice", timeout=60000)
    assert tab.locator(".result .notice").all_inner_texts() == []
    assert tab.locator(".vectors li").count() == 400


def test_playground_drops_the_answer_to_an_earlier_task(page):
    tab = page.open("#playground?model=minilm")
    shown(tab, "playground")
    held = []
    tab.route("**/attendant.v1.Encoder/Encode", lambda route: route.continue_() if held else held.append(route))
    tab.fill("textarea", "one\ntwo")
    with tab.expect_request("**/attendant.v1.Encoder/Encode"):
        tab.click("form button.primary")
    tab.click("text=Rank")
    tab.click("form button.primary")
    tab.wait_for_selector(".bars.wide")
    with tab.expect_response("**/attendant.v1.Encoder/Encode") as late:
        held[0].continue_()
    late.value.finished()
    tab.evaluate("() => new Promise((done) => setTimeout(done))")  # the page has taken it
    assert tab.locator(".result .bars.wide").count() == 1
    assert tab.locator(".result .vectors").count() == 0


def test_playground_changes_tasks_before_the_models_are_known(page):
    held = []
    page.tab.route("**/attendant.v1.Encoder/ListModels", lambda route: held.append(route))
    with page.tab.expect_request("**/attendant.v1.Encoder/ListModels"):
        tab = page.open("#playground")
    tab.click("text=Rank")
    held[0].continue_()
    shown(tab, "playground")
    assert tab.locator("textarea").count() == 2


@pytest.mark.parametrize("task", ["toString", "constructor", "__proto__", ""])
def test_playground_bears_hand_made_addresses(page, task):
    tab = page.open(f"#playground?task={task}&model=toString")
    shown(tab, "playground")
    assert tab.locator("[aria-label=Task] [aria-pressed=true]").inner_text() == "Similarity"


def test_playground_says_that_another_model_has_taken_the_name(page):
    """One of another kind, whose answer the page would draw wrongly."""
    tab = page.open("#playground?model=minilm")
    shown(tab, "playground")

    def labelled(route):
        models = route.fetch().json()
        for model in models["models"]:
            model |= {"labels": ["good", "bad"], "tasks": ["scores"]}
        route.fulfill(json=models)

    tab.route("**/attendant.v1.Encoder/ListModels", labelled)
    tab.click("form button.primary")
    tab.wait_for_selector(".result .error >> text=minilm is another model now")
    tab.unroute("**/attendant.v1.Encoder/ListModels")
    tab.click("form button.primary")
    tab.wait_for_selector(".vectors")


def embeddings(server, prompt_name, *lines):
    message = request("m", texts(*lines), pooled=pb.PooledOutput(normalize=True))
    message.prompt_name = prompt_name
    with Client(server.grpc) as client:
        return array(client.encode(message).pooled)


def test_playground_chooses_prompts(browser, tmp_path):
    """A list where the model has prompts; a query and its passages have one each."""
    with serving(tmp_path, {"m": settings.ROOT / "tests/golden/sentence/prompts"}, "--dtype=f32") as running, \
            watched(browser, running) as opened:
        tab = opened.open("#playground")
        shown(tab, "playground")
        tab.select_option(".prompts select", label="long")
        tab.click("form button.primary")
        tab.wait_for_selector(".vectors")
        tab.click("summary")
        assert '"prompt_name":"long"' in tab.locator("pre").inner_text()
        tab.click("text=Rank")
        assert tab.locator(".prompts select").evaluate_all("all => all.map(one => one.selectedOptions[0].text)") == [
            "query", "document"]
        tab.fill("textarea >> nth=0", "the cat")
        tab.fill("textarea >> nth=1", "a cat\none and one")
        tab.click("form button.primary")
        tab.wait_for_selector(".bars.wide")
        scores = [float(text) for text in tab.locator(".bars.wide li > b").all_inner_texts()]
        query = embeddings(running, "query", "the cat")[0]
        passages = embeddings(running, "document", "a cat", "one and one")
        assert scores == pytest.approx(sorted(passages @ query, reverse=True), abs=1e-3)
        tab.select_option(".prompts select >> nth=0", label="none")
        tab.click("form button.primary")  # disabled until the new answer stands in the place of the last one
        tab.wait_for_selector("form button.primary:enabled")
        tab.click("summary")
        assert '"prompt_name":""' in tab.locator("pre").inner_text()


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
    with watched(browser, token_server) as opened:
        yield opened


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
            check_sight(tab, task, size)
        assert opened.faults == []
    finally:
        opened.close()


def test_address_has_the_chosen_model(token_page):
    tab = token_page.open("#playground")
    shown(tab, "playground")
    models = tab.locator(".field select option").all_inner_texts()
    assert len(models) == 2
    for model in reversed(models):
        tab.select_option(".field select", model)
        assert tab.evaluate("location.hash") == f"#playground?model={model}"
    tab.reload()
    shown(tab, "playground")
    assert tab.input_value(".field select") == models[0]


def test_models_lead_to_what_they_do(token_page):
    tab = token_page.open("#models")
    shown(tab, "models")
    tab.click(".model:has-text('entities') >> text=Try it")
    shown(tab, "playground")
    assert tab.locator("[aria-pressed=true]").inner_text() == "Label tokens"
    tab.click("text=Classify")
    assert "is a classifier" in tab.locator(".notice").inner_text()
