"""FutureEditor: the page computes what torch does, no past reader knows of an edit, and the reader's hand counts."""
import random

import future_models
import numpy as np
import pytest
import torch
import traitlets
from viewing import address, alone, leaves_no_trace, pure

from fourierqk.causality import audit
from fourierqk.data import verse
from fourierqk.data.grammar import VERSE, write
from fourierqk.losses import excess, honest_loss, ordered_loss
from fourierqk.records import folder
from fourierqk.site.pages import WidgetFigure
from fourierqk.storage import read_json
from fourierqk.widgets import MIME, source
from fourierqk.widgets.future_editor import BEFORE, TEXT, FutureEditor
from fourierqk.widgets.readers import ALPHABET, LENGTH, RECORDS

ADDRESS = address("future_editor")
NAMES = sorted(future_models.NAMES)
FIRST = {"text": TEXT, "before": BEFORE, "token": next(t for t in range(LENGTH) if TEXT[t] != BEFORE[t])}


def lines(count: int, seed: int = 0) -> list[str]:
    """Lines of verse and lines of letters at random, in turn."""
    rng, poem = random.Random(seed), "".join(c.text for c in write(VERSE, 5000, f"lines {seed}"))
    starts = [rng.randrange(len(poem) - LENGTH) for _ in range(count)]
    return [poem[s : s + LENGTH] if i % 2 else "".join(rng.choices(ALPHABET, k=LENGTH)) for i, s in enumerate(starts)]


@pytest.fixture(scope="module")
def models() -> dict[str, torch.nn.Module]:
    return {name: future_models.restored(RECORDS[name]) for name in NAMES}


@pytest.fixture(scope="module")
def script(browser):
    with pure(browser, ADDRESS, "compare, logits, predict, sentence") as call:
        yield call


# ---------------------------------------------------------------- what Python carries


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"text": "a" * (LENGTH - 1)}, "32"),
        ({"before": "a" * (LENGTH + 1)}, "32"),
        ({"text": "w" + "a" * (LENGTH - 1)}, "letters of verse"),
        ({"token": LENGTH}, "token"),
        ({"token": -1}, "token"),
    ],
)
def test_a_wrong_value_is_named(wrong, says):
    with pytest.raises(traitlets.TraitError, match=says):
        FutureEditor(**wrong)


def test_repr_is_the_call_that_makes_it():
    widget = FutureEditor(token=3)
    assert eval(repr(widget)).settings() == widget.settings() == FIRST | {"token": 3}
    assert FutureEditor().settings() == FIRST
    assert widget._repr_mimebundle_()[0][MIME] == {"widget": "future_editor", "settings": widget.settings()}


def test_records_are_of_the_three_systems_and_small():
    files = sorted(folder("future").glob("*.json"))
    assert [path.stem for path in files] == [*RECORDS] == NAMES
    assert ALPHABET == "".join(VERSE.vocab)
    assert all(path.stat().st_size < 100_000 for path in files)
    assert len(source("future_editor.js").encode()) < 30_000
    assert all(read_json(path)["uncommitted_changes"] is False for path in files)
    assert len({record["floor"] for record in RECORDS.values()}) == 1


def test_a_page_without_javascript_tells_the_losses():
    class Data:
        mime_type = MIME
        content = FutureEditor()._repr_mimebundle_()[0][MIME]

    text = WidgetFigure.handle_mime(None, Data, inline=False)[0].astext()
    said = text.split("<noscript>")[1].split("</noscript>")[0]
    losses = RECORDS["fourier-qk"]["losses"]
    assert f"fourier-qk: {losses['ordered']['mean']:.2f}, {losses['honest']['mean']:.2f}" in said
    assert len(text) < 4000, "weights are in the script, once, and not in every page"


