"""TokenRing: its numbers are an FFT's, its two ways to the future are told apart, and the reader's hand reaches it."""
from itertools import product

import numpy as np
import pytest
import traitlets
from viewing import address, alone, leaves_no_trace, pure

from fourierqk.widgets import MIME, TokenRing
from fourierqk.widgets.token_ring import KERNELS, TEXT, TOKENS

ADDRESS = address("token_ring")
SETTINGS = list(product(KERNELS, range(TOKENS), (0, 1, 2, 3, 4, 16)))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"kernel": "three-sided"}, "one-sided"),
        ({"position": -1}, "between 0 and 15"),
        ({"position": 16}, "between 0 and 15"),
        ({"zeros": -1}, "between 0 and 16"),
        ({"zeros": 17}, "between 0 and 16"),
        ({"text": "too short"}, "text has 9 characters, and must have 16"),
    ],
)
def test_a_wrong_value_is_named(wrong, says):
    with pytest.raises(traitlets.TraitError, match=says):
        TokenRing(**wrong)


def test_repr_is_the_call_that_makes_it():
    ring = TokenRing("one-sided", 15, zeros=3)
    assert eval(repr(ring)).settings() == ring.settings()
    assert ring.settings() == {"kernel": "one-sided", "position": 15, "zeros": 3, "text": TEXT}
    assert ring._repr_mimebundle_()[0][MIME] == {"widget": "token_ring", "settings": ring.settings()}


@pytest.mark.parametrize(
    ("kernel", "zeros", "tenths"),
    [
        ("one-sided", 0, "1............432"),
        ("one-sided", 2, ".............432"),
        ("two-sided", 0, "1.........123432"),
        ("two-sided", 16, "..........123432"),
    ],
)
def test_the_numbers_of_the_chapter(kernel, zeros, tenths):
    heard = (10 * TokenRing(kernel, 13, zeros).output).round().int().tolist()
    assert "".join(str(v) if v else "." for v in heard) == tenths


# ---------------------------------------------------------------- the script against the library


@pytest.fixture(scope="module")
def script(browser):
    with pure(browser, ADDRESS, "echoes, kernels, output, sentence") as call:
        yield call


def named(setting: tuple) -> dict:
    return dict(zip(("kernel", "position", "zeros"), setting, strict=True))


def test_numbers_equal_the_librarys(script):
    assert script("kernels") == list(KERNELS)
    theirs = script("a.map((s) => [...output(s)])", [named(s) for s in SETTINGS])
    np.testing.assert_allclose(theirs, [TokenRing(**named(s)).output for s in SETTINGS], atol=1e-12)


def test_each_way_to_the_future_has_its_own_cure(script):
    """Zeros end the wrap-round alone, a one-sided kernel the look-ahead alone; whoever hears early is named."""
    for s in SETTINGS:
        kernel, position, zeros = s
        ways = {e["place"]: e["way"] for e in script("echoes(a)", named(s))}
        early = {t for t, y in enumerate(TokenRing(**named(s)).output.tolist()) if y > 1e-9 and t < position}
        assert early == {t for t, way in ways.items() if way in ("look-ahead", "wrap-round")}
        assert "look-ahead" not in ways.values() or kernel == "two-sided"
        assert "wrap-round" not in ways.values() or zeros < 3
        assert ("look-ahead" in ways.values()) == (kernel == "two-sided" and position > 0)
        assert ("wrap-round" in ways.values()) == (position + 3 >= TOKENS + zeros)


def test_it_says_what_is_seen(script):
    said = script("sentence(a)", named(("two-sided", 13, 0)))
    assert said == (
        "Impulse at token 13, no zeros appended. It is heard before it comes: tokens 10, 11, 12 by look-ahead, "
        "token 0 by wrap-round."
    )
    assert "No token hears it before it comes. One echo falls on a zero" in script(
        "sentence(a)", named(("one-sided", 13, 1))
    )


# ---------------------------------------------------------------- on a page


@pytest.fixture
def live(browser):
    with alone(browser, TokenRing()) as page:
        yield page


def says(settings: dict, page) -> str:
    return page.evaluate("async ([a, s]) => (await import(a)).default.pure.sentence(s)", [ADDRESS, settings])


def test_what_the_reader_does_reaches_the_model(live):
    live.get_by_role("combobox", name="Kernel").select_option("one-sided")
    live.get_by_label("Impulse at token", exact=True).press("ArrowRight")
    live.get_by_label("Zeros appended, exact value").fill("2.2")
    live.get_by_label("Zeros appended, exact value").press("Enter")
    live.clock.run_for(600)
    saved = live.evaluate("saved")
    assert saved == {"kernel": "one-sided", "position": 14, "zeros": 2, "text": TEXT}
    assert live.get_by_role("status").inner_text() == says(saved, live)
    for label, typed in product(("Impulse at token", "Zeros appended"), ("-3", "99", "7.5", "")):
        live.get_by_label(f"{label}, exact value").fill(typed)
        live.get_by_label(f"{label}, exact value").press("Enter")
        live.clock.run_for(200)
        TokenRing(**live.evaluate("saved"))  # whatever the page sends, Python accepts


def test_a_press_moves_the_impulse_to_the_token_under_it(live):
    ring, line = live.locator("canvas").all()
    before = ring.get_attribute("aria-label"), line.get_attribute("aria-label")
    box = line.bounding_box()
    line.click(position={"x": 50 + (box["width"] - 62) * 2.5 / 16, "y": box["height"] / 2})
    live.clock.run_for(300)
    assert live.evaluate("model.get('position')") == 2
    assert ring.get_attribute("aria-label") != before[0] and line.get_attribute("aria-label") != before[1]
    width, height = ring.bounding_box()["width"], ring.bounding_box()["height"]
    ring.click(position={"x": width / 2 + 90, "y": height / 2 + 8})  # three o'clock: the fourth of sixteen
    live.clock.run_for(300)
    assert live.evaluate("model.get('position')") == 4


def test_a_phone_has_room_for_it_and_it_leaves_no_trace(browser):
    with alone(browser, TokenRing(), viewport={"width": 390, "height": 800}, color_scheme="dark") as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert all(c.get_attribute("aria-label") for c in page.locator("canvas").all())
        assert leaves_no_trace(page)
