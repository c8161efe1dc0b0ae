"""AttentionLens: rows are the library's attention behind the library's filters, and silence is silence."""
import random

import future_models
import numpy as np
import pytest
import torch
import traitlets
from torch import Tensor
from viewing import address, alone, pure

from fourierqk.combinators import Causal, Unit
from fourierqk.filters import AllPass, Filter, Gaussian
from fourierqk.widgets import CARRIES, MIME, AttentionLens, source
from fourierqk.widgets.attention_lens import FILTERS, HEADS, TEXT
from fourierqk.widgets.readers import ALPHABET, LENGTH, RECORDS

ADDRESS = address("attention_lens")
FIRST = AttentionLens().settings()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"system": "prefix-fourier-qk"}, "base-dot"),
        ({"head": 4}, "between 0 and 3"),
        ({"filter": "future"}, "window"),
        ({"frequency": 0.5}, "between 0.005 and 0.495 cycles per token"),
        ({"width": 0.001}, "between 0.005 and 0.25 cycles per token"),
        ({"text": "a" * 31}, "32"),
        ({"text": "w" * 32}, "letters of verse"),
        ({"token": 32}, "between 0 and 31"),
    ],
)
def test_a_wrong_value_is_named(wrong, says):
    with pytest.raises(traitlets.TraitError, match=says):
        AttentionLens(**wrong)


def test_repr_is_the_call_that_makes_it():
    lens = AttentionLens("fourier-qk", head=2, filter="past", token=3)
    assert eval(repr(lens)).settings() == lens.settings()
    assert lens._repr_mimebundle_()[0][MIME] == {"widget": "attention_lens", "settings": lens.settings()}
    assert HEADS == 4 and len(FIRST["text"]) == LENGTH


def test_weights_that_the_page_carries_are_small():
    size = sum(len(str(RECORDS[name]["weights"])) for name in CARRIES["attention_lens"])
    assert size < 150_000 and len(source("readers.js").encode()) < 30_000


# ---------------------------------------------------------------- the library's words for it


@pytest.fixture
def precise():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def features(s: dict) -> tuple[Tensor, Tensor]:
    """Queries and keys of the head, (1, 1, time, d), from the library's model."""
    model, found = future_models.restored(RECORDS[s["system"]]), []
    layer, head = divmod(s["head"], 2)
    model.blocks[layer].mixer.qkv.register_forward_hook(lambda module, given, out: found.append(out))
    with torch.no_grad():
        model(torch.tensor([[ALPHABET.index(c) for c in s["text"]]]))
    q, k, _ = (part.chunk(2, -1)[head][:, None] for part in found[0].chunk(3, -1))
    return q, k


def filter_of(s: dict) -> Filter:
    band = Gaussian(s["frequency"], s["width"])
    return {"none": AllPass(), "window": Unit(band), "past": Unit(Causal(band))}[s["filter"]]


def attention(q: Tensor, k: Tensor, filter: Filter) -> Tensor:
    """(heads, time, time)."""
    with torch.no_grad():
        scores = (filter(q) @ filter(k).mT)[0] / q.shape[-1] ** 0.5
    return scores.masked_fill(torch.ones(LENGTH, LENGTH).triu(1).bool(), -torch.inf).softmax(-1)


def silenced(q: Tensor, k: Tensor, m: int) -> tuple[Tensor, Tensor]:
    hush = torch.ones(LENGTH, 1)
    hush[m] = 0
    return q * hush, k * hush


