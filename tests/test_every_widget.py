"""What holds for every widget: Reset, a refusal in words of what is not taken, room for two on a phone and a screen."""
import numpy as np
import pytest
from viewing import address, alone, leaves_no_trace

from fourierqk import widgets

each = pytest.mark.parametrize("name", widgets.WIDGETS)


@pytest.fixture
def live(browser, name):
    with alone(browser, getattr(widgets, name)()) as page:
        yield page


def traits(page, name: str) -> dict:
    return {key: page.evaluate("key => model.get(key)", key) for key in getattr(widgets, name)().settings()}


@each
def test_reset_brings_back_the_first_state(live, name):
    first = traits(live, name)
    for control in live.locator("input[type=range], select").all():
        if control.is_disabled():  # by a choice made before
            continue
        control.press("End") if control.get_attribute("type") == "range" else control.select_option(index=1)
        live.clock.run_for(50)
    assert traits(live, name) != first
    live.get_by_role("button", name="Reset").click()
    live.clock.run_for(600)
    assert traits(live, name) == first
    getattr(widgets, name)(**live.evaluate("saved"))


@each
def test_a_number_out_of_range_is_refused_and_the_last_one_stays(live, name):
    first = traits(live, name)
    for field in live.locator("input[type=number]:enabled").all():
        for typed in ("-1e9", "1e9"):
            field.fill(typed)
            field.press("Enter")
            live.clock.run_for(50)
            assert "is out of range: " in live.get_by_role("alert").inner_text()
            assert field.get_attribute("aria-invalid") == "true" and traits(live, name) == first
        for end in ("min", "max"):  # the ends themselves are taken, as the sentence writes them
            field.fill(f"{float(field.get_attribute(end)):.4g}")
            field.press("Enter")
            live.clock.run_for(50)
            assert live.get_by_role("alert").count() == 0 and field.get_attribute("aria-invalid") is None
        live.get_by_role("button", name="Reset").click()
        live.clock.run_for(50)


@each
def test_a_text_that_is_too_short_is_refused(live, name):
    first = traits(live, name)
    for area in live.locator("textarea:visible").all():
        area.fill("")
        live.clock.run_for(50)
        assert "this has 0" in live.get_by_role("alert").inner_text() and traits(live, name) == first
        live.get_by_role("button", name="Reset").click()
        live.clock.run_for(50)
        assert live.get_by_role("alert").count() == 0


@each
def test_a_script_of_its_own_is_small(name):
    assert len(widgets.source(f"{widgets.WIDGETS[name]}.js").encode()) <= 30_000


@each
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_two_on_a_page_fit_the_screen_and_a_phone_shows_the_plot_first(browser, name, width, scheme):
    looks = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    with alone(browser, getattr(widgets, name)(), **looks) as page:
        page.add_style_tag(content=widgets.source("widgets.css") + ":root { color-scheme: light dark; }")
        second = "(a) => import(a).then((m) => m.default.render({ model, el: document.body }))"
        page.evaluate(second, address(widgets.WIDGETS[name]))
        page.clock.run_for(600)
        assert page.locator(".fqk-widget").count() == 2
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        plot = page.get_by_role("img").first.bounding_box()
        control = page.locator("input, select").first.bounding_box()
        assert plot["width"] > 0 and (width > 390 or plot["y"] < control["y"])


@each
@pytest.mark.parametrize("width", [390, 1280])
def test_no_tip_covers_a_plot(browser, name, width):
    """Axes and legends begin below the title, and the tip ends there, however many lines it takes."""
    with alone(browser, getattr(widgets, name)(), viewport={"width": width, "height": 900}) as page:
        page.add_style_tag(content=widgets.source("widgets.css"))
        page.clock.run_for(300)
        for panel in page.locator(".fqk-panel").all():
            canvas = panel.locator("canvas")
            for across in (0.3, 0.7):
                box = canvas.bounding_box()
                canvas.hover(position={"x": across * box["width"], "y": 0.5 * box["height"]})
                tip = panel.locator(".fqk-tip")
                if tip.is_visible():
                    assert (place := tip.bounding_box())["y"] + place["height"] <= box["y"] + 28


# ---------------------------------------------------------------- sound

SILENT = {"GapBench", "SeedBench"}  # losses and intervals: no signal in time
heard = pytest.mark.parametrize("name", [name for name in widgets.WIDGETS if name not in SILENT])
SPEAKER = """() => {
  window.made = [];
  window.AudioContext = class {
    constructor() { this.destination = {}; }
    resume() {}
    createBuffer(ears, samples, rate) {
      const buffer = { rate, ears: [], copyToChannel: (data, ear) => { buffer.ears[ear] = Array.from(data); } };
      return buffer;
    }
    createBufferSource() {
      const source = { connect() {}, start() { source.on = true; }, stop() { source.on = false; } };
      made.push(source);
      return source;
    }
  };
}"""


def listen(page) -> np.ndarray:
    """Press the button -> both ears (2, samples)."""
    page.get_by_role("button", name="Listen").click()
    return np.array(page.evaluate("made[made.length - 1].buffer.ears"))


@heard
def test_a_signal_is_heard_when_the_button_is_pressed_and_not_before(live, name):
    live.evaluate(SPEAKER)
    live.get_by_role("button", name="Reset").click()
    live.clock.run_for(300)
    assert live.evaluate("made.length") == 0 and live.locator(".fqk-buttons .fqk-note").inner_text()
    ears = listen(live)
    assert ears.shape[0] == 2 and 0.05 < abs(ears).max() <= 1 and np.isfinite(ears).all()
    assert ears.shape[1] <= 40 * live.evaluate("made[0].buffer.rate"), "forty seconds are enough"
    live.get_by_role("button", name="Stop").click()
    assert not live.evaluate("made[0].on")
    listen(live)
    live.evaluate("made[1].onended()")
    assert live.get_by_role("button", name="Listen").count() == 1
    listen(live)
    assert leaves_no_trace(live) and not live.evaluate("made[2].on")


@pytest.mark.parametrize("name", sorted(SILENT))
def test_what_is_no_signal_has_no_button(live, name):
    assert live.get_by_role("button", name="Listen").count() == 0


@pytest.mark.parametrize("widget", [widgets.TokenRing("one-sided", 3), widgets.HalfKernel(), widgets.InfluenceMap()])
def test_the_right_ear_hears_the_tick_alone_where_nothing_hears_the_future(browser, widget):
    left, right = lengths_heard(browser, widget)
    assert 0 < right <= 0.03 < left


@pytest.mark.parametrize("widget", [widgets.TokenRing("two-sided", 8), widgets.InfluenceMap("none")])
def test_the_future_is_in_the_right_ear(browser, widget):
    assert min(lengths_heard(browser, widget)) > 0.1


def lengths_heard(browser, widget) -> list[float]:
    """For how many seconds each ear hears something."""
    with alone(browser, widget) as page:
        page.evaluate(SPEAKER)
        ears, rate = listen(page), page.evaluate("made[0].buffer.rate")
    return (np.count_nonzero(abs(ears) > 1e-4, axis=1) / rate).tolist()
