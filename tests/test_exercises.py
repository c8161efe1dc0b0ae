"""The checkers of the signal chapters name the error that was made; that they pass solutions, test_book.py tests."""
import math

import numpy as np
import pytest
import torch

from fourierqk import Gaussian, Tone, bins, period
from fourierqk.combinators import Bank
from fourierqk.exercises import arrays, dft, filter_design, numeric, text_signal


def bin_sum(x, k, sign=-1):
    return np.sum(x * np.exp(sign * 2j * np.pi * k * np.arange(len(x)) / len(x)))


def padded(x, h, n):
    return np.fft.irfft(np.fft.rfft(x, n) * np.fft.rfft(h, n), n=n)


def hot_power(ids, centre):
    hot = (ids[:, None] == np.unique(ids)).astype(float)
    return (abs(np.fft.rfft(hot - centre * hot.mean(0), axis=0)) ** 2).sum(1) / len(ids)


# checker -> (wrong answer, a word of the reason it must give)
WRONG = {
    dft.turning_arrow: [
        (lambda x, k: bin_sum(x, k, 1), "counter-clockwise"),
        (lambda x, k: bin_sum(x, k) / len(x), "divided by n"),
        (lambda x, k: abs(bin_sum(x, k)), "magnitude"),
        (lambda x, k: bin_sum(x, k).real, "imaginary"),
        (lambda x, k: np.fft.fft(x), "one number"),
        (lambda x, k: None, "returns nothing"),
        (lambda x, k: bin_sum(x, k + 1), "differ"),
        (lambda x: x, "TypeError"),
        (3, "TypeError"),
    ],
    dft.ringing_bins: [
        ({5}, "harmonics"),
        ({5, 10, 15, 20, 25, 30}, "DC"),
        ({0, 12, 24}, "period"),
        ({0, 1 / 12}, "frequencies"),
        (set(range(0, 60, 5)), "mirror"),
        (set(), "set of bins"),
        ({0, 5, 10}, "whole number"),
        (5, "set of bins"),
    ],
    dft.who_hears: [
        ({13, 14, 15}, "ring"),
        ({8, 9, 10, 11, 12, 13}, "hears token 13"),
        ({14, 15, 0, 1, 2}, "lag 0"),
        (set(range(13, 19)), "token 16 is token 0"),
        ({13}, "six lags"),
        (13, "set of tokens"),
        (set(), "set of tokens"),
        ({"n"}, "ValueError"),
    ],
    dft.linear_convolution: [
        (lambda x, h: padded(x, h, len(x)), "circular"),
        (lambda x, h: np.convolve(x, h), "crop"),
        (lambda x, h: np.convolve(x, h, mode="same"), "middle"),
        (lambda x, h: np.fft.ifft(np.fft.fft(x, 32) * np.fft.fft(h, 32))[: len(x)], "real"),
        (lambda x, h: np.fft.irfft(np.fft.rfft(np.convolve(x, h)))[: len(x)], "Is n= given"),
        (lambda x, h: x, "differ"),
        (lambda x, h: None, "returns nothing"),
        (lambda x, h: np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(h)), "circular"),
    ],
    filter_design.word_band: [
        (Gaussian(bins(5, 256), bins(2, 256)), "period(5)"),
        (Gaussian(period(5), bins(4, 256)), "width"),
        (Gaussian(period(6), bins(2, 256)), "1/5"),
        (Tone(period(5)), "width"),
        (Bank(Gaussian(), Gaussian()), "one band"),
        (0.2, "build a filter"),
    ],
    filter_design.three_taps: [
        ([1, 0, 1], "DC"),
        ([1, -2, 1], "Nyquist"),
        ([1, 0, -1], "scale"),
        ([1, -1], "three taps"),
        ("abc", "ValueError"),
    ],
    filter_design.heard_as: [
        (0.8, "above Nyquist"),
        (0.3, "folding"),
        (-0.2, "nearly"),
        (5, "frequency"),
        (0.1, "Take away"),
        ("fast", "answer with a number"),
    ],
    filter_design.future_share: [
        (lambda h: (h[:5] ** 2).sum() / (h**2).sum(), "lag 0 included"),
        (lambda h: (h[1:5] ** 2).sum() / (h**2).sum(), "the past"),
        (lambda h: (h[4:] ** 2).sum() / (h**2).sum(), "too many"),
        (lambda h: (h[5:] ** 2).sum(), "Divide"),
        (lambda h: h[5:].sum() / h.sum(), "weights"),
        (lambda h: abs(h[5:]).sum() / abs(h).sum(), "magnitudes"),
        (lambda h: h**2, "one number"),
        (lambda h: 0.0, "n = 9"),
        (lambda h: None, "returns nothing"),
    ],
    text_signal.one_hot_power: [
        (lambda ids: abs(np.fft.rfft(ids - ids.mean())) ** 2 / len(ids), "they are names"),
        (lambda ids: abs(np.fft.rfft(ids)) ** 2 / len(ids), "mean and all"),
        (lambda ids: hot_power(ids, 0), "all bins but DC"),
        (lambda ids: hot_power(ids, 1) * len(ids), "divide by n"),
        (lambda ids: hot_power(ids, 1) / 5, "add up"),
        (lambda ids: abs(np.fft.rfft((ids[:, None] == np.unique(ids)) * 1.0, axis=0)) ** 2, "Add them up"),
        (lambda ids: np.fft.fft(ids), "Use rfft"),
        (lambda ids: np.zeros(6), "separate signals"),
        (lambda ids: np.ones(6), "differ"),
        (lambda ids: 1.0, "shape"),
        (lambda ids: None, "returns nothing"),
    ],
    text_signal.flat_level: [
        (0.375, "agree"), (1, "means left in"), (1.04, "entropy"), (0.5, "Add the three"), ("a", "answer with a number")
    ],
    text_signal.line_bin: [
        (256 / 21, "whole numbers"), (21, "period"), (1 / 21, "How many cycles"), (244, "mirror"), (13, "round"),
    ],
    text_signal.per_character: [
        (4.86, "multiplied"), (1.8 / 2.7, "Turn it over"), (0.9, "subtracted"), (2.7, "Divide"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("check", WRONG, ids=lambda check: check.__name__)
def test_wrong_answers_are_told_why(check, capsys):
    for answer, reason in WRONG[check]:
        check(answer)
        said = capsys.readouterr().out
        assert said.startswith("Not yet: ") and reason in said, (answer, said)


def test_a_number_is_right_or_a_known_mistake_or_neither():
    def judge(answer):
        return numeric(answer, (8, -8), {64: "that is the variance", (4, 16): "one factor of 2"}, "take the root")

    assert judge(8) is judge(-8.001) is judge(np.float32(8)) is judge(torch.tensor(8)) is None
    assert judge(64) == "that is the variance" and judge(4) == judge(16.0) == "one factor of 2"
    assert judge(8.1) == judge(math.nan) == judge(0) == "take the root"
    for no_number in ("fast", [8, 8], {8}, object):
        assert judge(no_number).startswith("answer with a number, not ")


def test_an_array_is_right_or_a_known_mistake_or_neither():
    right = np.array([1.0, 2.0, 3.0])

    def judge(answer):
        wrong = {"backwards": right[::-1], "their sum": 6.0, "squared": torch.tensor([1.0, 4.0, 9.0])}
        return arrays(answer, right, wrong, "they differ")

    assert judge([1, 2, 3]) is judge(torch.tensor([1.0, 2.0, 3.0], requires_grad=True)) is None
    assert judge(right[::-1]) == "backwards" and judge([1, 4, 9]) == "squared" and judge(6) == "their sum"
    assert judge([6, 6, 6]) == judge([1, 2]) == judge(right + 1e-3) == "they differ"  # no broadcasting
