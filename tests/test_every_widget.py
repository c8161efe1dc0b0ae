"""What holds for every widget: Reset, a refusal in words of what is not taken, room for two on a phone and a screen."""
import pytest
from viewing import address, alone

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
    for field in live.locator("input[type=number]").all():
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
    for area in live.locator("textarea").all():
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
