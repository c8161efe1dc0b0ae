"""FilterDesigner: what Python carries, what the browser computes, and that the two meet in JupyterLab."""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request

import numpy as np
import pytest
import torch
import traitlets
from viewing import address, alone, leaves_no_trace, opened, pure

from fourierqk import widgets
from fourierqk.filters import Gaussian
from fourierqk.widgets import MIME, WIDGETS, FilterDesigner, PhaseScrambler
from fourierqk.widgets.filter_designer import FAMILIES, FORMULA, TEXT

VIEW = "application/vnd.jupyter.widget-view+json"
ADDRESS = address("filter_designer")
SETTINGS = [(1 / 16, 1 / 64), (4 / 256, 2 / 256), (0.4, 0.1), (0.113, 0.5), (0.27, 1 / 512)]

# ---------------------------------------------------------------- traits


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"frequency": 0}, "inside (0, 1/2)"),
        ({"frequency": 0.5}, "inside (0, 1/2)"),
        ({"frequency": -0.1}, "inside (0, 1/2)"),
        ({"frequency": float("nan")}, "inside (0, 1/2)"),
        ({"frequency": "fast"}, "frequency"),
        ({"bandwidth": 0}, "bandwidth"),
        ({"bandwidth": 0.6}, "bandwidth"),
        ({"family": "butterworth"}, "causal-morlet"),
        ({"signal": "commas"}, "vowels"),
        ({"text": ""}, "1 to 512"),
        ({"text": "a" * 513}, "1 to 512"),
        ({"position": -1}, "should not be less than 0"),
    ],
)
def test_a_wrong_value_is_named_and_changes_nothing(wrong, says):
    with pytest.raises(traitlets.TraitError, match=re.escape(says)):
        FilterDesigner(**wrong)
    designer = FilterDesigner()
    before = designer.settings()
    for name, value in wrong.items():
        with pytest.raises(traitlets.TraitError, match=re.escape(says)):
            setattr(designer, name, value)
    assert designer.settings() == before


def test_unknown_arguments_are_refused():
    with pytest.raises(TypeError, match="centre"):
        FilterDesigner(centre=0.1)


def test_repr_is_the_call_that_makes_it():
    designer = FilterDesigner("causal-morlet", 1 / 12, 1 / 48, signal="vowels", position=3)
    again = eval(repr(designer))
    assert again.settings() == designer.settings()
    assert designer.settings() == {
        "family": "causal-morlet", "frequency": 1 / 12, "bandwidth": 1 / 48,
        "text": TEXT, "signal": "vowels", "position": 3, "formula": FORMULA,
    }  # fmt: skip


def test_it_composes_with_ipywidgets():
    import ipywidgets

    one, two, slider = FilterDesigner(), FilterDesigner(), ipywidgets.FloatSlider(min=0.01, max=0.4, value=0.25)
    heard = []
    traitlets.link((slider, "value"), (one, "frequency"))
    traitlets.link((one, "bandwidth"), (two, "bandwidth"))
    ipywidgets.jslink((one, "family"), (two, "family"))
    two.observe(lambda change: heard.append(change["new"]), "bandwidth")
    box = ipywidgets.VBox([one, two, slider])
    assert one.frequency == 0.25 and one in box.children
    one.bandwidth = 1 / 32
    assert heard == [1 / 32]


def test_filter_is_the_librarys():
    designer = FilterDesigner("gaussian", 0.1, 0.02)
    f = torch.linspace(0, 0.5, 9)
    assert torch.equal(designer.filter.response(f), Gaussian(0.1, 0.02).response(f))


# ---------------------------------------------------------------- outputs


def test_live_output_is_a_widget_and_its_settings():
    designer = FilterDesigner()
    data, _ = designer._repr_mimebundle_()
    assert data[VIEW]["model_id"] == designer.model_id
    assert data[MIME] == {"widget": "filter_designer", "settings": designer.settings()}
    assert data["text/plain"] == repr(designer)


