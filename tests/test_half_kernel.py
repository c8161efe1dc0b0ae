"""HalfKernel: its numbers are the library's and the closed form's, and the reader's hand reaches the model."""
import math
import re

import numpy as np
import pytest
import torch
import traitlets
from scipy.integrate import trapezoid
from scipy.special import wofz
from viewing import address, alone, leaves_no_trace, pure

from fourierqk.widgets import MIME, HalfKernel
from fourierqk.widgets.half_kernel import SHAPES

ADDRESS = address("half_kernel")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"shape": "bell"}, "morlet"),
        ({"scale": 1.9}, "between 2 and 64 tokens"),
        ({"scale": 65}, "between 2 and 64 tokens"),
        ({"scale": float("nan")}, "between 2 and 64 tokens"),
        ({"taps": 0}, "between 1 and 256"),
        ({"taps": 257}, "between 1 and 256"),
        ({"taps": 2.5}, "taps"),
    ],
)
def test_a_wrong_value_is_named(wrong, says):
    with pytest.raises(traitlets.TraitError, match=says):
        HalfKernel(**wrong)


def test_repr_is_the_call_that_makes_it():
    bench = HalfKernel("mexican-hat", scale=3.5, taps=20)
    want = {"shape": "mexican-hat", "scale": 3.5, "taps": 20}
    assert eval(repr(bench)).settings() == bench.settings() == want
    assert bench._repr_mimebundle_()[0][MIME] == {"widget": "half_kernel", "settings": want}


@pytest.fixture(scope="module")
def script(browser):
    with pure(browser, ADDRESS, "describe, drawn, kernel, response, sentence, shapes") as call:
        yield call


def test_both_sides_know_the_same_shapes(script):
    assert script("shapes") == list(SHAPES)


def library(**settings):
    """The filter in double precision."""
    torch.set_default_dtype(torch.float64)
    try:
        return HalfKernel(**settings).filter
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("scale", "taps"), [(2, 128), (2.7, 1), (8, 5), (33, 256), (64, 100)])
def test_taps_and_response_equal_the_librarys(script, shape, scale, taps):
    settings = {"shape": shape, "scale": scale, "taps": taps}
    filter, f = library(**settings), torch.linspace(-0.5, 0.5, 41, dtype=torch.float64)
    re, im = np.array(script("(({ re, im }) => [[...re], [...im]])(kernel(a))", settings))
    np.testing.assert_allclose(re + 1j * im, filter.kernel()[0].numpy(), atol=1e-12)
    re, im = np.array(script("response(a[0], a[1])", [settings, f.tolist()])).T
    np.testing.assert_allclose(re + 1j * im, filter.response(f)[0].numpy(), atol=1e-9)


def faddeeva(a: float, f: np.ndarray) -> np.ndarray:
    """The transform of exp(-t^2 / 2a^2) over t >= 0: a sqrt(pi / 2) w(-sqrt(2) pi a f)."""
    return a * math.sqrt(math.pi / 2) * wofz(-math.sqrt(2) * math.pi * a * f)


@pytest.mark.parametrize("scale", [2, 4, 8, 16, 32])
def test_the_curve_before_sampling_and_its_share_beyond_nyquist(script, scale):
    fs = np.linspace(-0.5, 1, 31)
    centre = 6 / (2 * math.pi * scale)
    settings = {"shape": "morlet", "scale": scale, "taps": 256}
    ours = abs(faddeeva(scale, fs - centre))
    np.testing.assert_allclose(script("drawn(a[0], a[1])", [settings, fs.tolist()]), ours, rtol=0.01, atol=0.01)
    f = np.linspace(-0.5, 0.5, 20001)
    within = trapezoid(abs(faddeeva(scale, f - centre)) ** 2, f)
    share = 1 - within / (scale * math.sqrt(math.pi) / 2)
    assert script("describe(a).beyond", settings) == pytest.approx(share, rel=0.03)


def test_what_the_taps_hold_and_what_passes_at_dc(script):
    for taps in (1, 4, 16, 128):
        said = script("describe(a)", {"shape": "gaussian", "scale": 20, "taps": taps})
        e = np.exp(-((np.arange(400) / 20) ** 2))
        assert said["held"] == pytest.approx(e[:taps].sum() / e.sum(), rel=1e-9)
        assert said["dc"] == pytest.approx(1, abs=1e-9)
        assert said["at"] == 0 or taps == 1  # a single tap has no peak
    hat = script("describe(a)", {"shape": "mexican-hat", "scale": 8, "taps": 256})
    H = abs(library(shape="mexican-hat", scale=8.0, taps=256).response(torch.linspace(0, 0.5, 2001)))[0]
    assert hat["dc"] == pytest.approx((H[0] / H.max()).item(), rel=1e-2)
    one = script("describe(a)", {"shape": "gaussian", "scale": 64, "taps": 1})  # nearly a box one token wide
    f = np.linspace(-0.5, 0.5, 2001)
    assert one["beyond"] == pytest.approx(1 - trapezoid(np.sinc(f) ** 2, f), abs=2e-3)


def test_what_it_says(script):
    said = script("sentence(a, describe(a))", {"shape": "morlet", "scale": 2, "taps": 128})
    assert "one cycle in 2.09 tokens" in said and "128 taps hold 100 % of its energy" in said
    assert "44 % of the energy lies beyond Nyquist" in said


@pytest.fixture
def live(browser):
    with alone(browser, HalfKernel(), viewport={"width": 390, "height": 800}) as page:
        yield page


def test_what_the_reader_does_reaches_the_model(live):
    live.get_by_role("combobox", name="Kernel").select_option("mexican-hat")
    live.get_by_label("Scale, exact value").fill("20")
    live.get_by_label("Scale, exact value").press("Enter")
    taps = live.get_by_label("Taps", exact=True)
    taps.press("Home")
    taps.press("ArrowRight")
    live.clock.run_for(700)
    assert live.evaluate("saved") == {"shape": "mexican-hat", "scale": 20, "taps": 2}
    assert "2 taps hold" in live.get_by_role("status").inner_text()


def test_the_page_sends_nothing_that_python_refuses(live):
    for label, key in (("Scale", "scale"), ("Taps", "taps")):
        field = live.get_by_label(f"{label}, exact value")
        for typed in ("0", "-3", "9999", "2.5", ""):
            field.fill(typed)
            field.press("Enter")
            live.clock.run_for(150)
            HalfKernel(**{key: live.evaluate(f"model.get('{key}')")})


def test_a_tap_that_moves_nothing_says_so(live):
    """Where the kernel has faded: the slider's first steps move no picture, and later ones do."""
    taps, note = live.get_by_label("Taps", exact=True), live.get_by_text("moves nothing")
    faded = int(re.search(r"faded by lag (\d+),", note.inner_text())[1])
    pictures = "[...document.querySelectorAll('canvas')].map((c) => c.toDataURL()).join()"
    live.get_by_label("Taps, exact value").fill(str(faded + 2))
    live.get_by_label("Taps, exact value").press("Enter")
    live.clock.run_for(300)
    assert note.count() == 1
    taps.press("ArrowLeft")
    live.clock.run_for(300)
    seen = live.evaluate(pictures)
    assert note.count() == 0
    for _ in range(faded // 2):
        taps.press("ArrowLeft")
    live.clock.run_for(300)
    assert live.evaluate(pictures) != seen


def test_a_phone_has_room_for_it_and_it_leaves_no_trace(live):
    assert live.evaluate("document.documentElement.scrollWidth") <= 390
    assert live.locator("canvas").count() == 2
    assert leaves_no_trace(live)
