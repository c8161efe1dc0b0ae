"""DFTExplorer: arrows lead where the DFT says, in Python and in the page, and the reader's hand turns them."""
import math
import random

import numpy as np
import pytest
import torch
import traitlets
from scipy.signal import get_window
from viewing import address, alone, pure

from fourierqk.widgets import MIME, DFTExplorer
from fourierqk.widgets.dft_explorer import TEXT, WINDOWS

ADDRESS = address("dft_explorer")
NAMES = {"rectangular": "boxcar", "hann": "hann", "hamming": "hamming", "blackman": "blackman"}  # scipy's


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"text": "w"}, "2 to 96"),
        ({"text": "w" * 97}, "2 to 96"),
        ({"letter": ""}, "letter"),
        ({"letter": "wi"}, "letter"),
        ({"length": 1}, "between 2 and 96"),
        ({"frequency": 0.51}, "between 0 and 0.5 cycles per token"),
        ({"frequency": -0.1}, "between 0 and 0.5"),
        ({"frequency": float("nan")}, "between 0 and 0.5"),
        ({"window": "kaiser"}, "hann"),
        ({"zeros": 193}, "between 0 and 192"),
    ],
)
def test_a_wrong_value_is_named(wrong, says):
    with pytest.raises(traitlets.TraitError, match=says):
        DFTExplorer(**wrong)


def test_repr_is_the_call_that_makes_it():
    explorer = DFTExplorer("a bc", letter="b", length=3, frequency=0.3, window="hann", zeros=5)
    want = {"text": "a bc", "letter": "b", "length": 3, "frequency": 0.3, "window": "hann", "zeros": 5}
    assert eval(repr(explorer)).settings() == explorer.settings() == want
    assert explorer._repr_mimebundle_()[0][MIME] == {"widget": "dft_explorer", "settings": want}


def settings(count: int) -> list[dict]:
    """At random: few letters, so that each stands often; lines shorter and longer than what is heard."""
    rng = random.Random(3)
    return [
        {
            "text": "".join(rng.choices("ab ü\n", k=rng.randint(2, 96))),
            "letter": rng.choice("ab ü\nz"), "length": rng.randint(2, 96),
            "frequency": rng.choice([0, 0.5, rng.uniform(0, 0.5)]), "window": rng.choice([*WINDOWS]),
            "zeros": rng.choice([0, rng.randint(0, 192)]),
        }
        for _ in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("n", [2, 3, 17, 40])
def test_the_arrows_lengths_are_scipys_window(window, n):
    explorer = DFTExplorer("w" * n, length=n, window=window)
    ours, theirs = explorer.signal.numpy(), get_window(NAMES[window], n, fftbins=False)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("s", settings(20))
def test_the_walk_ends_where_the_sum_of_the_chapter_does(s):
    explorer = DFTExplorer(**s)
    heard = s["text"][: s["length"]]
    w = get_window(NAMES[s["window"]], len(heard), fftbins=False)
    x = np.array([c == s["letter"] for c in heard]) * w
    arrows = x * np.exp(-2j * np.pi * s["frequency"] * np.arange(len(x)))
    np.testing.assert_allclose(explorer.walk.numpy(), np.cumsum(arrows), atol=1e-10)
    np.testing.assert_allclose(explorer.spectrum.numpy(), np.fft.rfft(x, len(x) + s["zeros"]), atol=1e-10)
    n = len(x) + s["zeros"]
    for k in {0, n // 3, n // 2}:  # a bin is where the walk of that frequency ends
        end = DFTExplorer(**s | {"frequency": min(0.5, k / n)}).walk[-1]
        assert abs(end - explorer.spectrum[k]) < 1e-9


def test_the_first_picture_is_the_chapters():
    """Eight arrows of one direction; seven turns make an octagon that closes: its corners lie on one circle."""
    assert torch.allclose(DFTExplorer().walk[::5], torch.arange(1, 9).to(torch.complex128), atol=1e-9)
    corners = DFTExplorer(frequency=7 / 40).walk[::5]
    assert abs(corners[-1]) < 1e-9
    assert abs(corners - corners.mean()).std() < 1e-9
    assert abs(abs(corners.diff()) - 1).max() < 1e-9


def test_zeros_add_points_of_the_same_curve():
    plain, padded = DFTExplorer(length=43), DFTExplorer(length=43, zeros=129)
    assert torch.allclose(padded.spectrum[::4][:22], plain.spectrum, atol=1e-9)


# ---------------------------------------------------------------- the page


@pytest.fixture(scope="module")
def script(browser):
    with pure(browser, ADDRESS, "bins, describe, reach, sentence, signal, walk, windows") as call:
        yield call


def test_both_sides_know_the_same_windows(script):
    assert script("windows") == [*WINDOWS]


def test_the_page_computes_what_python_does(script):
    every = settings(60)
    parts = "({ x, path, stems, end }) => ({ x: [...x], path, stems: [...stems], end })"
    found = script(f"a.map((s) => ({parts})(describe(s)))", every)
    for s, d in zip(every, found, strict=True):
        ours = DFTExplorer(**s)
        np.testing.assert_allclose(d["x"], ours.signal.numpy(), atol=1e-9)
        np.testing.assert_allclose(np.array(d["path"]) @ [1, 1j], ours.walk.numpy(), atol=1e-9)
        np.testing.assert_allclose(d["stems"], ours.spectrum.abs().numpy(), atol=1e-9)
        assert d["end"] == pytest.approx(float(abs(ours.walk[-1])), abs=1e-9)


@pytest.mark.parametrize(("beats", "apart"), [(8, 5), (3, 7), (1, 4)])
def test_the_curve_between_the_bins_is_dirichlets(script, beats, apart):
    """Equal arrows, evenly apart: |sin(pi f m p) / sin(pi f p)|."""
    text = ("w" + "." * (apart - 1)) * beats
    f = np.linspace(0.013, 0.49, 37)
    f = f[abs(np.sin(np.pi * f * apart)) > 1e-3]
    first = {"text": text, "letter": "w", "length": len(text), "frequency": 0, "window": "rectangular", "zeros": 0}
    theirs = script("[...reach(signal(a[0]), a[1])]", [first, f.tolist()])
    np.testing.assert_allclose(theirs, abs(np.sin(np.pi * f * beats * apart) / np.sin(np.pi * f * apart)), atol=1e-9)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "The 8 arrows, one at each w, 8 long together, end 8 from the start: they all point the same way"),
        ({"frequency": 7 / 40}, "end 0 from the start: they cancel"),
        ({"frequency": 0.19}, "they agree in part"),
        ({"letter": "z"}, "No arrow is laid down: z is not among these tokens"),
        ({"letter": "k"}, "The 1 arrow, one at each k, 1 long together, ends 1 from the start"),
        ({"frequency": 0.0}, "it does not turn"),
    ],
)
def test_what_it_says(script, change, said):
    assert said in script("sentence(a, describe(a))", DFTExplorer(**change).settings())


