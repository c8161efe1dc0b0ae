"""RhythmFinder: its numbers are the library's, its rows are right, and the reader's hand reaches the model."""

import numpy as np
import pytest
import traitlets
from viewing import address, alone, leaves_no_trace, pure

from fourierqk.data.corpus import verse
from fourierqk.widgets import MIME, RhythmFinder
from fourierqk.widgets.rhythm_finder import LISTEN, TEXT

POEM = verse()
ADDRESS = address("rhythm_finder")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"text": "too short"}, "text has 9 characters, and must have 16 to 4096"),
        ({"text": "a" * 4097}, "4097"),
        ({"listen": "commas"}, "vowels"),
        ({"period": 1.9}, "between 2 and 256"),
        ({"period": 257}, "between 2 and 256"),
        ({"period": float("nan")}, "between 2 and 256"),
    ],
)
def test_a_wrong_value_is_named(wrong, says):
    with pytest.raises(traitlets.TraitError, match=says):
        RhythmFinder(**wrong)


def test_repr_is_the_call_that_makes_it():
    finder = RhythmFinder(listen="lines", period=47)
    assert eval(repr(finder)).settings() == finder.settings() == {"text": TEXT, "listen": "lines", "period": 47.0}
    assert finder._repr_mimebundle_()[0][MIME] == {"widget": "rhythm_finder", "settings": finder.settings()}


@pytest.fixture(scope="module")
def script(browser):
    with pure(browser, ADDRESS, "codes, columns, fold, listen, spectrum") as call:
        yield call


def test_both_sides_know_the_same_tokens(script):
    assert script("listen") == list(LISTEN)
    text = "Über O'er\n\tÄrger und I"
    for listen in LISTEN:
        assert script("codes(a[0], a[1])", [text, listen]) == RhythmFinder(text, listen).ids.tolist(), listen


TEXTS = [TEXT, TEXT[:17], TEXT[:256], TEXT[:299], "Über den\nWolken 7 \U0001f600 A\n" * 30]
TEXTS += [POEM.decode(POEM.val[:1500])]
NUMBERS = "(({ freq, relative, windows }) => [[...freq], [...relative], windows])(spectrum(codes(a[0], a[1])))"


@pytest.mark.parametrize("listen", LISTEN)
@pytest.mark.parametrize("text", TEXTS)
def test_numbers_equal_the_librarys(script, text, listen):
    finder = RhythmFinder(text, listen)
    freq, relative, windows = script(NUMBERS, [text, listen])
    if len(set(finder.ids.tolist())) == 1:  # no line end in 17 characters
        assert set(relative) == {0}
        return
    ours = finder.spectrum
    np.testing.assert_allclose(freq, ours.freq, atol=1e-15)
    np.testing.assert_allclose(relative, ours.relative, atol=1e-9 * ours.relative.max().item())
    assert windows == ours.windows


def test_rows_and_columns_by_hand(script):
    cells = script("fold([1, 0, 1, 1, 0, 0, 1], 2.5, 'lines')")
    assert [(c["row"], c["column"]) for c in cells] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0), (2, 1)]
    assert [c["marked"] for c in cells] == [True, False, True, True, False, False, True]
    assert script("columns(a)", cells) == [2 / 3, 1 / 3, 1]
    again = script("fold([7, 8, 9, 7, 8, 5], 3, 'all')")
    assert [c["marked"] for c in again] == [True, True, False, False, False, False]


def test_whole_periods_fill_their_rows(script):
    for period in range(2, 40):
        cells = script("fold(Array(400).fill(0), a, 'lines')", period)
        assert [(c["row"], c["column"]) for c in cells] == [divmod(t, period) for t in range(400)]


@pytest.fixture
def live(browser):
    with alone(browser, RhythmFinder()) as page:
        yield page


def test_what_the_reader_does_reaches_the_model(live):
    live.get_by_role("combobox", name="Listen to").select_option("lines")
    live.get_by_label("Period, exact value").fill("47")
    live.get_by_label("Period, exact value").press("Enter")
    live.clock.run_for(600)
    assert live.evaluate("saved") == {"listen": "lines", "period": 47, "text": TEXT}
    said = live.get_by_role("status").inner_text()
    assert "the fullest column holds 100 % marks" in said and "One cycle in 47 tokens" in said
    live.get_by_label("Period", exact=True).press("ArrowRight")
    live.get_by_label("A text").fill("Now, now, now, not now, now, no!")
    live.clock.run_for(600)
    saved = live.evaluate("saved")
    assert 47 < saved["period"] < 48 and saved["text"].startswith("Now, now")
    RhythmFinder(**saved)  # whatever the page sends, Python accepts
    assert "32" in live.get_by_label("Period", exact=True).get_attribute("aria-valuetext")  # a text has no longer one


def test_the_page_sends_nothing_that_python_refuses(live):
    field = live.get_by_label("Period, exact value")
    for typed in ("0", "1", "-3", "9999", ""):
        field.fill(typed)
        field.press("Enter")
        live.clock.run_for(200)
        RhythmFinder(period=live.evaluate("model.get('period')"))
    live.get_by_label("A text").fill("short")
    live.clock.run_for(250)
    assert live.evaluate("model.get('text')") == TEXT


def test_a_press_on_the_spectrum_picks_the_period(live):
    canvas = live.locator("canvas").first
    box = canvas.bounding_box()
    canvas.click(position={"x": box["width"] / 2, "y": box["height"] / 2})
    live.clock.run_for(300)
    assert 8 < live.evaluate("model.get('period')") < 40  # half way between 256 and 2 on a log axis is 22


def test_a_phone_has_room_for_it_and_it_leaves_no_trace(browser):
    with alone(browser, RhythmFinder(period=47), viewport={"width": 390, "height": 800}) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.locator("canvas").count() == 3
        assert leaves_no_trace(page)
