"""What callers give: whole numbers and names, and the words that refuse all others."""
import math

import numpy as np
import pytest

from fourierqk.checks import check_count, nearest, unknown_name


@pytest.mark.parametrize(("value", "least", "most"), [(1, 1, None), (0, 0, None), (np.int64(7), 2, 7), (10**9, 1, 1e9)])
def test_a_whole_number_comes_back_as_an_int(value, least, most):
    assert check_count(value, "n", least, most) == value and type(check_count(value, "n", least, most)) is int


@pytest.mark.parametrize("value", [0, 9, -1, 2.0, 2.5, math.inf, math.nan, "3", None, [3]])
def test_anything_else_is_named_with_what_was_expected(value):
    with pytest.raises(ValueError) as error:
        check_count(value, "taps", most=8)
    assert str(error.value) == f"taps = {value!r} must be a whole number, at least 1 and at most 8"


def test_an_unknown_name_is_answered_with_the_nearest_or_with_all():
    known = {"base-dot": 1, "fourier-qk": 2, "random-qk": 3}
    assert unknown_name("system", "base_dot", known) == "unknown system 'base_dot': did you mean base-dot?"
    assert unknown_name("system", "xyzzy", known) == "unknown system 'xyzzy': there are base-dot, fourier-qk, random-qk"
    assert nearest("random", known) == "did you mean random-qk?" and nearest("xyzzy", known) == ""
    assert unknown_name("level", None, ()) == "unknown level None: there are none"