def test_book_output_is_its_settings_alone(monkeypatch):
    monkeypatch.setenv("FOURIERQK_BOOK", "1")
    designer = FilterDesigner("mexican-hat")
    data, metadata = designer._repr_mimebundle_()
    assert set(data) == {"text/plain", MIME} and metadata == {}
    assert designer.comm is None, "an open channel leaves dead widget state in every page"
    assert json.loads(json.dumps(data[MIME])) == data[MIME]


def test_the_page_cannot_be_broken_by_the_text():
    from fourierqk.site.pages import WidgetFigure

    class Data:
        mime_type = MIME
        content = {"widget": "filter_designer", "settings": FilterDesigner(text="</script><b>&").settings()}

    text = WidgetFigure.handle_mime(None, Data, inline=False)[0].astext()
    assert text.count("</script>") == 1 and "<b>" not in text
    held = re.search(r'<script type="application/json">(.*)</script>', text)[1]
    assert json.loads(held)["text"] == "</script><b>&"


# ---------------------------------------------------------------- the script against the library


@pytest.fixture(scope="module")
def script(browser):
    """A function that runs JavaScript with the designer's pure functions in scope."""
    with pure(browser, ADDRESS, "apply, describe, families, impulse, indicator, response") as call:
        yield call


@pytest.fixture
def precise():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def complex_of(parts: dict) -> np.ndarray:
    """{re, im} as JavaScript returns it, typed arrays turned to lists; a real signal has no im."""
    return np.array(parts["re"]) + 1j * np.array(parts["im"] or 0)


PLAIN = "(({ re, im }) => ({ re: [...re], im: im && [...im] }))"


def test_both_sides_know_the_same_families(script):
    assert script("families") == list(FAMILIES)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("frequency", "bandwidth"), SETTINGS)
def test_numbers_equal_the_librarys(script, precise, family, frequency, bandwidth):
    settings = {"family": family, "frequency": frequency, "bandwidth": bandwidth, "formula": "f < c + w"}
    filter = FilterDesigner(**settings).filter
    f = torch.linspace(0, 0.5, 101)
    theirs = complex_of(script(f"{PLAIN}(response(a[0], a[1]))", [settings, f.tolist()]))
    ours = filter.response(f)[0].numpy()
    assert np.abs(theirs - ours).max() <= 1e-5 * np.abs(ours).max()
    for n in (1, 7, 64, 255, 1024):
        ours = filter.impulse(n)[0].numpy()
        theirs = complex_of(script(f"{PLAIN}(impulse(a[0], a[1]))", [settings, n]))
        assert np.abs(theirs - ours).max() <= 1e-5 * max(np.abs(ours).max(), 1e-9)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("text", ["x", " ", "Über den\nWolken, 7 times", TEXT * 4])
def test_the_filtered_line_equals_the_librarys(script, precise, family, text):
    settings = {"family": family, "frequency": 1 / 9, "bandwidth": 1 / 40, "formula": "cos(pi * f / 2 / c)"}
    x = torch.tensor([float(c.isspace()) for c in text])
    assert script("[...indicator(a, 'spaces')]", text) == x.tolist()
    ours = FilterDesigner(**settings).filter(x[None, None, :, None])[0, 0].numpy()  # (T, 1), or (T, 2) if complex
    ours = ours[:, 0] + 1j * (ours[:, 1] if ours.shape[1] == 2 else 0)
    theirs = complex_of(script(f"{PLAIN}(apply(a[0], indicator(a[1], 'spaces')))", [settings, text]))
    assert np.abs(theirs - ours).max() <= 1e-5


