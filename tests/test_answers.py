"""Exercises on the page: the page judges as the Python checker does, from the same rule, and answers the keyboard."""
import json
import math
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from exercise_answers import NUMBERS, WORDS, WRONG
from viewing import opened

import fourierqk.site
from fourierqk.exercises import Refused
from fourierqk.site.answers import CALL, rule

SITE = Path(fourierqk.site.__file__).parent
RULED = sorted({*NUMBERS, *WORDS})


def spoken(name: str) -> dict:
    module, checker = name.split(".")
    return rule(module.replace("_", "-"), checker)


def told(name: str, answer: float | str) -> str | None:
    """What the Python checker finds wrong with an answer."""
    module, checker = name.split(".")
    found = getattr(__import__(f"fourierqk.exercises.{module}", fromlist=[checker]), checker).rule()
    try:
        return found.judge(answer)
    except Refused as e:
        return str(e)


@pytest.fixture(scope="module")
def page(browser):
    with opened(browser) as view:
        view.page.goto("about:blank")
        view.page.add_script_tag(content=(SITE / "answers.js").read_text("utf8"))
        yield view.page


BOOK = Path(__file__).resolve().parents[1] / "book"


def blanks() -> Iterator[tuple[str, str]]:
    """(chapter, source) of every exercise's cell in the notebooks."""
    for path in sorted(BOOK.glob("*.ipynb")):
        for cell in json.loads(path.read_text("utf8"))["cells"]:
            if "exercise" in cell["metadata"].get("tags", ()):
                yield path.stem, "".join(cell["source"])


def test_every_exercise_is_led_to_its_rule_or_to_its_cell():
    """A cell calls one checker, the chapter's own; most ask for a number or a word, and get a box."""
    found = [rule(doc, name) for doc, source in blanks() for [name] in [CALL.findall(source)]]
    assert len(found) > 55 and sum(plain is not None for plain in found) == len(RULED)


def test_answers_that_must_run_have_no_rule():
    assert rule("dft", "turning_arrow") is None


@pytest.mark.parametrize("name", RULED)
def test_page_and_python_say_the_same(page, name):
    """Of the right answer, of every mistake that the tests know, of the ends of ranges, and of numbers drawn near."""
    plain, right = spoken(name), {**NUMBERS, **WORDS}[name]
    json.dumps(plain, allow_nan=False)
    given = plain.get("words") or [right, *numbers_near(name, plain)]
    for answer in given:
        said = page.evaluate("([rule, text]) => answers.judge(rule, text)", [plain, str(answer)])
        assert said == told(name, answer), answer
    assert told(name, right) is None


def numbers_near(name: str, plain: dict) -> Iterator[float]:
    draw = random.Random(name)
    yield from (v for v, _ in WRONG[name] if isinstance(v, int | float) and math.isfinite(v))
    for values in (plain["right"], *(values for values, _ in plain["wrong"])):
        ends = values.values() if isinstance(values, dict) else values
        for v in (end for end in ends if end is not None):
            yield from (v, v * (1 + 9e-4), v * (1 - 2e-3), v + draw.choice((-1, 1)), v * draw.uniform(0.5, 2))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1/4", 0.25), ("0.2 ", 0.2), (".5", 0.5), ("−90", -90), ("-360 * 3 / 12", -90), ("2^3^2", 512), ("-2**2", -4),
        ("2 * pi * 10000^(15/16)", 2 * math.pi * 10000 ** (15 / 16)), ("np.log(2) / 2", math.log(2) / 2),
        ("4.303 * 0.02 / sqrt(3)", 4.303 * 0.02 / 3**0.5), ("1e-3", 1e-3), ("exp(0.3) - e^0.3", 0.0), ("1 - 2 - 3", -4),
        ("(1 + 2) * 3", 9), ("π/2", math.pi / 2), ("8 / 4 / 2", 1),
    ],
)  # fmt: skip
def test_a_number_may_be_an_expression(page, text, value):
    assert page.evaluate("answers.value", text) == pytest.approx(value, abs=1e-15)


NONE = ["", "a lot", "1 2", "(1", "1)", "2 *", "constructor", "1/0", "0x10", "alert(1)", "--"]


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_number_is_refused(page, text):
    assert math.isnan(page.evaluate("answers.value", text))
    plain = spoken("text_signal.line_bin")
    said = page.evaluate("([rule, text]) => answers.judge(rule, text)", [plain, text])
    assert said == f"a number is asked for, and {text.strip()} is none."


def test_a_box_is_answered_by_key(browser):
    asked = {"random_bands.deaf_centre": "cycles per token", "reckoning.no_gain": ""}
    rules = (json.dumps(spoken(name) | {"unit": unit}) for name, unit in asked.items())
    boxes = "".join(f'<div class="fqk-answer"><script type="application/json">{r}</script></div>' for r in rules)
    with opened(browser) as view:
        page = view.page
        page.set_content(f"<!doctype html><title>t</title>{boxes}")
        page.add_script_tag(content=(SITE / "answers.js").read_text("utf8"))
        number, said = page.get_by_label("Your answer (cycles per token)"), page.get_by_role("status").first
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert said.inner_text() == "No answer yet."
        page.keyboard.type("4")
        page.keyboard.press("Enter")
        assert said.inner_text().startswith("Not yet: that is the period")
        assert number.get_attribute("aria-invalid") == "true"
        number.fill("1/4")
        number.press("Enter")
        assert said.inner_text() == "Correct." and number.get_attribute("aria-invalid") == "false"
        page.get_by_role("combobox").select_option("holds")
        page.get_by_role("button", name="Check").last.press("Enter")
        assert page.get_by_role("status").last.inner_text() == "Correct."
        assert view.faults == []
