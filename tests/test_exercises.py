"""The checkers: right answers pass in every form, a foreseen error is named, nonsense is refused in a sentence.

That the checkers pass the book's own solutions, test_book.py tests.
"""
import importlib
import math
import pkgutil
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
import torch
from exercise_answers import FUNCTIONS, NUMBERS, OBJECTS, SETS, VECTORS, WORDS, WRONG

from fourierqk import audit, exercises
from fourierqk.exercises import Numeric, Refused, Span, Whole, arrays, fits, members, number, reply, vector, word

CHECKERS = {
    f"{module.name}.{name}": getattr(importlib.import_module(f"fourierqk.exercises.{module.name}"), name)
    for module in pkgutil.iter_modules(exercises.__path__)
    for name in importlib.import_module(f"fourierqk.exercises.{module.name}").__all__
}


def of_number(x: float) -> Iterator[object]:
    yield from (x, float(x), np.float64(x), np.float32(x), np.array(x), np.array([x]), complex(x), [x], (x,))
    yield from (torch.tensor(x), torch.tensor([float(x)], requires_grad=True), Fraction(x))


def of_vector(values: list) -> Iterator[object]:
    yield from (values, tuple(values), np.array(values), np.array([values]), [np.float32(x) for x in values])
    yield from (torch.tensor(values), torch.tensor(values)[:, None], [torch.tensor(float(x)) for x in values])
    yield from ([Fraction(x) for x in values], np.array(values, dtype=complex))


def of_set(values: set) -> Iterator[object]:
    several = sorted(values)
    yield from (values, frozenset(values), several, several[::-1], tuple(several), several * 2, np.array(several))
    yield from (iter(several), (x for x in several), dict.fromkeys(values).keys())
    if isinstance(several[0], str):
        yield from ({x.swapcase() for x in values}, [f" {x} " for x in several])
    else:
        yield from (torch.tensor(several), {float(x) for x in values}, {np.int64(x) for x in values})
        yield [torch.tensor(x) for x in several]


def of_word(text: str) -> Iterator[object]:
    yield from (text, text.upper(), f" {text}\n", np.str_(text), [text], {text})


RIGHT = {
    **{name: [*of_number(x)] for name, x in NUMBERS.items()},
    **{name: [*of_vector(x)] for name, x in VECTORS.items()},
    **{name: [*of_set(x)] for name, x in SETS.items()},
    **{name: [*of_word(x)] for name, x in WORDS.items()},
    **FUNCTIONS,
    **OBJECTS,
}
NONSENSE = [
    object(), "", "abc", b"", [], {}, set(), [[None]], float("nan"), -float("inf"), 1e300, 10**400, 1 + 2j, int, True,
    {"a": 1}, [1, [2, 3]], np.array([]), torch.full((2, 2), float("nan")), Ellipsis.__class__, range(0), "0.5 or so",
]  # fmt: skip
NO_USE = [lambda: 1 / 0, lambda *given: None, lambda *given: "a", lambda *given: object(), lambda *given: given]


def verdict(name: str, answer: object, capsys) -> str:
    CHECKERS[name](answer)
    return capsys.readouterr().out


def test_every_exercise_has_right_and_wrong_answers():
    assert {*RIGHT} | {"causality_audit.own_model"} == {*WRONG} == {*CHECKERS}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_answer_passes_in_every_form(name, capsys):
    for answer in RIGHT[name]:
        assert verdict(name, answer, capsys).startswith("Correct."), answer


def test_an_audit_of_a_model_of_ones_own_passes(capsys):
    table = torch.eye(5)
    assert verdict("causality_audit.own_model", audit(lambda ids: table[ids], 5, 4, draws=1), capsys) == "Correct.\n"


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_is_told_why(name, capsys):
    for answer, reason in WRONG[name]:
        said = verdict(name, answer, capsys)
        assert said.startswith("Not yet: ") and reason in said, (answer, said)


@pytest.mark.parametrize("name", CHECKERS)
def test_nonsense_is_refused_in_a_sentence(name, capsys):
    for answer in NONSENSE:
        said = verdict(name, answer, capsys)
        assert said.startswith(("Not yet: ", "No answer yet")), (answer, said)
        assert said.endswith((".\n", "?\n")) and " raised " not in said or callable(answer), (answer, said)


@pytest.mark.parametrize("name", CHECKERS)
def test_a_function_of_no_use_is_refused(name, capsys):
    for answer in NO_USE:
        assert verdict(name, answer, capsys).startswith("Not yet: "), answer


@pytest.mark.parametrize("name", {**NUMBERS, **VECTORS})
def test_a_near_miss_is_a_miss(name, capsys):
    """A hundredth off, or for a count half of one, is no rounding."""
    value = {**NUMBERS, **VECTORS}[name]
    loose = {"seeds_and_windows.far_apart": 0.05, "entropy_floor.coin_rate": 0.03, "filter_design.bell": 0.03}
    for factor in (1 + loose.get(name, 0.02), 1 - loose.get(name, 0.02)):
        near = [x * factor for x in value] if isinstance(value, list) else value * factor if value else factor
        assert verdict(name, near, capsys).startswith("Not yet: "), near