def test_signals(script):
    assert script("[...indicator('Ah, Émile\\n', 'vowels')]") == [1, 0, 0, 0, 0, 0, 1, 0, 1, 0]
    assert script("[...indicator('Ah, Émile\\n', 'capitals')]") == [1, 0, 0, 0, 1, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_share_of_the_future(script, family):
    """Half of what a two-sided filter's echo holds beside lag 0; nothing of a causal one's."""
    share = script("describe(a).future", FilterDesigner(family).settings())
    h = FilterDesigner(family).filter.impulse(1024)[0].abs().square()
    expected = 0 if "-" in family and family != "mexican-hat" else float((h.sum() - h[0]) / h.sum() / 2)
    assert share == pytest.approx(expected, abs=1e-5)


# ---------------------------------------------------------------- render and its clean-up


@pytest.fixture
def live(browser):
    with alone(browser, FilterDesigner()) as page:
        yield page


def test_what_the_reader_does_reaches_the_model(live):
    live.get_by_role("combobox", name="Filter").select_option("causal-gaussian")
    live.get_by_label("Centre frequency, exact value").fill("0.2")
    live.get_by_label("Centre frequency, exact value").press("Enter")
    live.get_by_label("Bandwidth", exact=True).press("ArrowLeft")
    live.get_by_label("A line of text").fill("To be or not")
    live.get_by_label("Listening token").press("Home")
    live.clock.run_for(400)
    saved = live.evaluate("saved")
    assert (saved["family"], saved["frequency"], saved["text"]) == ("causal-gaussian", 0.2, "To be or not")
    assert 0.015 < saved["bandwidth"] < 1 / 64 and saved["position"] == 0
    FilterDesigner(**saved)  # whatever the page sends, Python accepts


def test_the_page_sends_nothing_that_python_refuses(live):
    field = live.get_by_label("Centre frequency, exact value")
    for typed in ("0", "0.5", "-3", "99", ""):
        field.fill(typed)
        field.press("Enter")
        live.clock.run_for(200)
        FilterDesigner(frequency=live.evaluate("model.get('frequency')"))
    live.get_by_label("A line of text").fill("")
    live.clock.run_for(250)
    assert live.evaluate("model.get('text')") == TEXT


def test_what_the_model_does_reaches_the_page(live):
    live.evaluate("model.set('family', 'sliding-gaussian'); model.set('frequency', 0.125)")
    live.clock.run_for(500)
    assert live.get_by_role("combobox", name="Filter").input_value() == "sliding-gaussian"
    assert "8 tokens per cycle" in live.get_by_label("Centre frequency", exact=True).get_attribute("aria-valuetext")
    assert "Nothing of the impulse response lies in the future" in live.get_by_role("status").inner_text()


def test_it_leaves_no_trace(live):
    assert leaves_no_trace(live)


# ---------------------------------------------------------------- PhaseScrambler

SCRAMBLER = address("phase_scrambler")
CHANGES = [
    {"shift": 3}, {"scramble": 1.0, "seed": 99}, {"shift": -32, "scramble": 0.4, "seed": 1},
    {"text": "a b", "scramble": 1.0, "seed": 2}, {"text": "to be or", "shift": 5, "scramble": 0.7}, {"text": " "},
    {"text": "Ä quick Étude", "signal": "capitals", "scramble": 1.0},
    {"text": "aeiou " * 42, "signal": "vowels", "shift": 31},
]  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"text": ""}, "1 to 256"),
        ({"text": "a" * 257}, "1 to 256"),
        ({"signal": "commas"}, "vowels"),
        ({"shift": 33}, "-32 and 32"),
        ({"shift": 1.5}, "shift"),
        ({"scramble": -0.1}, "between 0"),
        ({"scramble": float("nan")}, "between 0"),
        ({"seed": 100}, "0 and 99"),
    ],
)
def test_the_scrambler_names_a_wrong_value(wrong, says):
    with pytest.raises(traitlets.TraitError, match=re.escape(says)):
        PhaseScrambler(**wrong)


@pytest.mark.parametrize("change", CHANGES)
def test_a_surrogate_keeps_every_amplitude(change):
    scrambler = PhaseScrambler(**change)
    before, after = (np.abs(np.fft.rfft(x.numpy())) for x in (scrambler.line, scrambler.surrogate))
    assert np.abs(before - after).max() < 1e-12
    assert eval(repr(scrambler)).settings() == scrambler.settings()


