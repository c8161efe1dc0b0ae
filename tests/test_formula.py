"""A reader's formula: Python, the page and numpy agree on it, and it is refused in the same words at the same place."""
import random

import numpy as np
import pytest
import torch
import traitlets
from viewing import address, alone, pure

from fourierqk.contract import check_map
from fourierqk.filters import Filter
from fourierqk.widgets import FilterDesigner
from fourierqk.widgets.formula import FUNCTIONS, Formula, compiled

WRONG = {
    "": "at character 1: a number, a name or a bracket is missing",
    "  ": "at character 1: a number, a name or a bracket is missing",
    "exq(f)": 'at character 1: "exq" is not known, but f, c, w, pi, abs, cos, exp, log, max, min, sin, sqrt are',
    "1 + g": 'at character 5: "g" is not known',
    "exp(f": 'at character 6: ")" is missing',
    "exp f": 'at character 5: "(" is missing',
    "(f + 1": 'at character 7: ")" is missing',
    "f c": 'at character 3: an operator is missing before "c"',
    "2f": 'at character 2: an operator is missing before "f"',
    "f + * c": 'at character 5: a number, a name or a bracket is missing before "*"',
    "f +": "at character 4: a number, a name or a bracket is missing",
    "f )": 'at character 3: an operator is missing before ")"',
    "min(f)": "at character 1: min takes 2 values, not 1",
    "1 - cos(f, c)": "at character 5: cos takes 1 value, not 2",
    "f ? c": 'at character 3: "?" has no meaning here',
    "1 + 𝄞": 'at character 5: "𝄞" has no meaning here',
    "f.real": 'at character 2: "." has no meaning here',
    "__import__": 'at character 1: "__import__" is not known',
    "constructor(f)": 'at character 1: "constructor" is not known',
}


def formula(rng: random.Random, depth: int) -> str:
    """At random, of every operator and function, with brackets only where they are needed."""
    if depth == 0:
        return rng.choice(["f", "c", "w", "pi", "2", ".5", "1e-1", "3."])
    one, two = (formula(rng, depth - 1) for _ in range(2))
    name = rng.choice([*FUNCTIONS])
    call = f"{name}({', '.join([one, two][: FUNCTIONS[name][0]])})"
    joined = f"{one} {rng.choice('+-*/^<>')} {two}", f"{one}{rng.choice('+-*')}{two}"
    return rng.choice([call, f"({one})", f"-{one}", *joined])


TEXTS = [formula(random.Random(seed), 1 + seed % 4) for seed in range(150)]


def by_numpy(text: str, f: np.ndarray, c: float, w: float) -> np.ndarray:
    """Python reads the same line with ** for ^, but for a chain of < and >, which it takes for a double inequality."""
    names = {"max": np.maximum, "min": np.minimum, "pi": np.pi, "f": f, "c": c, "w": w}
    names |= {name: getattr(np, name) for name in FUNCTIONS if name not in names}
    with np.errstate(all="ignore"):
        return np.broadcast_to(eval(text.replace("^", "**"), {"__builtins__": {}}, names), f.shape).astype(float)


def values(text: str, f: np.ndarray, c: float, w: float) -> np.ndarray:
    f = torch.from_numpy(f)
    return compiled(text)({"f": f, "c": torch.full_like(f, c), "w": torch.full_like(f, w)}).numpy()


F = np.linspace(0.01, 0.5, 23)


@pytest.mark.parametrize("text", [t for t in TEXTS if t.count("<") + t.count(">") < 2])
def test_it_reads_as_python_does(text):
    np.testing.assert_allclose(values(text, F, 0.11, 0.03), by_numpy(text, F, 0.11, 0.03), rtol=1e-9, atol=1e-12)


@pytest.fixture(scope="module")
def script(browser):
    with pure(browser, address("filter_designer"), "compile, wrongWith") as call:
        yield call


def test_the_page_reads_as_python_does(script):
    run = "a[0].map((text) => { const v = compile(text); return a[1].map((f) => String(v({ f, c: 0.11, w: 0.03 }))); })"
    for text, told in zip(TEXTS, script(run, [TEXTS, F.tolist()]), strict=True):
        theirs = np.array([float(v.replace("Infinity", "inf")) for v in told])
        np.testing.assert_allclose(theirs, values(text, F, 0.11, 0.03), rtol=1e-9, atol=1e-12, err_msg=text)


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_said_with_its_place_and_alike(script, text):
    with pytest.raises(ValueError) as refused:
        compiled(text)
    assert str(refused.value).startswith(WRONG[text])
    assert script("wrongWith({ formula: a, frequency: 0.1, bandwidth: 0.1 })", text) == str(refused.value)
    with pytest.raises(traitlets.TraitError, match="formula"):
        FilterDesigner(formula=text)