def settings(count: int) -> list[dict]:
    rng = random.Random(5)
    return [
        {
            "system": rng.choice(CARRIES["attention_lens"]), "head": rng.randrange(HEADS),
            "filter": FILTERS[i % len(FILTERS)], "frequency": rng.uniform(0.005, 0.495),
            "width": 2 ** -rng.uniform(2, 7), "text": "".join(rng.choices(ALPHABET, k=LENGTH)), "token": 0,
        }
        for i in range(count)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def script(browser):
    with pure(browser, ADDRESS, "describe, filters, learned, sentence") as call:
        yield call


ROWS = "(({ weights, influence }) => [weights, influence].map((rows) => rows.map((row) => [...row])))(describe(a))"


def told(script, s: dict) -> tuple[np.ndarray, np.ndarray]:
    """(time, time) attention, zero behind the mask; (time, time) influence."""
    weights, influence = script(ROWS, s)
    assert [len(row) for row in weights] == [*range(1, LENGTH + 1)]
    return np.array([row + [0] * (LENGTH - len(row)) for row in weights]), np.array(influence)


def test_both_sides_know_the_same_filters(script):
    assert script("filters") == list(FILTERS)


@pytest.mark.parametrize("s", settings(15))
def test_the_page_computes_what_the_library_does(script, precise, s):
    q, k = features(s)
    filter = filter_of(s)
    ours = attention(q, k, filter)[0]
    moved = [(attention(*silenced(q, k, m), filter)[0] - ours).abs().sum(-1) / 2 for m in range(LENGTH)]
    weights, influence = told(script, s)
    np.testing.assert_allclose(weights, ours.numpy(), atol=1e-6)
    np.testing.assert_allclose(influence, torch.stack(moved, 1).numpy(), atol=1e-6)


@pytest.mark.parametrize("head", range(HEADS))
def test_behind_its_own_filter_a_head_looks_where_the_model_does(script, precise, head):
    """The filter that fourier-qk learned, set on the sliders: the attention of the very model."""
    first = FIRST | {"system": "fourier-qk", "head": head}
    band = script("learned(a)", first)
    own = future_models.restored(RECORDS["fourier-qk"]).blocks[head // 2].mixer.filter
    each = (x.expand(-1, 2, -1, -1) for x in features(first))  # the filter has a frequency a head
    theirs = attention(*each, own)[head % 2]
    weights, _ = told(script, first | {"frequency": band["centre"], "width": band["width"]})
    np.testing.assert_allclose(weights, theirs.numpy(), atol=1e-6)
    assert script("learned(a)", FIRST) is None


def test_only_a_filter_of_the_window_lets_the_future_in(script):
    for s in settings(12):
        _, influence = told(script, s)
        ahead = np.triu(influence, 1)
        assert (ahead.sum() > 0.05 * influence.sum()) if s["filter"] == "window" else (ahead == 0).all()
        assert (influence[0] == 0).all() and (influence[1:].sum(1) > 0).all()


def test_what_chapter_4_says_of_two_pictures(script):
    """Row 14 hangs on the line end and on itself; a band of the window turns the upper triangle red."""
    _, influence = told(script, FIRST | {"filter": "none"})
    assert influence[14, [12, 14]].sum() > 0.95 * influence[14].sum()
    _, influence = told(script, FIRST)
    ahead = influence[np.triu_indices(LENGTH, 1)]
    assert (ahead > 1e-3).mean() > 0.85


def test_what_the_first_pictures_say(script):
    plain = script("sentence(a, describe(a))", FIRST | {"filter": "none"})
    assert "token 14, o, looks most at token 12, line end, with 100 %" in plain
    assert "Nothing later moves this row or another" in plain
    assert "lies in its future" in script("sentence(a, describe(a))", FIRST)
    last = script("sentence(a, describe(a))", FIRST | {"token": LENGTH - 1})
    assert "Nothing later moves its row, but of all rows" in last


# ---------------------------------------------------------------- the reader's hand


@pytest.fixture
def live(browser):
    with alone(browser, AttentionLens()) as page:
        yield page


def test_a_drag_on_a_map_or_the_row_chooses_the_token(live):
    box = live.get_by_role("img").nth(1).bounding_box()
    height = box["height"] - 28 - 60
    live.mouse.move(box["x"] + 80, box["y"] + 28 + 3.5 / 32 * height)
    live.mouse.down()
    live.clock.run_for(100)
    assert live.evaluate("model.get('token')") == 3
    live.mouse.move(box["x"] + 80, box["y"] + 28 + 20.5 / 32 * height)
    live.clock.run_for(100)
    assert live.evaluate("model.get('token')") == 20
    live.mouse.up()
    row = live.get_by_role("img").nth(2)
    row.click(position={"x": 50 + 7.5 / 32 * (row.bounding_box()["width"] - 62), "y": 60})
    live.clock.run_for(600)
    assert live.evaluate("saved.token") == 7
    assert f"token 7, {TEXT[7]}, looks most at" in live.get_by_role("status").inner_text()


def test_keys_and_menus_reach_the_model(live):
    live.get_by_label("Row of token", exact=True).press("ArrowRight")
    live.get_by_label("Centre frequency, exact value").fill("0.25")
    live.get_by_label("Centre frequency, exact value").press("Enter")
    live.get_by_label("Bandwidth", exact=True).press("Home")
    live.get_by_role("combobox", name="Model").select_option("fourier-qk")
    live.get_by_role("combobox", name="Head").select_option("3")
    live.get_by_role("combobox", name="Queries and keys pass").select_option("none")
    live.get_by_label("Your own line").fill("the so")
    live.clock.run_for(600)
    saved = live.evaluate("saved")
    want = {"token": 15, "frequency": 0.25, "width": 0.005, "system": "fourier-qk", "head": 3, "filter": "none"}
    assert {key: saved[key] for key in want} == want
    assert saved["text"] == "te so" + TEXT[5:] and "h is not among" in live.get_by_role("alert").inner_text()
    AttentionLens(**saved)  # whatever the page sends, Python accepts
    assert live.get_by_label("Bandwidth", exact=True).is_disabled(), "a slider that would move nothing is off"