def test_losses_are_those_of_the_very_weights(models, one_thread):
    """And they tell the page's story: fourier-qk claims less than the floor, and has more than base-dot in truth."""
    corpus = verse()
    honest = {name: honest_loss(model, corpus) for name, model in models.items()}
    assert honest["fourier-qk"].minus(honest["base-dot"]).low > 0
    claimed = {name: record["losses"]["ordered"]["mean"] for name, record in RECORDS.items()}
    assert abs(claimed["prefix-fourier-qk"] - claimed["base-dot"]) < 0.02  # "the gain is gone"
    for name, model in models.items():
        record, ordered = RECORDS[name], ordered_loss(model, corpus)
        assert record["corpus"]["sha256"] == corpus.sha256
        assert record["losses"]["ordered"]["mean"] == pytest.approx(ordered.mean, abs=1e-4)
        assert record["losses"]["honest"]["mean"] == pytest.approx(honest[name].mean, abs=1e-4)
        over = excess(ordered, corpus)
        assert record["floor"] == pytest.approx(ordered.mean - over.mean, abs=1e-4)
        assert record["losses"]["floor"]["below"] == over.below == (name == "fourier-qk")
        assert record["losses"]["honest"]["mean"] > record["floor"]


@pytest.mark.parametrize("name", NAMES)
def test_the_audit_says_of_the_weights_what_the_page_shows(models, name, one_thread):
    verdict = audit(models[name], len(ALPHABET), LENGTH).verdict
    assert verdict == ("leaks" if name == "fourier-qk" else "causal")


# ---------------------------------------------------------------- what the page computes


@pytest.mark.parametrize("name", NAMES)
def test_the_page_computes_what_torch_does(script, models, name):
    texts = lines(50)
    ids = torch.tensor([[ALPHABET.index(c) for c in text] for text in texts])
    with torch.no_grad():
        ours = models[name](ids)[0].numpy()
    theirs = np.array(script("a[1].map((text) => logits(a[0], text))", [name, texts]))
    assert np.abs(theirs - ours).max() < 1e-2
    clear = np.diff(np.sort(ours, -1)[..., -2:])[..., 0] > 1e-3  # no choice hangs on round-off
    assert (theirs.argmax(-1) == ours.argmax(-1))[clear].all() and clear.mean() > 0.95
    shown = script(f"a.map((text) => predict(text)[{NAMES.index(name)}])", texts)
    assert [[x["letter"] for x in row] for row in shown] == [[ALPHABET[i] for i in row] for row in theirs.argmax(-1)]
    p = torch.from_numpy(ours).softmax(-1).amax(-1).numpy()
    assert np.array([[x["p"] for x in row] for row in shown]) == pytest.approx(p, abs=1e-3)


def edits(count: int) -> list[list[str]]:
    """Lines, and the same with one letter, some or all from a place on changed."""
    rng, found = random.Random(7), []
    for text in lines(count, seed=1):
        start, many = rng.randrange(LENGTH), rng.choice([1, 4, LENGTH])
        new = [*text]
        for t in range(start, min(start + many, LENGTH)):
            new[t] = rng.choice(ALPHABET.replace(text[t], ""))
        found.append([text, "".join(new)])
    return found


def test_only_the_reader_of_the_window_knows_of_an_edit(script):
    pairs = edits(120)
    found = script("a.map((pair) => { const { edit, flips } = compare(...pair); return { edit, flips }; })", pairs)
    for (before, text), d in zip(pairs, found, strict=True):
        assert d["edit"] == next(t for t in range(LENGTH) if before[t] != text[t])
        assert all(t < d["edit"] for places in d["flips"] for t in places)
    counts = {name: sum(len(d["flips"][s]) for d in found) for s, name in enumerate(NAMES)}
    assert counts["base-dot"] == counts["prefix-fourier-qk"] == 0
    assert counts["fourier-qk"] > len(pairs)


def test_what_the_first_picture_shows(script):
    d = script("compare(a[0], a[1])", [BEFORE, TEXT])
    flips = dict(zip(NAMES, d["flips"], strict=True))
    assert len(flips["fourier-qk"]) >= 3 and flips["base-dot"] == flips["prefix-fourier-qk"] == []
    assert all(any(t >= d["edit"] for t in places) for places in d["moved"]), "an edit changes what comes after it"
    said = script("sentence(a[0], a[1], compare(a[0], a[1]))", [BEFORE, TEXT])
    assert f"in fourier-qk {len(flips['fourier-qk'])} earlier predictions" in said and "in base-dot none" in said
    assert "Nothing is changed" in script("sentence(a, a, compare(a, a))", TEXT)


