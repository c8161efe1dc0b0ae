"""InfluenceMap: its numbers are those of torch, masks and kernels do what they are called, the reader's hand counts."""
import math
from itertools import product

import numpy as np
import pytest
import torch
import traitlets
from viewing import address, alone, leaves_no_trace, pure

from fourierqk.widgets import MIME
from fourierqk.widgets.influence_map import KERNELS, MASKS, TEXT, InfluenceMap

ADDRESS = address("influence_map")
TEXTS = [TEXT, "a", "ab", "Über 7 \U0001f600", "x" * 24]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"mask": "soft"}, "block"),
        ({"kernel": "box"}, "two-sided"),
        ({"text": ""}, "1 to 24"),
        ({"text": "a" * 25}, "1 to 24"),
        ({"token": -1}, "token"),
    ],
)
def test_a_wrong_value_is_named(wrong, says):
    with pytest.raises(traitlets.TraitError, match=says):
        InfluenceMap(**wrong)


def test_repr_is_the_call_that_makes_it():
    widget = InfluenceMap("block", kernel="mean", token=3)
    assert eval(repr(widget)).settings() == widget.settings()
    assert widget.settings() == {"mask": "block", "kernel": "mean", "text": TEXT, "token": 3}
    assert widget._repr_mimebundle_()[0][MIME] == {"widget": "influence_map", "settings": widget.settings()}


@pytest.fixture(scope="module")
def script(browser):
    with pure(browser, ADDRESS, "describe, influence, kernels, masks") as call:
        yield call


def convolved(x: torch.Tensor, h: torch.Tensor, size: int) -> torch.Tensor:
    """x (T, d) with a kernel (T,), by an FFT of `size` samples."""
    y = torch.fft.rfft(x, n=size, dim=0) * torch.fft.rfft(h, n=size)[:, None]
    return torch.fft.irfft(y, n=size, dim=0)[: len(x)]


def outputs(codes: torch.Tensor, mask: str, kernel: str) -> torch.Tensor:
    """The same head in torch, (T, 8) float64: convolutions by FFT, masks as matrices."""
    n, i = len(codes), torch.arange(8, dtype=torch.float64)
    x = torch.cos(1.7 * codes[:, None] * (i + 1) + i)
    lags = torch.arange(n, dtype=torch.float64)
    one = 0.7**lags
    size = n if kernel == "circular" else 2 * n
    h = {"none": one * (lags == 0), "mean": torch.full((n,), 1 / n, dtype=torch.float64)}.get(kernel, one)
    q = convolved(x, h, size)
    if kernel == "two-sided":
        q = q + convolved(x.flip(0), h, size).flip(0) - x
    if kernel == "mean":
        q = x.mean(0, keepdim=True).expand_as(x)
    t, s = lags[:, None], lags[None]
    block = (s // 4 > t // 4) if mask == "block" else s > t
    bias = torch.zeros(n, n).double().masked_fill(block, -10.0 if mask == "finite" else -math.inf)
    scores = q @ q.T / math.sqrt(8) + (0 if mask == "none" else bias)
    return x + scores.softmax(-1) @ x


def expected(text: str, mask: str, kernel: str) -> np.ndarray:
    codes = torch.tensor([float(ord(c)) for c in text], dtype=torch.float64)
    before = outputs(codes, mask, kernel)
    edits = torch.eye(len(codes), dtype=torch.float64)
    moved = [(outputs(codes + edit, mask, kernel) - before).abs().amax(1) for edit in edits]
    return torch.stack(moved, 1).numpy()


def test_both_sides_know_the_same_settings(script):
    assert (script("masks"), script("kernels")) == (list(MASKS), list(KERNELS))


@pytest.mark.parametrize(("mask", "kernel"), [*product(MASKS, KERNELS)])
def test_the_map_is_that_of_torch(script, mask, kernel):
    for text in TEXTS:
        theirs = np.array(script("influence(a[0], a[1])", [text, {"mask": mask, "kernel": kernel}]))
        assert theirs == pytest.approx(expected(text, mask, kernel), abs=1e-9)
        ours = InfluenceMap(mask, kernel, text=text).influence.numpy()
        assert ours == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize(("mask", "kernel"), [*product(MASKS, KERNELS)])
def test_red_cells_are_where_a_setting_puts_them(script, mask, kernel):
    """A causal mask has none with a one-sided kernel, nor with the mean, which makes the scores of a row equal."""
    found = script("describe(a[0], a[1])", [TEXT, {"mask": mask, "kernel": kernel}])
    causal = mask == "causal" and kernel in ("none", "causal", "mean")
    assert (found["leaks"] == []) == causal
    if mask == "block" and kernel == "none":
        assert {t // 4 == s // 4 for t, s in found["leaks"]} == {True} and found["ahead"] == 3


@pytest.fixture
def live(browser):
    with alone(browser, InfluenceMap()) as page:
        yield page


def test_what_the_reader_does_reaches_the_model(live):
    live.get_by_role("combobox", name="Mask").select_option("block")
    live.get_by_role("combobox", name="Queries and keys pass").select_option("two-sided")
    live.get_by_label("A line of text").fill("to be, or not")
    live.clock.run_for(50)  # a frame, after which the slider is as long as the line
    live.get_by_label("Edited letter").press("End")
    live.clock.run_for(600)
    saved = live.evaluate("saved")
    assert saved == {"mask": "block", "kernel": "two-sided", "text": "to be, or not", "token": 12}
    assert "The future is heard" in live.get_by_role("status").inner_text()
    InfluenceMap(**saved)


def test_a_press_on_the_map_chooses_a_letter(live):
    live.clock.run_for(200)
    box = live.locator("canvas").bounding_box()
    live.mouse.click(box["x"] + 50 + 0.5 / 12 * (box["width"] - 62), box["y"] + 100)
    live.clock.run_for(600)
    assert live.evaluate("model.get('token')") == 0
    assert "moves nothing before it" in live.get_by_role("status").inner_text()


def test_a_shorter_line_moves_the_chosen_letter_inside(live):
    live.get_by_label("Edited letter").press("End")
    live.get_by_label("A line of text").fill("ab")
    live.clock.run_for(600)
    assert live.get_by_label("Edited letter").get_attribute("aria-valuetext") == "letter 1"


def test_it_leaves_no_trace(live):
    assert leaves_no_trace(live)