# ---------------------------------------------------------------- the reader's hand


@pytest.fixture
def live(browser):
    with alone(browser, DFTExplorer()) as page:
        yield page


def spectrum(page) -> tuple:
    """Functions of the spectrum's axis -> the place on the page, and what the model has after some time."""
    box = page.get_by_role("img").nth(1).bounding_box()

    def at(f: float) -> tuple[float, float]:
        return box["x"] + 50 + 2 * f * (box["width"] - 62), box["y"] + box["height"] / 2

    def heard() -> float:
        page.clock.run_for(600)
        return page.evaluate("model.get('frequency')")

    return at, heard


def test_a_drag_turns_the_arrow_and_finds_the_bins(live):
    at, heard = spectrum(live)
    live.mouse.move(*at(0.2))
    live.mouse.down()
    live.mouse.move(*at(0.176))  # 7.04 turns
    assert heard() == 7 / 40
    assert "they cancel" in live.get_by_role("status").inner_text()
    live.mouse.move(*at(0.188))  # between two bins
    assert heard() == pytest.approx(0.188, abs=2e-3) and heard() * 40 % 1 > 0.2
    live.mouse.move(2000, 5)  # beyond the end
    assert heard() == 0.5
    live.mouse.up()
    live.mouse.move(*at(0.1))
    assert heard() == 0.5, "let go"


def test_a_finger_does_too(browser):
    with alone(browser, DFTExplorer(), has_touch=True, viewport={"width": 390, "height": 800}) as page:
        at, heard = spectrum(page)
        page.touchscreen.tap(*at(0.1))
        assert heard() == pytest.approx(0.1)


def test_keys_and_numbers_reach_the_model(live):
    live.get_by_label("Turns along the line, k", exact=True).press("ArrowLeft")
    live.get_by_label("Length, exact value").fill("43")
    live.get_by_label("Length, exact value").press("Enter")
    live.get_by_role("combobox", name="Window").select_option("hann")
    live.get_by_role("combobox", name="An arrow at each").select_option("i")
    live.get_by_label("Zeros appended", exact=True).press("ArrowRight")
    live.get_by_label("A line of text").fill("to be or not to be, that is the question: whether")
    live.clock.run_for(600)
    saved = live.evaluate("saved")
    assert math.isclose(saved["frequency"], 7.95 / 40)
    assert {key: saved[key] for key in ("length", "window", "letter", "zeros")} == {
        "length": 43, "window": "hann", "letter": "i", "zeros": 1,
    }  # fmt: skip
    DFTExplorer(**saved)  # whatever the page sends, Python accepts
    field = live.get_by_label("Turns along the line, k, exact value")
    assert float(field.get_attribute("max")) == 21.5, "k ends at half of the length"


def test_a_press_on_a_letter_listens_to_it(live):
    line = live.get_by_role("img").nth(2)
    box = line.bounding_box()
    cell = min(22, (box["width"] - 24) / len(TEXT))  # one row
    for t in (1, 16, 59):
        line.click(position={"x": 12 + (t + 0.5) * cell, "y": 40})
        live.clock.run_for(300)
        assert live.evaluate("model.get('letter')") == TEXT[t]
    line.click(position={"x": 3, "y": 40})  # beside the line
    live.clock.run_for(300)
    assert live.evaluate("model.get('letter')") == TEXT[59]
