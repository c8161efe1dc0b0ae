"""Wrong answers that readers give: tests/test_book.py feeds each to its checker, which must say "Not yet" and why.

    "module.checker": [answer, answer, ...]    with module and checker as in fourierqk/exercises/module.py

Every checker needs at least one: the error that the exercise was written to catch. An answer may be a function.
"""
import math

import numpy as np
import torch

from fourierqk import Gaussian, bins, period
from fourierqk.exercises.audit_your_model import time_first


def two_sided_weights(scores):
    return scores.softmax(-1)


def masked_too_late(scores):
    return scores.softmax(-1).tril()  # rows no longer sum to 1


def band_of_even_length(x, freq, width):
    f = torch.fft.rfftfreq(len(x))
    phi = torch.exp(-0.5 * ((f - freq) / width) ** 2)
    return torch.fft.irfft(torch.fft.rfft(x, dim=0) * phi[:, None], dim=0)  # n= forgotten


def counter_clockwise(x, k):
    return np.sum(x * np.exp(2j * np.pi * k * np.arange(len(x)) / len(x)))


def circular(x, h):
    return np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(h), n=len(x))


def trailing(x, n):
    return torch.nn.functional.pad(x, (n - 1, 0)).unfold(0, n, 1)


def dc_alone_kept(x, angles):
    turn = torch.exp(1j * angles)
    turn[0] = 1  # and Nyquist forgotten
    return torch.fft.irfft(torch.fft.rfft(x) * turn, n=len(x))


def dft(n):
    return torch.fft.fft(torch.eye(n))