def test_a_shift_is_a_roll_and_seeds_differ():
    for text in ("to be or not", "to be or not."):
        scrambler = PhaseScrambler(text, shift=-4)
        assert torch.allclose(scrambler.surrogate, scrambler.line.roll(-4), atol=1e-12)
    drawn = torch.stack([PhaseScrambler(scramble=1.0, seed=seed).surrogate for seed in range(6)])
    assert torch.pdist(drawn).min() > 0.5, "neighbouring seeds give neighbouring signals"


@pytest.fixture(scope="module")
def scrambled(browser):
    """A function that runs JavaScript with the scrambler's pure functions in scope."""
    with pure(browser, SCRAMBLER, "describe, indicator, sentence, surrogate, transform") as call:
        yield call


@pytest.mark.parametrize("change", CHANGES)
def test_the_browser_scrambles_as_python_does(scrambled, change):
    scrambler = PhaseScrambler(**change)
    assert scrambled("[...indicator(a.text, a.signal)]", scrambler.settings()) == scrambler.line.tolist()
    theirs = scrambled("[...surrogate(indicator(a.text, a.signal), a)]", scrambler.settings())
    assert np.abs(np.array(theirs) - scrambler.surrogate.numpy()).max() < 1e-10
    z = np.fft.rfft(scrambler.line.numpy())
    parts = "(({ re, im }) => [[...re], [...im]])"
    theirs = scrambled(f"{parts}(transform(indicator(a.text, a.signal)))", scrambler.settings())
    assert np.abs(np.array(theirs) - [z.real, z.imag]).max() < 1e-10
    told = scrambled("describe(a.text, a.signal, a)", scrambler.settings())
    x, y = scrambler.line, scrambler.surrogate
    alike = torch.corrcoef(torch.stack([x, y]))[0, 1] if x.std(unbiased=False) > 0 else 1
    assert told["moved"] < 1e-10 and told["alike"] == pytest.approx(float(alike), abs=1e-9)
    said = scrambled("sentence(a, describe(a.text, a.signal, a))", scrambler.settings())
    assert f"Shifted by {scrambler.shift} tokens" in said


def test_the_scrambler_answers_its_reader(browser):
    with alone(browser, PhaseScrambler()) as page:
        said = page.get_by_role("img").all()
        before = [canvas.get_attribute("aria-label") for canvas in said]
        assert "0 of" in before[1] and "correlation with the line before is 1." in before[2]
        assert page.get_by_label("Seed", exact=True).is_disabled(), "it moves nothing until angles are scrambled"
        page.get_by_label("Scramble", exact=True).press("End")
        page.clock.run_for(100)
        page.get_by_label("Seed", exact=True).press("ArrowRight")
        field = page.get_by_label("Shift, exact value")
        field.fill("-32")
        field.press("Enter")
        page.get_by_label("A line of text").fill("one two three")
        field.fill("-99")
        field.press("Enter")
        page.clock.run_for(400)
        saved = page.evaluate("saved")
        assert (saved["scramble"], saved["seed"], saved["shift"], saved["text"]) == (1, 1, -32, "one two three")
        PhaseScrambler(**saved)  # whatever the page sends, Python accepts
        assert page.get_by_text("-99 is out of range: -32 to 32").is_visible()
        field.blur()
        page.clock.run_for(100)
        assert field.input_value() == "-32"
        assert page.get_by_text("out of range").is_visible(), "it is still to be read when the reader has moved on"
        page.get_by_label("Shift", exact=True).press("ArrowRight")
        page.clock.run_for(100)
        assert page.get_by_text("out of range").count() == 0
        assert all(canvas.get_attribute("aria-label") != b for canvas, b in zip(said, before, strict=True))
        assert leaves_no_trace(page)


# ---------------------------------------------------------------- JupyterLab