def test_where_it_is_not_finite(script):
    for text, place in (("1 / f", "f = 0"), ("log(f - c)", "f = 0"), ("1 / (f - .25)", "f = 0.25")):
        with pytest.raises(ValueError, match=f"{place}$"):
            Formula(text, 0.1, 0.1)
        assert place in script("wrongWith({ formula: a, frequency: 0.1, bandwidth: 0.1 })", text)


def test_it_is_a_filter_like_any_other():
    check_map(Formula("1 - exp(-f / w)", 0.1, 0.05), Filter)
    low = FilterDesigner("own", formula="f < c").filter
    assert low.response(torch.tensor([-0.2, -0.01, 0.01, 0.2])).tolist() == [[0, 1, 1, 0]]
    x = torch.randn(2, 1, 50, 3, generator=torch.Generator().manual_seed(0))
    ours = torch.fft.irfft(torch.fft.rfft(x, dim=2)[:, :, :4], n=50, dim=2)  # bins below 1/16 of 50: 0 to 3
    assert torch.allclose(low(x), ours, atol=1e-6)


# ---------------------------------------------------------------- in the page


@pytest.fixture
def live(browser):
    with alone(browser, FilterDesigner()) as page:
        yield page


def test_the_box_appears_with_its_filter_and_refuses_in_words(live):
    box = live.get_by_role("textbox", name="Your formula")
    assert not box.is_visible()
    live.get_by_role("combobox", name="Filter").select_option("own")
    live.clock.run_for(100)
    box.fill("f < c")
    live.clock.run_for(600)
    assert live.evaluate("saved.formula") == "f < c"
    assert live.get_by_label("Bandwidth", exact=True).is_disabled()
    assert live.get_by_text("w is not in your formula").is_visible()
    box.fill("f < c)")
    live.clock.run_for(600)
    assert "at character 6: an operator is missing" in live.get_by_role("alert").inner_text()
    assert box.input_value() == "f < c)" and live.evaluate("saved.formula") == "f < c"
    box.fill("1 / f")
    live.clock.run_for(600)
    assert "not finite at f = 0" in live.get_by_role("alert").inner_text()
    box.fill("f < 2 * c")
    live.clock.run_for(600)
    assert live.get_by_role("alert").count() == 0 and live.evaluate("saved.formula") == "f < 2 * c"
    FilterDesigner(**live.evaluate("saved"))


def press(page, panel: int, x: float, to: float) -> None:
    """Drag on a panel from one share of its axis to another."""
    box = page.get_by_role("img").nth(panel).bounding_box()
    for share, act in ((x, page.mouse.down), (to, page.mouse.up)):
        page.mouse.move(box["x"] + 50 + share * (box["width"] - 62), box["y"] + 120)
        act()
    page.clock.run_for(600)


def test_both_curves_are_dragged_by_hand(live):
    at = {f: (f / 0.5) ** 0.5 for f in (1 / 16, 0.2, 0.2 + 1 / 64, 0.25)}  # the square-root axis
    press(live, 0, at[1 / 16], at[0.2])
    assert live.evaluate("saved.frequency") == pytest.approx(0.2, rel=0.01), "the peak follows"
    press(live, 0, at[0.2 + 1 / 64], at[0.25])
    assert live.evaluate("saved.frequency") == pytest.approx(0.2, rel=0.01), "the flank alone"
    assert live.evaluate("saved.bandwidth") == pytest.approx(0.05, rel=0.03)
    press(live, 1, (64 + 8) / 192, (64 - 20) / 192)
    assert live.evaluate("saved.bandwidth") == pytest.approx(1 / (2 * np.pi * 20), rel=0.03)
    live.get_by_role("combobox", name="Filter").select_option("mexican-hat")
    press(live, 1, (64 + 8) / 192, (64 + 10) / 192)
    f = live.evaluate("saved.frequency")
    h = FilterDesigner("mexican-hat", f).filter.impulse(1024)[0]
    assert abs(int(h[:40].argmin()) - 10) <= 1, "the trough is where the hand is"
    FilterDesigner(**live.evaluate("saved"))
