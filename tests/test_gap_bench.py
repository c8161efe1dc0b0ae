"""GapBench: its closed form is what a count over all letters gives, and the reader's hand reaches the model."""
import math

import pytest
import traitlets
from viewing import address, alone, leaves_no_trace, pure

from fourierqk.widgets import MIME
from fourierqk.widgets.gap_bench import LEAKS, GapBench

ADDRESS = address("gap_bench")
V, TRUE, SURE = 32, 0.8, 0.98
FIRST = {"confidence": 1.0, "share": 0.0, "leak": "any"}


@pytest.mark.parametrize(
    "wrong",
    [{"confidence": -0.1}, {"confidence": 4.1}, {"share": -0.01}, {"share": 1.01}, {"share": "half"}, {"leak": "no"}],
)
def test_a_wrong_value_is_named(wrong):
    with pytest.raises(traitlets.TraitError, match=[*wrong][0]):
        GapBench(**wrong)


def test_repr_is_the_call_that_makes_it():
    bench = GapBench(2.5, share=0.25, leak="real")
    assert eval(repr(bench)).settings() == bench.settings() == {"confidence": 2.5, "share": 0.25, "leak": "real"}
    assert bench._repr_mimebundle_()[0][MIME] == {"widget": "gap_bench", "settings": bench.settings()}


@pytest.fixture(scope="module")
def script(browser):
    with pure(browser, ADDRESS, "losses, rule, sentence") as call:
        yield call


def counted(confidence: float, share: float, leak: str) -> dict[str, float]:
    """The same by brute force: every letter in turn as the one that comes, each with its probability."""
    true = [TRUE] + [(1 - TRUE) / (V - 1)] * (V - 1)
    weight = [p**confidence for p in true]
    nats = [-math.log(w / sum(weight)) for w in weight]
    seen = [(1 - s) * n - s * math.log(SURE) for n in nats for s in [share]]
    blind = seen if leak == "any" else nats
    found = {"ordered": sum(p * n for p, n in zip(true, seen, strict=True)), "shuffled": sum(blind) / V}
    return found | {"floor": -sum(p * math.log(p) for p in true), "gap": found["shuffled"] - found["ordered"]}


@pytest.mark.parametrize("confidence", [0, 0.3, 1, 2.7, 4])
@pytest.mark.parametrize("share", [0, 0.1, 1])
@pytest.mark.parametrize("leak", LEAKS)
def test_the_closed_form_is_the_count(script, confidence, share, leak):
    theirs = script("losses(a)", {"confidence": confidence, "share": share, "leak": leak})
    assert {k: theirs[k] for k in ("ordered", "shuffled", "floor", "gap")} == pytest.approx(
        counted(confidence, share, leak), abs=1e-12
    )
    ours = GapBench(confidence, share, leak).losses
    named = {"unigram entropy": "unigram", "entropy floor": "floor"}
    assert ours == pytest.approx({key: theirs[named.get(key, key)] for key in ours}, abs=1e-12)
    assert theirs["unigram"] == pytest.approx(math.log(V))
    assert theirs["context"] + theirs["excess"] == pytest.approx(theirs["gap"], abs=1e-12)


def test_no_honest_reader_is_accused_by_a_proof(script):
    for confidence in (0, 0.5, 0.99, 1, 1.01, 2, 4):
        settings = FIRST | {"confidence": confidence}
        assert "Neither loss proves anything" in script("sentence(a, losses(a))", settings)


def test_both_errors_of_the_rule_can_be_reached(script):
    """A leak that is called clean, an honest reader that is called leaky."""
    leak = FIRST | {"share": 0.5, "leak": "real", "confidence": 2}
    assert "reads the future" in script("sentence(a, losses(a))", leak)
    assert script("rule(losses(a).gap)", leak) == "clean"
    modest = FIRST | {"confidence": 0.2}
    assert "reads the past alone" in script("sentence(a, losses(a))", modest)
    assert script("rule(losses(a).gap)", modest) == "leaky"


@pytest.fixture
def live(browser):
    with alone(browser, GapBench()) as page:
        yield page


def test_what_the_reader_does_reaches_the_model(live):
    live.get_by_label("Confidence, exact value").fill("2")
    live.get_by_label("Confidence, exact value").press("Enter")
    live.get_by_label("Places where it sees the next letter", exact=True).press("End")
    live.get_by_role("combobox", name="Its look ahead works").select_option("real")
    live.clock.run_for(600)
    saved = live.evaluate("saved")
    assert saved == {"confidence": 2, "share": 1, "leak": "real"}
    assert "reads the future at 100 %" in live.get_by_role("status").inner_text()
    GapBench(**saved)


def test_the_page_sends_nothing_that_python_refuses(live):
    field = live.get_by_label("Confidence, exact value")
    for typed in ("-3", "99", ""):
        field.fill(typed)
        field.press("Enter")
        live.clock.run_for(200)
        GapBench(confidence=live.evaluate("model.get('confidence')"))


def test_it_leaves_no_trace(live):
    assert leaves_no_trace(live)