WRONG: dict[str, list[object]] = {
    "dft.turning_arrow": [counter_clockwise, lambda x, k: abs(np.fft.fft(x)[k]), lambda x, k: np.fft.fft(x), len],
    "dft.ringing_bins": [{5}, {5, 10, 15, 20, 25, 30}, {0, 12, 24}, {1 / 12}],
    "dft.who_hears": [{13, 14, 15}, {8, 9, 10, 11, 12, 13}, {14, 15, 0, 1, 2}, {13, 14, 15, 16, 17, 18}],
    "dft.linear_convolution": [circular, np.convolve, lambda x, h: np.convolve(x, h, mode="same")],
    "filter_design.word_band": [
        Gaussian(freq=bins(5, 256), width=bins(2, 256)),
        Gaussian(freq=period(5), width=bins(4, 256)),
        0.2,
    ],
    "filter_design.three_taps": [[1, -1, 0], [1, 0, -1], [0.5, 0.5], [0, 0, 0]],
    "filter_design.heard_as": [0.8, 0.3, -0.2, 5],
    "filter_design.future_share": [
        lambda h: (h[:5] ** 2).sum() / (h**2).sum(),
        lambda h: (h[5:] ** 2).sum(),
        lambda h: abs(h[5:]).sum() / abs(h).sum(),
    ],
    "text_signal.one_hot_power": [
        lambda ids: abs(np.fft.rfft(ids - ids.mean())) ** 2 / len(ids),
        lambda ids: abs(np.fft.rfft(ids[:, None] == np.unique(ids), axis=0)) ** 2 / len(ids),
        lambda ids: (abs(np.fft.rfft(ids[:, None] == np.unique(ids), axis=0)) ** 2).sum(1) / len(ids),
    ],
    "text_signal.flat_level": [0.375, 1, 1.5 * math.log(2)],
    "text_signal.line_bin": [256 / 21, 21, 1 / 21, 244],
    "text_signal.per_character": [2.7 * 1.8, 0.9, 1.8 / 2.7],
    "dot_product.guess_loss": [5, -math.log(32), 1 / 32],
    "dot_product.score_scale": [64, 1],
    "dot_product.causal_weights": [two_sided_weights, masked_too_late, lambda scores: scores],
    "dot_product.tokens_heard": [99, 128, 1],
    "one_frequency.band_period": [4 / 256, 4],
    "one_frequency.band_pass": [band_of_even_length, lambda x, freq, width: x],
    "one_frequency.dc_attention": [[0, 0, 0, 1], [1, 1, 1, 1], [0.25]],
    "one_frequency.largest_move": [0.3, 3e-4, math.exp(3e-4)],
    "random_bands.deaf_centre": [4, 0.5, math.pi / 2, 0],
    "random_bands.twice_as_loud": [2, 16],
    "random_bands.unit": [
        lambda phi, n: phi / phi.norm(),
        lambda phi, n: phi / phi.sum(),
        lambda phi, n: phi / torch.fft.irfft(phi).norm(),  # n= forgotten
        lambda phi, n: torch.fft.irfft(phi, n=n),
        lambda phi, n: torch.ones_like(phi),
    ],
    "random_bands.slowest_draw": [6, 4, 20, 0.08],
    "four_frequencies.cross_terms": [64, 28, 8, 12],
    "four_frequencies.bank_scores": [
        lambda q, k, filters: sum(h(q)[0, 0] @ h(k)[0, 0].T for h in filters),
        lambda q, k, filters: (sum(h(q) for h in filters) @ sum(h(k) for h in filters).mT)[0, 0],
        lambda q, k, filters: (sum(h(q) for h in filters) @ sum(h(k) for h in filters).mT)[0, 0] / len(filters) ** 2,
        lambda q, k, filters: sum(h(q) @ h(k).mT for h in filters) / len(filters),
        lambda q, k, filters: (q @ k.mT)[0, 0],
    ],
    "four_frequencies.needed_rate": [3e-4 * math.log(50 / 7), 3e-4 * 50 / 7, math.log(50 / 7), 3e-4],
    "four_frequencies.same_start": [4, 2],
    "causal_filters.in_a_row": [80, 1024, 78, 64],
    "causal_filters.stop_dc": [
        lambda taps: taps - taps.mean(), lambda taps: taps - taps.sum(), lambda taps: taps[1:], lambda taps: taps,
        lambda taps: torch.cat([0 * taps[:1], taps[1:]]), lambda taps: torch.cat([taps[:1] / 2, taps[1:]]),
        lambda taps: torch.cat([-taps[1:].real.sum()[None], taps.real[1:]]),
    ],
    "causal_filters.slow_taps": [64, 128, 157, 61, 1000, 0],
    "causal_filters.apart": [9, 34, 19, 40, 31],
    "where_it_gets_in.never_moved": [15, 1, 13],
    "where_it_gets_in.enough_zeros": [16, 6, 21, 4],
    "where_it_gets_in.tokens_ahead": [3, 6, 9],
    "where_it_gets_in.sliding": [
        lambda x, phi: torch.fft.ifft(phi * torch.fft.fft(trailing(x, len(phi))))[:, 0].real,
        lambda x, phi: torch.fft.ifft(phi * torch.fft.fft(trailing(x, len(phi))))[:, -1],
        lambda x, phi: torch.fft.ifft(phi * torch.fft.fft(trailing(x, len(phi)))).real,
        lambda x, phi: torch.fft.ifft(phi * torch.fft.fft(trailing(x.flip(0), len(phi))))[:, -1].real.flip(0),
        lambda x, phi: x,
    ],
    "controls.absorb": [
        lambda w, m: w @ torch.linalg.inv(m), lambda w, m: w @ m.T, lambda w, m: w, lambda w, m: m @ w,
        lambda w, m: torch.linalg.inv(m),
    ],
    "controls.ranks": [[256, 20], [32, 256], [32, 32], [20, 32], [32, 12], 32],
    "controls.delay_angle": [90, -math.pi / 2, -30, 0.25],
    "controls.surrogate": [
        lambda x, a: torch.fft.irfft(torch.fft.rfft(x) * torch.exp(1j * a), n=len(x)),  # DC turned
        lambda x, a: dc_alone_kept(x, a),
        lambda x, a: torch.fft.irfft(torch.fft.rfft(x), n=len(x)),
        lambda x, a: torch.fft.irfft(torch.fft.rfft(x)),
        lambda x, a: torch.fft.ifft(torch.fft.fft(x)),
        lambda x, a: x * 2,
    ],
    "fnet.mirror": [5, 10, -5, 6],
    "fnet.fewer_weights": [16384, 24576, 512, 8192],
    "fnet.allowed": [{"next", "mood", "blank"}, {"mood", "blank", "write"}, {"mood"}, {"read"}, "mood"],
    "fnet.past_mix": [
        lambda x: torch.fft.fft2(x).real,
        lambda x: torch.fft.fft2(x),
        lambda x: torch.fft.fft2(x).real.tril(),  # the mask on the output
        lambda x: dft(9).real.tril() @ torch.fft.fft(x).real,
        lambda x: (dft(9).tril() @ (x + 0j)).real,
        lambda x: (dft(9).tril() @ torch.fft.fft(x)).real / 9,
        lambda x: x[:5],
    ],
    "entropy_floor.coin_rate": [math.log(2), 0.5, 1],
    "entropy_floor.gap_difference": [-0.4, 3.4],
    "entropy_floor.which_test": ["floor", "gap", "oracle"],
    "reckoning.half_width": [
        1.96 * 0.02 / 3**0.5,
        4.303 * 0.02,
        0.02 / 3**0.5,
        4.303 * 0.02 * (2 / 3) ** 0.5 / 3**0.5,
        2 * 4.303 * 0.02 / 3**0.5,
        0.03,
    ],
    "reckoning.far_apart": [0.372, 3.2],
    "reckoning.verdict_word": ["holds", "does not hold here", "undecided", "wrong"],
    "shuffled_gap.unigram_entropy": [
        lambda ids, v: (lambda p: torch.special.entr(p).sum() / math.log(2))(torch.bincount(ids) / len(ids)),  # bits
        lambda ids, v: -torch.special.entr(torch.bincount(ids) / len(ids)).sum(),
        lambda ids, v: (lambda p: -(p * p.log()).sum())(torch.bincount(ids, minlength=v) / len(ids)),  # 0 log 0
        lambda ids, v: math.log(v),
    ],
    "shuffled_gap.over_confidence": [7.0, 2.2, 7.85],
    "shuffled_gap.modest_gap": [math.log(32), 4],
    "shuffled_gap.proofs": [{"A", "B", "D"}, {"B", "D", "E"}, {"D"}, {"C"}, {"F"}],
    "causality_audit.proof_positions": [{3, 4, 5, 7}, {5, 7}, {0, 1, 2}, {3}],
    "causality_audit.exact_test": [
        lambda model, ids, cut: bool((model(ids)[0] != model(ids.flip(1))[0]).any()),  # the past replaced as well
        lambda model, ids, cut: bool((model(ids)[0][:, :cut] != model(ids[:, :cut])[0]).any()),  # a shorter text
        lambda model, ids, cut: bool((model(ids)[0] != model((ids + 1) % 13)[0])[:, cut:].any()),  # the wrong side
        lambda model, ids, cut: False,
        lambda model, ids, cut: model(ids[:, cut:].zero_()) is None,  # in place
    ],
    "causality_audit.without_gradient": [
        lambda x: x.cumsum(1),
        lambda x: x.mean(1, keepdim=True).expand_as(x),
        lambda x: x.sign(),
        lambda x: x.mean(1),
    ],
    "causality_audit.mended": [
        circular,
        lambda x, h: np.convolve(x, h),
        lambda x, h: torch.fft.irfft(torch.fft.rfft(x, n=2 * len(x)) * torch.fft.rfft(h, n=2 * len(x)))[-len(x) :],
    ],
    "causality_audit.own_model": ["causal", True],
    "audit_your_model.wrapped": [
        lambda ids: time_first(ids),
        lambda ids: time_first(ids.T),
        lambda ids: time_first(ids).transpose(0, 1),
        lambda ids: time_first(ids.T).transpose(0, 1).softmax(-1),
    ],
    "audit_your_model.exit_status": [0, 1, 2],
    "audit_your_model.long_enough": [511, 256, 1024, 2],
}