# ---------------------------------------------------------------- the reader's hand


@pytest.fixture
def live(browser):
    with alone(browser, FutureEditor()) as page:
        page.add_style_tag(content=source("widgets.css"))
        yield page


def place(page):
    return page.get_by_label("Letter to change")


def test_the_keyboard_reaches_every_control(live):
    reached = []
    for _ in range(5):
        live.keyboard.press("Tab")
        reached.append(live.evaluate("document.activeElement.type || document.activeElement.tagName"))
    assert reached[:4] == ["range", "button", "text", "button"]


def test_keys_choose_and_write(live):
    place(live).press("Home")
    for _ in range(4):
        place(live).press("ArrowRight")
    old = live.evaluate("model.get('text')")
    place(live).press("k" if old[4] != "k" else "b")
    live.clock.run_for(600)
    saved = live.evaluate("saved")
    assert saved["token"] == 4 and saved["before"] == old
    assert [t for t in range(LENGTH) if saved["text"][t] != old[t]] == [4]
    assert "Letter 5 was" in live.get_by_role("status").inner_text()
    FutureEditor(**saved)  # whatever the page sends, Python accepts


def test_a_click_chooses_and_buttons_change_and_reset(live):
    live.locator(".fqk-column").nth(9).click()
    live.clock.run_for(300)
    assert live.evaluate("document.activeElement.type") == "range"
    live.get_by_role("button", name="Next letter").click()
    live.clock.run_for(600)
    saved = live.evaluate("saved")
    assert saved["text"][9] == ALPHABET[(ALPHABET.index(TEXT[9]) + 1) % len(ALPHABET)] and saved["before"] == TEXT
    live.get_by_role("button", name="Reset").click()
    live.clock.run_for(600)
    assert live.evaluate("saved") == FIRST


def test_a_line_of_ones_own(live):
    own = live.get_by_label("Your own line")
    own.fill("TheO: me")
    live.clock.run_for(600)
    saved = live.evaluate("saved")
    assert saved["text"] == "TeO: me" + TEXT[7:]
    assert live.get_by_role("alert").inner_text().startswith("h is not among the 36 letters")
    FutureEditor(**saved)
    own.fill("")
    live.clock.run_for(600)
    assert live.evaluate("model.get('text')") == saved["text"] and not live.get_by_role("alert").count()
    place(live).press("w")
    assert live.get_by_role("alert").inner_text().startswith("w is not among")


def test_marks_say_what_is_counted_and_not_by_colour_alone(live):
    flips = live.locator(".fqk-flip")
    said = live.get_by_role("status").inner_text()
    assert flips.count() >= 3 and f"{flips.count()} earlier predictions" in said
    assert live.evaluate("getComputedStyle(document.querySelector('.fqk-flip'), '::before').content") == '"▲"'


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_the_screen_alone_and_beside_another(browser, width, scheme):
    looks = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    with alone(browser, FutureEditor(), **looks) as page:
        page.add_style_tag(content=source("widgets.css") + ":root { color-scheme: light dark; }")
        page.evaluate("(a) => import(a).then((m) => m.default.render({ model, el: document.body }))", ADDRESS)
        page.clock.run_for(600)
        assert page.locator(".fqk-widget").count() == 2
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        box = page.locator(".fqk-column").first.bounding_box()
        assert box["width"] >= 15 and box["height"] >= 100
        assert page.locator(".fqk-line").count() == 2 * (2 if width == 390 else 1)
        cells = "[...document.querySelectorAll('.fqk-column .fqk-cell')]"
        assert page.evaluate(f"{cells}.every((c) => c.scrollWidth <= c.clientWidth + 1)")


def test_it_leaves_no_trace(live):
    assert leaves_no_trace(live)