# --- what the judges are made of


def test_a_number_is_right_or_a_known_mistake_or_neither():
    def judge(answer):
        wrong = {64: "that is the variance", (4, 16): "one factor of 2", Span(90, math.inf): "far too large"}
        return Numeric((8, -8), wrong, "take the root").judge(answer)

    assert judge(8) is judge(-8.001) is judge(np.float32(8)) is judge(torch.tensor(8)) is judge([8]) is None
    assert judge(64) == "that is the variance" and judge(4) == judge(16.0) == "one factor of 2"
    assert judge(8.1) == judge(0) == judge(89.9) == "take the root" and judge(1e300) == "far too large"
    for no_number in ("8", [8, 8], {8, 9}, object, True, np.True_, None, 2j, math.nan, math.inf, 10**400):
        with pytest.raises(Refused, match="number is asked for, and .* is none"):
            number(no_number)


def test_a_count_is_whole_and_nothing_near_it_will_do():
    def judge(answer):
        return Whole(1000, {999: "one is missing", 32.5: "that is the mean"}, "count again").judge(answer)

    assert judge(1000) is judge(1000.0) is judge(np.int8(10) * np.int64(100)) is None
    assert judge(999) == "one is missing" and judge(32.5) == "that is the mean"
    assert judge(1001) == judge(-1000) == "count again"
    assert judge(1000.4) == "the answer is a whole number, not 1000.4: count again"


def test_members_of_all_containers_are_alike():
    assert members(torch.tensor([[1, 2]]), "a set") == members(range(1, 3), "a set") == {1, 2}
    assert members([" a", "b "], "a set") == {"a", "b"}
    for none in (3, "ab", {1: 2}, set(), np.array(3), [[1, 2]], [None], [True]):
        with pytest.raises(Refused, match="answer with a set"):
            members(none, "a set")


def test_a_vector_has_its_length_and_its_order():
    assert vector(((1, 2, 3),), 3, "taps").tolist() == [1, 2, 3]
    for other in ([1, 2], [[1, 2], [3, 4]], 3, "abc", {1, 2, 3}, [1, 2, None], [1, 2, math.nan], [1, 2, 3j], None):
        with pytest.raises(Refused, match="answer with a list of 3 taps"):
            vector(other, 3, "taps")


def test_a_word_is_one_of_the_words():
    for same in (" Gap ", "gap.", "'gap'", "Gap!", '"gap".'):
        assert word(same, ["gap", "floor"]) == "gap"
    assert members(["idle.", "so"], "words") == {"idle", "so"} and members({".", "a b"}, "signs") == {".", "a b"}
    for other in ("audit", 3, ["gap", "floor"], None):
        with pytest.raises(Refused, match='one of "gap", "floor"'):
            word(other, ["gap", "floor"])


def test_a_function_may_be_written_for_numpy_or_for_torch():
    for x in (np.arange(4.0), torch.arange(4.0)):
        assert reply(lambda x: x.square().sum(dim=0), x) == reply(lambda x: x.sum(axis=0, initial=8), x) == 14
        assert reply(lambda x: [x[0], x[3]], x).tolist() == [0, 3]
        with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
            reply(lambda x: x.nonsense(), x)


def test_a_function_gets_copies():
    for x in (np.arange(4.0), torch.arange(4.0)):
        reply(lambda x: x.__imul__(0), x)
        assert x.sum() == 6


def test_a_function_must_return_numbers():
    for got, says in ((None, "returns nothing"), (..., "returns nothing"), ("a", "must return numbers"),
                      ({1: 2}, "must return numbers"), ([1, [2, 3]], "must return numbers")):  # fmt: skip
        with pytest.raises(Refused, match=says):
            reply(lambda: got)  # noqa: B023
    with pytest.raises(Refused, match="answer with a function, not 3"):
        reply(3)


def test_what_a_function_returns_must_fit():
    assert fits(reply(lambda: iter([1, 2])), (2,), "hint").tolist() == [1, 2]
    assert fits(np.array([[3.0]]), (), "hint") == 3
    for shape, says in (((), "one number instead of 2 numbers: hint"), ((3,), "3 numbers"), ((2, 1), r"\(2, 1\)")):
        with pytest.raises(Refused, match=says):
            fits(np.zeros(shape), (2,), "hint")


def test_an_array_is_right_or_a_known_mistake_or_neither():
    right = np.array([1.0, 2.0, 3.0])

    def judge(answer):
        wrong = {"backwards": right[::-1], "their sum": 6.0, "squared": torch.tensor([1.0, 4.0, 9.0])}
        return arrays(answer, right, wrong, "they differ")

    assert judge([1, 2, 3]) is judge(torch.tensor([1.0, 2.0, 3.0], requires_grad=True)) is None
    assert judge(right[::-1]) == "backwards" and judge([1, 4, 9]) == "squared" and judge(6) == "their sum"
    assert judge([6, 6, 6]) == judge([1, 2]) == judge(right + 1e-3) == "they differ"  # no broadcasting
    assert "NaN" in judge([1, 2, math.nan]) and "answer with numbers" in judge("abc")
