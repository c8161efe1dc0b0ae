"""No false alarm, whatever the amplitude and the precision; and random compositions of blocks of both kinds."""
import pytest
from leak_hard import CLEAR, SEEDS, compose, hears_the_future, judge
from leak_zoo import V
from processors import PROCESSORS

from fourierqk.causality.procedure import audit

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.slow
@pytest.mark.parametrize("name", CLEAR)
def test_clean_models_pass(name: str) -> None:
    for seed in range(SEEDS):
        a = judge(name, seed)
        assert (a.verdict, a.structural, a.reach, a.first_leak) == ("causal", False, 0, None), f"seed {seed}: {a}"
        assert not a.influence.triu(1).nan_to_num().any(), "round-off is drawn as a dependence"


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_random_compositions(block: int) -> None:
    """A leak never passes for causal unless brute force finds nothing either; a clean model always passes."""
    found = 0
    for seed in range(20 * block, 20 * (block + 1)):
        model, length, leaky = compose(seed)
        a = audit(model.double() if seed % 3 == 1 else model, V, length, draws=8, seed=seed)
        if not leaky:
            assert a.verdict == "causal", f"seed {seed}: {a}\n{model}"
        elif a.verdict == "causal":
            assert not hears_the_future(model.eval(), length), f"seed {seed}: {a}\n{model}"
        found += leaky - (leaky and a.verdict != "leaks")
    assert found >= 5, "too few leaks were found to call this a test"


@pytest.mark.parametrize("processor", ["this one", "coarse transforms"])
@pytest.mark.parametrize("seed", [191, 228, 275, 362])
def test_the_round_off_of_another_processor_is_round_off_too(seed: int, processor: str) -> None:
    """Transforms of 76 points, 4 times the prime 19: on an Intel with AVX-512 their round-off is partly frozen."""
    model, length, leaky = compose(seed)
    with PROCESSORS[processor]():
        a = audit(model, V, length, draws=8, seed=seed)
    assert not leaky and a.verdict == "causal", str(a)