NOTEBOOK = {
    "nbformat": 4, "nbformat_minor": 5,
    "metadata": {
        "kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"},
        "language_info": {"name": "python"},
    },
    "cells": [
        {"cell_type": "code", "id": "a", "metadata": {}, "execution_count": None, "outputs": [], "source": source}
        for source in (
            "from fourierqk.widgets import FilterDesigner\nd = FilterDesigner(frequency=0.1)\n"
            "d.observe(lambda c: open('heard', 'w').write(repr(c['new'])), 'frequency')\nd",
        )
    ],
}  # fmt: skip


@pytest.fixture
def lab(tmp_path):
    """A JupyterLab with one notebook, on a free port of 127.0.0.1."""
    pytest.importorskip("jupyterlab", reason="JupyterLab is not installed: make lab, or pip install -e .[lab]")
    (tmp_path / "try.ipynb").write_text(json.dumps(NOTEBOOK))
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    folders = {name: str(tmp_path / name) for name in names}
    options = ("--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}", "--IdentityProvider.token=")
    log = open(tmp_path / "log", "w")
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *options], cwd=tmp_path, env=os.environ | folders, stdout=log, stderr=log,
        start_new_session=True,
    )  # fmt: skip
    yield f"http://127.0.0.1:{port}", tmp_path, server
    os.killpg(server.pid, signal.SIGTERM)
    server.wait(20)
    log.close()


def test_jupyterlab(browser, lab):
    """The widget renders, its slider answers the arrow keys, and Python hears of it."""
    address, folder, server = lab
    with opened(browser) as view:
        for _ in range(120):
            assert server.poll() is None, (folder / "log").read_text()[-2000:]
            try:
                urllib.request.urlopen(f"{address}/api", timeout=1)
                break
            except OSError:
                view.page.wait_for_timeout(500)
        kernel = view.page.locator(".jp-Dialog .jp-mod-accept")  # "Select Kernel", which appears or not
        view.page.add_locator_handler(kernel, lambda button: button.click())
        view.page.goto(f"{address}/lab/tree/try.ipynb?reset")
        cell = view.page.locator(".jp-Notebook .jp-CodeCell").first
        cell.wait_for(timeout=60_000)
        widget = view.page.locator(".fqk-widget")
        for _ in range(10):  # a cell run before its kernel is there is lost
            cell.locator(".cm-content").click()
            view.page.keyboard.press("Control+Enter")
            view.page.wait_for_timeout(6000)
            if widget.is_visible():
                break
        slider = widget.get_by_label("Centre frequency", exact=True)
        slider.focus()
        for _ in range(5):
            view.page.keyboard.press("ArrowRight")
        for _ in range(40):
            if (folder / "heard").exists():
                break
            view.page.wait_for_timeout(250)
        assert 0.1 < float((folder / "heard").read_text()) < 0.11
        assert not [f for f in view.faults if "fqk" in f or "anywidget" in f]


def test_a_setting_that_a_widget_lacks_is_refused():
    widget = FilterDesigner()
    widget.frequency = 1 / 8
    with pytest.raises(AttributeError, match="unknown setting of FilterDesigner 'freqency': did you mean frequency"):
        widget.freqency = 1 / 4
    with pytest.raises(AttributeError, match="unknown setting of FilterDesigner 'colour': there are bandwidth"):
        widget.colour = "blue"
    with pytest.raises(AttributeError, match="unknown setting of FilterDesigner 'freq': did you mean frequency"):
        print(widget.freq)
    assert widget.frequency == 1 / 8 and not hasattr(widget, "_repr_svg_") and widget.filter.centre is not None


@pytest.mark.parametrize("name", WIDGETS)
def test_a_widget_is_not_made_with_a_setting_that_it_lacks(name):
    with pytest.raises(TypeError, match=f"unknown setting of {name} 'colour_of_it': there are "):
        getattr(widgets, name)(colour_of_it="blue")
    with pytest.raises(TypeError, match="unknown setting of FilterDesigner 'freq': did you mean frequency"):
        FilterDesigner(freq=0.1)
