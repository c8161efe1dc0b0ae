"""Predictions: what follows is veiled until a choice is made, by mouse or key, and is open without JavaScript."""

from pathlib import Path

import pytest
from viewing import opened

import fourierqk.site

SITE = Path(fourierqk.site.__file__).parent
CHOICE = '<li class="task-list-item"><p><input class="task-list-item-checkbox" {} type="checkbox"> {}</p></li>'
BODY = f"""
<div class="tip admonition"><p class="admonition-title">Predict</p><p>Does it hear ahead?</p>
<ul class="contains-task-list simple">
{CHOICE.format("disabled", "Yes, <em>always</em>")}
{CHOICE.format("checked disabled", "No")}
{CHOICE.format("disabled", "Now and then")}
</ul></div>
<p id="result">It does not. <a href="#x">more</a></p><div><p id="x">deep</p></div>
<div class="dropdown admonition"><p class="admonition-title">Answer</p><p>Because.</p></div>
<p id="after">What comes next is open.</p>
"""


@pytest.fixture
def page_of(browser, tmp_path):
    """(options of the context, hash of the address) -> the page above, opened from disk, as a context manager."""
    head = f"<style>{(SITE / 'site.css').read_text('utf8')}</style>"
    script = f"<script defer src='{(SITE / 'predict.js').as_uri()}'></script>"
    place = tmp_path / "page.html"
    place.write_text(f"<!doctype html><meta charset=utf-8><title>t</title>{head}{script}{BODY}", "utf8")

    def open_it(hash: str = "", **options):
        view = opened(browser, **options)
        return view, place.as_uri() + hash

    return open_it


VEILED = """[...document.querySelectorAll('.fqk-veiled')]
    .filter((node) => node.inert && getComputedStyle(node).filter !== 'none').length"""


def test_a_result_is_veiled_until_a_choice_is_made_by_key(page_of):
    view, url = page_of()
    with view as found:
        page = found.page
        page.goto(url)
        assert page.evaluate(VEILED) == 3
        assert page.evaluate("getComputedStyle(document.querySelector('#after')).filter") == "none"
        assert page.get_by_role("status").inner_text() == "What follows is veiled until you choose."
        choices = page.get_by_role("radiogroup", name="Your prediction").get_by_role("radio")
        said = [choice.evaluate("node => node.labels[0].textContent") for choice in choices.all()]
        assert said == ["Yes, always", "No", "Now and then"]
        page.keyboard.press("Tab")  # what is veiled is no stop on the way
        assert page.evaluate("document.activeElement.type") == "radio"
        page.keyboard.press("Space")
        assert page.evaluate(VEILED) == 0 and page.locator("[inert]").count() == 0
        assert page.get_by_role("status").inner_text().startswith("Not so. What holds is: “No”.")
        choices.nth(1).check()
        assert page.get_by_role("status").inner_text().startswith("Right. ")
        assert found.faults == []


def test_a_link_behind_the_veil_opens_it(page_of):
    view, url = page_of("#x")
    with view as found:
        found.page.goto(url)
        assert found.page.evaluate(VEILED) == 0


def test_in_print_and_without_a_script_all_is_open(page_of):
    view, url = page_of()
    with view as found:
        found.page.goto(url)
        found.page.emulate_media(media="print")
        assert found.page.evaluate(VEILED) == 0
    view, url = page_of(java_script_enabled=False)
    with view as found:
        found.page.goto(url)
        assert found.page.locator("#result").is_visible() and found.page.locator("[inert]").count() == 0
