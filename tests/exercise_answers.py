"""What readers answer, right and wrong: tests/test_exercises.py feeds all of it to the checkers.

    "module.checker"    with module and checker as in fourierqk/exercises/module.py

RIGHT has the answers that must pass, and the tests give them in every form that means the same: `NUMBERS`, `SETS`,
`VECTORS` and `WORDS` are values, `FUNCTIONS` and `OBJECTS` are written out. WRONG has the errors that an exercise was
written to catch, each with a word of the reason that must be given. Every checker needs both.
"""
import math

import numpy as np
import torch
from torch.nn.functional import pad

from fourierqk import Gaussian, Unit, bins, period
from fourierqk.combinators import Bank
from fourierqk.exercises.audit_your_model import time_first
from fourierqk.filters import MexicanHat, Tone

# --- right

NUMBERS = {
    "filter_design.bell": 1 / (20 * math.pi),
    "filter_design.heard_as": 0.2,
    "text_signal.flat_level": 0.625,
    "text_signal.line_bin": 12,
    "text_signal.per_character": 1.5,
    "dot_product.guess_loss": math.log(32),
    "dot_product.score_scale": 8,
    "one_frequency.same_rhythm": 16,
    "one_frequency.largest_move": math.exp(0.3),
    "random_bands.deaf_centre": 0.25,
    "random_bands.twice_the_gain": 4,
    "random_bands.slowest_draw": 3,
    "four_frequencies.cross_terms": 56,
    "four_frequencies.needed_rate": 3e-4 * math.log(50 / 7) / 0.75,
    "four_frequencies.same_start": 1,
    "honest_attention.slowest_turn": 2 * math.pi * 10000 ** (15 / 16),
    "honest_attention.late_value": 4,
    "honest_attention.interaction": 0.03,
    "causal_filters.in_a_row": 79,
    "causal_filters.slow_taps": 112,
    "where_it_gets_in.never_moved": 0,
    "where_it_gets_in.enough_zeros": 5,
    "where_it_gets_in.tokens_ahead": 18,
    "controls.delay_angle": -90,
    "fnet.mirror": 11,
    "fnet.fewer_weights": 32768,
    "entropy_floor.coin_rate": math.log(2) / 2,
    "seeds_and_windows.half_width": 4.303 * 0.02 / 3**0.5,
    "seeds_and_windows.far_apart": 19.6,
    "seeds_and_windows.remain": 2,
    "shuffled_gap.modest_gap": 0,
    "audit_your_model.exit_status": 3,
    "audit_your_model.long_enough": 512,
}
SETS = {
    "dft.ringing_bins": {0, 5, 10, 15, 20, 25, 30},
    "dft.who_hears": {13, 14, 15, 0, 1, 2},
    "dot_product.swapped": {2, 3, 4, 5},
    "fnet.allowed": {"mood", "blank"},
    "shuffled_gap.proofs": {"B", "D"},
    "causality_audit.proof_positions": {3, 4},
}
VECTORS = {
    "causal_filters.both_late": [34, 19, 25],
    "price_of_causality.three_taps": [0.5, 0, -0.5],
    "one_frequency.dc_attention": [0.25, 0.25, 0.25, 0.25],
    "controls.ranks": [32, 20],
}
WORDS = {
    "entropy_floor.which_test": "audit", "reckoning.verdict_word": "with the future only",
    "reckoning.no_gain": "holds", "reckoning.gain_over_what": "undecided",
}  # fmt: skip


def gaussian(f, freq, width):
    return np.exp(-0.5 * ((f - freq) / width) ** 2)


def band_in_numpy(x, freq, width):
    phi = gaussian(np.fft.rfftfreq(len(x)), freq, width)
    return np.fft.irfft(np.fft.rfft(x, axis=0) * phi[:, None], n=len(x), axis=0)


def weights_in_numpy(scores):
    e = np.exp(np.where(np.tri(len(scores)) > 0, scores, -np.inf))
    return e / e.sum(1, keepdims=True)


def weights_by_rows(scores):
    return [pad(row[: t + 1].softmax(0), (0, len(scores) - t - 1)) for t, row in enumerate(scores)]


def padded_in_torch(x, h):
    n = len(x)
    return torch.fft.irfft(torch.fft.rfft(x, 2 * n) * torch.fft.rfft(h, 2 * n), n=2 * n)[:n]


def surrogate_in_numpy(x, angles):
    turn = np.exp(1j * angles)
    turn[0] = 1
    if len(x) % 2 == 0:
        turn[-1] = 1
    return np.fft.irfft(np.fft.rfft(x) * turn, n=len(x))


def slide_in_numpy(x, phi):
    n = len(phi)
    silent = np.concatenate([np.zeros(n - 1), x])
    return [np.fft.ifft(phi * np.fft.fft(silent[t : t + n]))[-1].real for t in range(len(x))]


def stop_dc_in_numpy(taps):
    return np.concatenate([[taps[0] - taps.sum()], taps[1:]])


def power_in_torch(ids):
    hot = (ids[:, None] == ids.unique()).double()
    return (torch.fft.rfft(hot - hot.mean(0), dim=0).abs() ** 2).sum(1) / len(ids)


def entropy_in_numpy(ids, v):
    p = np.bincount(ids, minlength=v) / len(ids)
    return -(p[p > 0] * np.log(p[p > 0])).sum()


def divergence_in_numpy(logits, u):
    logp = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    seen = u > 0
    return (u[seen] * (np.log(u[seen]) - logp[:, seen])).sum(-1).mean()


def paired(model, oracle, times=4.0):
    d = model - oracle
    return d.mean() < -times * d.std() / len(d) ** 0.5


def leaks(model, ids, cut):
    other = ids.clone()
    other[:, cut:] = (other[:, cut:] + 1) % 13
    return (model(ids)[0] != model(other)[0])[:, :cut].any()


def past_mix(x):
    return (torch.fft.fft(torch.eye(len(x))).tril() @ torch.fft.fft(x)).real


def past_mix_in_numpy(x):
    x = np.asarray(x.detach() if isinstance(x, torch.Tensor) else x)
    t = np.arange(len(x))
    return (np.tril(np.exp(-2j * np.pi * np.outer(t, t) / len(x))) @ np.fft.fft(x)).real


def prefix_scores(q, k, h):
    """By the two matrices of the chapter."""
    i = np.arange(len(q))
    toeplitz = np.array([[h(int(b - a)) for b in i] for a in i])  # entry (m, j): h(j - m)
    read = np.tril(np.tril(toeplitz.T) @ np.asarray(q) @ np.asarray(k).T)
    return np.tril(read @ toeplitz)


def prefix_by_prefix(q, k, h, end=lambda i, n: i + 1):
    rows = torch.zeros(len(q), len(q), dtype=q.dtype)
    for i in range(len(q)):
        m = torch.arange(end(i, len(q)))
        kernel = torch.tensor([[float(h(int(a - b))) for b in m] for a in m], dtype=q.dtype)
        rows[i, : len(m)] = (kernel @ q[m])[i] @ (kernel @ k[m]).mT
    return rows


FUNCTIONS = {
    "honest_attention.prefix_scores": [prefix_scores, prefix_by_prefix],
    "dft.turning_arrow": [
        lambda x, k: np.fft.fft(x)[k],
        lambda x, k: torch.fft.fft(x)[k],
        lambda x, k: sum(v * np.exp(-2j * np.pi * k * t / len(x)) for t, v in enumerate(x)),
        lambda x, k: [np.fft.fft(x)[k]],
    ],
    "dft.linear_convolution": [
        lambda x, h: np.convolve(x, h)[: len(x)],
        padded_in_torch,
        lambda x, h: [sum(h[s] * x[t - s] for s in range(t + 1)) for t in range(len(x))],
    ],
    "price_of_causality.future_share": [
        lambda h: (h[len(h) // 2 + 1 :] ** 2).sum() / (h**2).sum(),
        lambda h: h[-(len(h) // 2) :].square().sum() / h.square().sum(),
        lambda h: [float(sum(h[5:] ** 2) / sum(h**2))],
    ],
    "price_of_causality.wait": [
        lambda h, D: np.roll(h, D)[: 2 * D + 1],
        lambda h, D: h.roll(D)[: 2 * D + 1],
        lambda h, D: [h[lag] for lag in range(-D, D + 1)],
    ],
    "text_signal.one_hot_power": [power_in_torch, lambda ids: list(power_in_torch(torch.tensor(ids)))],
    "dot_product.causal_weights": [
        weights_in_numpy,
        weights_by_rows,
        lambda s: (s + torch.full_like(s, -math.inf).triu(1)).softmax(1),
    ],
    "one_frequency.band_pass": [band_in_numpy, lambda x, f, w: Gaussian(f, w)(x[None, None])[0, 0]],
    "random_bands.unit": [
        lambda phi, n: phi / np.linalg.norm(np.fft.irfft(phi, n=n)),
        lambda phi, n: phi / torch.fft.irfft(phi, n=n).square().sum().sqrt(),
        lambda phi, n: (phi / torch.fft.irfft(phi, n=n).norm()).requires_grad_(),
    ],
    "four_frequencies.bank_scores": [
        lambda q, k, filters: (Bank(*filters)(q) @ Bank(*filters)(k).mT)[0, 0],
        lambda q, k, filters: np.mean([(h(q) @ h(k).mT)[0, 0].numpy() for h in filters], axis=0),
    ],
    "causal_filters.stop_dc": [stop_dc_in_numpy, lambda taps: torch.cat([-taps[1:].sum()[None], taps[1:]])],
    "where_it_gets_in.sliding": [slide_in_numpy],
    "controls.absorb": [np.dot, torch.matmul, lambda w, m: np.asarray(w) @ np.asarray(m)],
    "controls.surrogate": [surrogate_in_numpy],
    "fnet.past_mix": [past_mix, past_mix_in_numpy],
    "entropy_floor.below_floor": [
        paired,
        lambda model, oracle: (oracle - model).mean() > 4 * np.std(oracle - model, ddof=1) / np.sqrt(len(model)),
        lambda model, oracle: bool(paired(torch.tensor(model), torch.tensor(oracle))),
    ],
    "shuffled_gap.unigram_entropy": [
        entropy_in_numpy,
        lambda ids, v: torch.special.entr(torch.bincount(ids, minlength=v) / len(ids)).sum(),
    ],
    "shuffled_gap.over_confidence": [
        divergence_in_numpy,
        lambda logits, u: torch.xlogy(u, u).sum() - (logits.log_softmax(-1) @ u).mean(),
    ],
    "causality_audit.exact_test": [leaks, lambda model, ids, cut: int(leaks(model, ids, cut))],
    "causality_audit.without_gradient": [lambda x: x.roll(1, dims=2) * x.sum((1, 2), keepdim=True).sign()],
    "causality_audit.mended": [padded_in_torch, lambda x, h: np.convolve(x, h)[: len(x)]],
    "audit_your_model.wrapped": [
        lambda ids: time_first(ids.T).transpose(0, 1),
        lambda ids: time_first(ids.mT).swapaxes(0, 1),
    ],
}  # fmt: skip

OBJECTS = {
    "filter_design.word_band": [
        Gaussian(freq=period(5), width=bins(2, 256)),
        Gaussian(0.2, 1 / 128),
        Gaussian(period(5), bins(2, 256), learn=True),
        Gaussian(period(5), bins(2, 256), heads=4),
        Gaussian([period(5)], bins(2, 256)),
        Unit(Gaussian(period(5), bins(2, 256))),
    ],
}

# --- wrong


def bin_sum(x, k, sign=-1, turn=2):
    return np.sum(x * np.exp(sign * turn * 1j * np.pi * k * np.arange(len(x)) / len(x)))


def padded(x, h, n):
    return np.fft.irfft(np.fft.rfft(x, n) * np.fft.rfft(h, n), n=n)


def circular(x, h):
    return np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(h), n=len(x))


def hot_power(ids, centre):
    hot = (ids[:, None] == np.unique(ids)).astype(float)
    return (abs(np.fft.rfft(hot - centre * hot.mean(0), axis=0)) ** 2).sum(1) / len(ids)


def trailing(x, n):
    return pad(x, (n - 1, 0)).unfold(0, n, 1)


def slid(x, phi, entry=-1):
    return torch.fft.ifft(phi * torch.fft.fft(trailing(x, len(phi))))[:, entry]


def dc_alone_kept(x, angles):
    turn = torch.exp(1j * angles)
    turn[0] = 1  # and Nyquist forgotten
    return torch.fft.irfft(torch.fft.rfft(x) * turn, n=len(x))


def dft(n):
    return torch.fft.fft(torch.eye(n))


def stop(taps, first):
    return torch.cat([first[None].to(taps.dtype), taps[1:]])


def unpaired(model, oracle):
    return model.mean() - oracle.mean() < -4 * np.sqrt((model.var() + oracle.var()) / len(model))


def two_sided_weights(scores):
    return scores.softmax(-1)


WRONG: dict[str, list[tuple[object, str]]] = {
    "dft.turning_arrow": [
        (lambda x, k: bin_sum(x, k, 1), "counter-clockwise"),
        (lambda x, k: bin_sum(x, k) / len(x), "divided by n"),
        (lambda x, k: abs(bin_sum(x, k)), "magnitude"),
        (lambda x, k: bin_sum(x, k).real, "imaginary"),
        (lambda x, k: bin_sum(x, k, turn=1), "half turns"),
        (lambda x, k: bin_sum(x, k) * np.exp(-2j * np.pi * k / len(x)), "from 1"),
        (lambda x, k: np.fft.fft(x), "one number"),
        (lambda x, k: None, "returns nothing"),
        (lambda x, k: bin_sum(x, k + 1), "differ"),
        (lambda x, k: "east", "must return numbers"),
        (lambda x: x, "TypeError"),
        (3, "answer with a function"),
    ],
    "dft.ringing_bins": [
        ({5}, "harmonics"),
        ({5, 10, 15, 20, 25, 30}, "DC"),
        ({0, 12, 24}, "period"),
        ({0, 12, 24, 36, 48}, "tokens at which"),
        ({0, 5, 10, 15, 20, 25, 30, 35}, "30 only"),
        ({0, 1 / 12}, "frequencies"),
        (set(range(0, 60, 5)), "mirror"),
        (np.arange(31) % 5 == 0, "flatnonzero"),
        ({0, 5, 10}, "whole number"),
        (set(), "empty"),
        (5, "set of bins"),
    ],
    "dft.who_hears": [
        ({13, 14, 15}, "ring"),
        ({8, 9, 10, 11, 12, 13}, "hears token 13"),
        ({14, 15, 0, 1, 2}, "lag 0"),
        ({13, 14, 15, 0, 1, 2, 3}, "one too many"),
        (set(range(13, 19)), "token 16 is token 0"),
        ({-3, -2, -1, 0, 1, 2}, "-1 is token 15"),
        ({13.2, 14, 15, 0, 1, 2}, "13.2"),
        ({13}, "six lags"),
        (13, "set of tokens"),
        (set(), "empty"),
        ({"n"}, "whole numbers"),
    ],
    "dft.linear_convolution": [
        (circular, "circular"),
        (np.convolve, "15 numbers instead of 8"),
        (lambda x, h: np.convolve(x, h, mode="same"), "middle"),
        (lambda x, h: np.convolve(x, h)[-len(x) :], "end of the convolution"),
        (lambda x, h: np.fft.ifft(np.fft.fft(x, 32) * np.fft.fft(h, 32))[: len(x)], "real"),
        (lambda x, h: np.fft.irfft(np.fft.rfft(np.convolve(x, h)))[: len(x)], "Is n= given"),
        (lambda x, h: x, "differ"),
        (lambda x, h: None, "returns nothing"),
    ],
    "filter_design.word_band": [
        (Gaussian(bins(5, 256), bins(2, 256)), "period(5)"),
        (Gaussian(bins(2, 256), period(5)), "exchanged"),
        (Gaussian(period(4), bins(2, 256)), "with its space"),
        (Gaussian(bins(51, 256), bins(2, 256)), "centred on 0.199"),
        (Gaussian(period(6), 2.0), "centred on 0.167"),
        *((Gaussian(period(5), bins(k, 256)), f"yours is {k} bins") for k in (1, 1.9, 2.1, 4, 64, 1000)),
        (Gaussian(period(5), 1e-9), "the width is not"),
        (Gaussian(period(5), 2.0), "in cycles per token, too"),
        (Unit(Gaussian(period(5), bins(4, 256))), "yours is 4 bins"),
        (Gaussian([period(5), period(6)], bins(2, 256)), "a single frequency"),
        (MexicanHat(period(5)), "not one Gaussian"),
        (Tone(period(5)), "not one Gaussian"),
        (Bank(Gaussian(), Gaussian()), "not one Gaussian"),
        (0.2, "build a filter"),
    ],
    "filter_design.bell": [
        (0.1, "2 pi is missing"),
        (1 / (40 * math.pi), "the bound"),
        (20 * math.pi, "turn it over"),
        (math.pi / 5, "divides"),
        (10, "in tokens"),
        (256 / (20 * math.pi), "bins of 256"),
        (2**0.5 / (40 * math.pi), "|h|^2"),
        (0.5, "Solve for sigma"),
    ],
    "filter_design.heard_as": [
        (0.8, "above Nyquist"),
        (0.3, "folding"),
        (-0.2, "nearly"),
        (5, "frequency"),
        (1.25, "period of the wave"),
        (0.25, "turn it over"),
        (0.5, "Nyquist"),
        (0.1, "Take away"),
        ("fast", "a number is asked for"),
    ],
    "price_of_causality.three_taps": [
        ([1, 0, 1], "DC"),
        ([1, -2, 1], "Nyquist"),
        ([1, 0, -1], "scale"),
        ([0, 0, 0], "three zeros"),
        ([1, -1], "3 taps"),
        ([0.5, 0, -0.5j], "real"),
        ({0.5, 0, -0.5}, "no order"),
        ("abc", "3 taps"),
    ],
    "price_of_causality.future_share": [
        (lambda h: (h[:5] ** 2).sum() / (h**2).sum(), "lag 0 included"),
        (lambda h: (h[1:5] ** 2).sum() / (h**2).sum(), "the past"),
        (lambda h: (h[4:] ** 2).sum() / (h**2).sum(), "too many"),
        (lambda h: (h[6:] ** 2).sum() / (h**2).sum(), "too few"),
        (lambda h: (h[5:] ** 2).sum(), "Divide"),
        (lambda h: h[5:].sum() / h.sum(), "weights"),
        (lambda h: abs(h[5:]).sum() / abs(h).sum(), "magnitudes"),
        (lambda h: 100 * (h[5:] ** 2).sum() / (h**2).sum(), "per cent"),
        (lambda h: h**2, "one number"),
        (lambda h: 0.0, "n = 9"),
        (lambda h: None, "returns nothing"),
    ],
    "price_of_causality.wait": [
        (lambda h, D: h[: 2 * D + 1], "you cut"),
        (lambda h, D: np.roll(h, -D)[: 2 * D + 1], "wrong way"),
        (lambda h, D: h[: D + 1], "the past alone"),
        (lambda h, D: h[-D:], "the future alone"),
        (lambda h, D: np.roll(h, D), "Keep its first"),
        (lambda h, D: np.roll(h, D)[: 2 * D], "lag 2 D counts"),
        (lambda h, D: np.roll(h, D)[2 * D :: -1], "backwards"),
        (lambda h, D: np.zeros(2 * D + 1), "in this order"),
        (lambda h, D: 1.0, "old lags -3 to 3"),
    ],
    "text_signal.one_hot_power": [
        (lambda ids: abs(np.fft.rfft(ids - ids.mean())) ** 2 / len(ids), "they are names"),
        (lambda ids: abs(np.fft.rfft(ids)) ** 2 / len(ids), "mean and all"),
        (lambda ids: hot_power(ids, 0), "all bins but DC"),
        (lambda ids: hot_power(ids, 1) * len(ids), "divide by n"),
        (lambda ids: hot_power(ids, 1) / 5, "add up"),
        (lambda ids: abs(np.fft.rfft((ids[:, None] == np.unique(ids)) * 1.0, axis=0)) ** 2, "Add them up"),
        (lambda ids: np.fft.fft(ids), "Use rfft"),
        (lambda ids: np.zeros(6), "separate signals"),
        (lambda ids: np.ones(6), "differ"),
        (lambda ids: 1.0, "instead of 6 numbers"),
        (lambda ids: None, "returns nothing"),
    ],
    "text_signal.flat_level": [
        (0.375, "agree"), (1, "means left in"), (0.5, "one pair"), (1.04, "entropy"), (0.2, "Add the three"),
    ],
    "text_signal.line_bin": [
        (256 / 21, "whole numbers"), (21, "period"), (1 / 21, "How many cycles"), (244, "mirror"), (13, "19.7"),
        (12.4, "a whole number, not 12.4"), (40, "round"),
    ],
    "text_signal.per_character": [
        (4.86, "multiplied"), (1.8 / 2.7, "Turn it over"), (0.9, "subtracted"), (2.7, "of a token"), (3, "Divide"),
    ],
    "dot_product.guess_loss": [
        (5, "bits"), (-math.log(32), "negative"), (1 / 32, "probability of each"), (math.log10(32), "base 10"),
        (32, "natural log"),
    ],
    "dot_product.score_scale": [(64, "variance"), (1, "after the division"), (1 / 8, "undoes"), (32, "root")],
    "dot_product.causal_weights": [
        (two_sided_weights, "above the diagonal"),
        (lambda s: s.softmax(-1).tril(), "mask the scores first"),
        (lambda s: s.masked_fill(torch.ones(5, 5).triu().bool(), -math.inf).softmax(-1), "diagonal stays"),
        (lambda s: (s * torch.ones(5, 5).tril().log()).softmax(-1), "not numbers"),
        (lambda s: s.masked_fill(torch.ones(5, 5).triu(1).bool(), -math.inf).softmax(0), "columns"),
        (lambda s: torch.ones(5, 5).tril() / torch.arange(1, 6)[:, None], "weigh the same"),
        (lambda s: (2 * s).masked_fill(torch.ones(5, 5).triu(1).bool(), -math.inf).softmax(-1), "not the softmax"),
        (lambda s: s[0], "(T, T)"),
    ],
    "dot_product.swapped": [
        ({2, 5}, "outputs 3 and 4 hear"),
        ({2, 3, 4, 5, 6, 7}, "order of its terms"),
        (set(range(8)), "mask hides"),
        ({3, 4}, "other queries"),
        ({8}, "0 to 7"),
        ({2}, "before and after"),
        (2, "set of positions"),
    ],
    "one_frequency.same_rhythm": [
        (4, "slower rhythm"), (1, "*more*"), (64, "period"), (1 / 64, "frequency"), (15, "How many"),
    ],
    "one_frequency.band_pass": [
        (lambda x, freq, width: torch.fft.irfft(torch.fft.rfft(x, dim=0), dim=0), "the signal itself"),
        (lambda x, freq, width: band_in_numpy(x, freq, width)[:14], "with n="),
        (lambda x, freq, width: band_in_numpy(x, freq, width / 2**0.5), "too narrow"),
        (lambda x, freq, width: band_in_numpy(x, freq, width * 2**0.5), "too wide"),
        (lambda x, freq, width: band_in_numpy(x.T, freq, width).T, "channels"),
        (lambda x, freq, width: band_in_numpy(x, freq, width) + 0j, "real numbers"),
        (lambda x, freq, width: 2 * x, "wrong values"),
    ],
    "one_frequency.dc_attention": [
        ([0, 0, 0, 1], "the last"), ([1, 0, 0, 0], "the first"), ([1, 1, 1, 1], "sum to 1"), ([0.25], "4 weights"),
        ([0.1, 0.2, 0.3, 0.4], "equal scores"),
    ],
    "one_frequency.largest_move": [
        (0.3, "logarithm"), (1.3, "1 + 0.3"), (math.exp(3e-4), "one step"), (10**0.3, "raise e"),
        (300, "add the steps"),
    ],
    "random_bands.deaf_centre": [
        (4, "period"), (0.5, "upside down"), (math.pi / 2, "angle"), (90, "degrees"), (0.75, "between 0 and 1/2"),
        (0, "quarter of a turn"),
    ],
    "random_bands.twice_the_gain": [(2, "acts twice"), (16, "fourth power"), (1, "sharper"), (8, "product")],
    "random_bands.unit": [
        (lambda phi, n: phi / phi.norm(), "norm of phi itself"),
        (lambda phi, n: phi / phi.sum(), "L1"),
        (lambda phi, n: phi / torch.fft.irfft(phi).norm(), "Did irfft get n="),
        (lambda phi, n: phi / torch.fft.irfft(phi, n=n).norm() ** 2, "its root"),
        (lambda phi, n: -phi / torch.fft.irfft(phi, n=n).norm(), "upside down"),
        (lambda phi, n: torch.fft.irfft(phi, n=n), "as many values as phi"),
        (lambda phi, n: torch.ones_like(phi), "shape of the response changed"),
        (lambda phi, n: phi, "sum to"),
    ],
    "random_bands.slowest_draw": [
        (6, "highest of all"), (4, "slower"), (20, "0 to 19"), (0.0799, "centre of its fastest"), (3.5, "0 to 19"),
    ],
    "four_frequencies.cross_terms": [(64, "all products"), (28, "count both"), (8, "a bank"), (12, "multiply out")],
    "four_frequencies.bank_scores": [
        (lambda q, k, fs: sum(h(q)[0, 0] @ h(k)[0, 0].T for h in fs), "divide by the number"),
        (lambda q, k, fs: (sum(h(q) for h in fs) @ sum(h(k) for h in fs).mT)[0, 0], "summed reading"),
        (lambda q, k, fs: (sum(h(q) for h in fs) @ sum(h(k) for h in fs).mT)[0, 0] / 9, "Compare first"),
        (lambda q, k, fs: sum(h(q) @ h(k).mT for h in fs)[0, 0] / 6, "root of d"),
        (lambda q, k, fs: sum(h(k) @ h(q).mT for h in fs)[0, 0] / 3, "swapped"),
        (lambda q, k, fs: sum(h(q) @ k.mT for h in fs)[0, 0] / 3, "only the queries"),
        (lambda q, k, fs: sum(h(q) @ h(k).mT for h in fs) / len(fs), "shape"),
        (lambda q, k, fs: (q @ k.mT)[0, 0], "not filtered"),
        (lambda q, k, fs: (fs[0](q) @ fs[0](k).mT)[0, 0], "wrong values"),
    ],
    "four_frequencies.needed_rate": [
        (3e-4 * math.log(50 / 7), "divide"), (3e-4 * 50 / 7, "from ln 50"), (math.log(50 / 7), "must move"),
        (3e-4 * math.log10(50 / 7) / 0.75, "base 10"), (3e-4, "proportional"),
    ],
    "four_frequencies.same_start": [(4, "tell the bands apart"), (0, "move apart"), (2, "swap two bands")],
    "honest_attention.slowest_turn": [
        (10000 ** (15 / 16), "one radian"), (2 * math.pi * 10000, "not 1"), (2 * math.pi, "fastest"),
        (2 * math.pi * 10000 ** (31 / 32), "counts pairs"), (10000 ** (-15 / 16), "the speed"), (32, "divide"),
    ],
    "honest_attention.late_value": [
        (3, "Whose key"), (2, "not of j + 1"), (9, "who asks"), (5, "not two"), (7, "not filtered"),
    ],
    "honest_attention.prefix_scores": [
        (lambda q, k, h: prefix_by_prefix(q, k, h, lambda i, n: n), "cut queries and keys"),
        (lambda q, k, h: prefix_scores(q, k, lambda lag: h(lag) if lag >= 0 else 0.0), "hear their past alone"),
        (lambda q, k, h: (q @ k.mT).tril(), "last filtered query"),
        (lambda q, k, h: q, "one column a key"),
    ],
    "honest_attention.interaction": [
        (-0.03, "the sign"), (-0.05, "without rotary"), (-0.02, "with rotary"), (-0.10, "both together"),
        (-0.08, "rotary positions bring"), (0.5, "two differences"),
    ],
    "causal_filters.in_a_row": [(80, "nearly"), (1024, "multiply"), (78, "largest lag"), (64, "sums of one of each")],
    "causal_filters.stop_dc": [
        (lambda taps: taps - taps.mean(), "lags from 1 on"),
        (lambda taps: taps[1:], "all the taps"),
        (lambda taps: taps, "DC still passes"),
        (lambda taps: stop(taps, -taps.sum()), "*off* lag 0"),
        (lambda taps: stop(taps, 0 * taps[0]), "DC still passes"),
        (lambda taps: torch.cat([-taps[1:].real.sum()[None], taps.real[1:]]), "imaginary part"),
    ],
    "causal_filters.slow_taps": [
        (64, "one cycle"), (128, "one cycle"), (157, "square of the weight"), (61, "hold"), (1000, "hold"),
        (0, "from 1"), (90.5, "less than 99 %"), (200.5, "whole number"),
    ],
    "causal_filters.both_late": [
        ([40, 25, 25], "an earlier token"), ([34, 19, 19], "not filtered"), ([34, 25, 25], "like the query"),
        ([40, 19, 25], "like the key"), ([46, 31, 25], "*before*"), ([34, 19, 40], "the listener"),
        ([34, 19, 15], "act on values"), (15, "3 tokens"),
    ],
    "where_it_gets_in.never_moved": [(15, "one more"), (1, "tokens 0 and 1"), (16, "0 to 15"), (13, "first row")],
    "where_it_gets_in.enough_zeros": [(16, "fewer"), (6, "lag 0 stays"), (21, "padded text"), (4, "silent")],
    "where_it_gets_in.tokens_ahead": [
        (3, "one layer"), (6, "not of one"), (36, "looks back"), (42, "seven lags"), (9, "further ahead"),
    ],
    "where_it_gets_in.sliding": [
        (lambda x, phi: slid(x, phi, 0).real, "the oldest"),
        (lambda x, phi: slid(x, phi, len(phi) // 2).real, "middle"),
        (lambda x, phi: slid(x, phi), "real part"),
        (lambda x, phi: slid(x, phi, slice(None)).real, "n - 1 zeros"),
        (lambda x, phi: slid(x.flip(0), phi).real.flip(0), "run into its future"),
        (lambda x, phi: x, "wrong values"),
    ],
    "controls.absorb": [
        (lambda w, m: w @ torch.linalg.inv(m), "undoes"), (lambda w, m: w @ m.T, "transposed"),
        (lambda w, m: w, "W_o itself"), (lambda w, m: torch.linalg.inv(m), "shape"), (lambda w, m: 2 * w, "brackets"),
    ],
    "controls.ranks": [
        ([256, 20], "score matrix"), ([20, 32], "other way round"), ([20, 20], "invertible"), ([32, 32], "directions"),
        ([32, 12], "left after"), (32, "2 ranks"), ({32, 20}, "no order"),
    ],
    "controls.delay_angle": [
        (90, "sign"), (-math.pi / 2, "radians"), (-30, "one token"), (0.25, "turns"), (-36, "3/12"), (45, "quarter"),
    ],
    "controls.surrogate": [
        (lambda x, a: torch.fft.irfft(torch.fft.rfft(x) * torch.exp(1j * a), n=len(x)), "DC has changed"),
        (dc_alone_kept, "Nyquist"),
        (lambda x, a: torch.fft.irfft(torch.fft.rfft(x), n=len(x)), "as it was"),
        (lambda x, a: surrogate_in_numpy(x.numpy(), a.numpy())[:14], "with n="),
        (lambda x, a: surrogate_in_numpy(x.numpy(), -a.numpy()), "wrong way"),
        (lambda x, a: torch.fft.ifft(torch.fft.fft(x)), "real signal"),
        (lambda x, a: x + (x - x.mean()), "Nyquist"),
        (lambda x, a: torch.fft.irfft(torch.fft.rfft(x).abs(), n=len(x)), "phases are not"),
        (lambda x, a: x * 2, "DC"),
    ],
    "fnet.mirror": [
        (5, "itself"), (10, "same place"), (-5, "on a ring"), (12, "16 - t"), (6, "reverse"),
    ],
    "fnet.fewer_weights": [
        (16384, "one layer"), (24576, "output matrix"), (512, "64 by 64"), (8192, "count the square"),
        (32760, "count the square"),
    ],
    "fnet.allowed": [
        ({"next", "mood", "blank"}, "next:"), ({"mood", "blank", "write"}, "write:"), ({"mood"}, "missing"),
        ({"read"}, "none of them"), ("mood", "set of tasks"),
    ],
    "fnet.past_mix": [
        (lambda x: torch.fft.fft2(x).real, "the audit says leaks"),
        (lambda x: torch.fft.fft2(x), ".real at the end"),
        (lambda x: torch.fft.fft2(x).real.tril(), "the audit says leaks"),  # the mask on the output
        (lambda x: dft(9).real.tril() @ torch.fft.fft(x).real, "sines"),
        (lambda x: (dft(9).tril() @ (x + 0j)).real, "channels"),
        (lambda x: (dft(9).tril() @ torch.fft.fft(x)).real / 9, "unscaled"),
        (lambda x: x[:5], "instead of an array of shape (9, 6)"),
    ],
    "entropy_floor.coin_rate": [
        (math.log(2), "one coin"), (0.5, "bits"), (1, "bits"), (math.log(4), "independent"),
        (2 * math.log(2), "independent"), (0.1, "divide"),
    ],
    "entropy_floor.below_floor": [
        (lambda m, o: (o - m).mean() < 0, "*above*"),
        (lambda m, o: (m - o).mean() < -4 * (m - o).std(), "root of N"),
        (unpaired, "window by window"),
        (lambda m, o: m.mean() < o.mean(), "2 standard errors"),
        (lambda m, o: paired(m, o, 3), "not 4"),
        (lambda m, o: paired(m, o, 6), "4 are enough"),
        (lambda m, o: m < o, "one answer"),
        (lambda m, o: None, "returns nothing"),
    ],
    "entropy_floor.which_test": [
        ("floor", "Nobody knows"), ("gap", "large or small"), ("oracle", "one of"), (3, "one of"),
    ],
    "seeds_and_windows.half_width": [
        (1.96 * 0.02 / 3**0.5, "normal distribution"),
        (4.303 * 0.02, "root of 3"),
        (0.02 / 3**0.5, "standard error of the mean"),
        (4.303 * 0.02 * (2 / 3) ** 0.5 / 3**0.5, "n - 1"),
        (2 * 4.303 * 0.02 / 3**0.5, "whole interval"),
        (0.03, "4.303 times"),
    ],
    "seeds_and_windows.remain": [(4, "taken alone"), (1, "0.05 / 3"), (3, "0.05 / 2"), (0, "stop at the first")],
    "reckoning.no_gain": [
        ("undecided", "room for one"), ("does not hold here", "does not count"), ("not tested", "excluded"),
        (1, "one of"),
    ],
    "reckoning.gain_over_what": [
        ("does not hold here", "a table of counts"), ("holds", "look at the baseline"), ("not tested", "three doubts"),
        (1, "one of"),
    ],
    "seeds_and_windows.far_apart": [(0.372, "in nats"), (3.2, "by 0.019")],
    "reckoning.verdict_word": [
        ("holds", "honest loss say"), ("does not hold here", "verdict for that"), ("undecided", "each of them"),
        ("wrong", "one of"),
    ],
    "shuffled_gap.unigram_entropy": [
        (lambda ids, v: entropy_in_numpy(ids.numpy(), v) / math.log(2), "bits"),
        (lambda ids, v: -entropy_in_numpy(ids.numpy(), v), "sign"),
        (lambda ids, v: (lambda p: -(p * p.log()).sum())(torch.bincount(ids, minlength=v) / len(ids)), "0 times"),
        (lambda ids, v: math.log(v), "equally frequent"),
        (lambda ids, v: math.log(6), "it gives"),
        (lambda ids, v: (torch.bincount(ids) / len(ids)).max(), "largest probability"),
        (lambda ids, v: torch.bincount(ids, minlength=v), "one number"),
    ],
    "shuffled_gap.over_confidence": [
        (lambda logits, u: -(logits.log_softmax(-1) @ u).mean(), "shuffled loss"),
        (lambda logits, u: divergence_in_numpy(logits.numpy(), u.numpy()) / math.log(2), "bits"),
        (lambda logits, u: -divergence_in_numpy(logits.numpy(), u.numpy()), "sign"),
        (lambda logits, u: (logits.softmax(-1) * (logits.log_softmax(-1) - u.log())).sum(-1).mean(), "exchanged"),
        (lambda logits, u: 3 * divergence_in_numpy(logits.numpy(), u.numpy()), "sum over"),
        (lambda logits, u: (u * u.log()).sum() - (logits @ u).mean(), "log_softmax"),
        (lambda logits, u: (u * (u.log() - logits.log_softmax(-1))).sum(-1).mean(), "never occurs"),
        (lambda logits, u: 1.0, "the mean of"),
        (lambda logits, u: logits.log_softmax(-1) @ u, "one number"),
    ],
    "shuffled_gap.modest_gap": [(math.log(32), "any order"), (4, "any order")],
    "shuffled_gap.proofs": [
        ({"A", "B", "D"}, "less than 2"), ({"B", "D", "E"}, "proves nothing"), ({"B", "C", "D"}, "not below"),
        ({"D"}, "one is missing"), ({"F"}, "set of letters"), ({1}, "set of letters"),
    ],
    "causality_audit.proof_positions": [
        ({3, 4, 5, 7}, "at or after"), ({5, 7}, "its own"), ({0, 1, 2}, "did not move"), ({3}, "before the first"),
        (3, "set of positions"),
    ],
    "causality_audit.exact_test": [
        (lambda model, ids, cut: bool((model(ids)[0] != model(ids.flip(1))[0]).any()), "before the cut only"),
        (lambda model, ids, cut: (model(ids)[0][:, :cut] - model(ids[:, :cut])[0]).abs().max() > 1e-4, "keep their"),
        (lambda model, ids, cut: (model(ids)[0] != model((ids + 1) % 13)[0])[:, cut:].any(), "before the cut only"),
        (lambda model, ids, cut: False, "it passes"),
        (lambda model, ids, cut: model(ids[:, cut:].zero_()) is None, "ids.clone()"),
    ],
    "causality_audit.without_gradient": [
        (lambda x: x.cumsum(1), "depend on a token after"),
        (lambda x: x.mean(1, keepdim=True).expand_as(x), "its gradient tells"),
        (lambda x: x.sign(), "depend on a token after"),
        (lambda x: x.mean(1), "same shape"),
    ],
    "causality_audit.mended": [
        (circular, "wraps round"),
        (np.convolve, "15 numbers instead of 8"),
        (lambda x, h: padded_in_torch(x, h).roll(1), "sum over s"),
    ],
    "causality_audit.own_model": [("causal", "audit(...) returns"), (True, "audit(...) returns")],
    "audit_your_model.wrapped": [
        (lambda ids: time_first(ids), "on the way in"),
        (lambda ids: time_first(ids.T), "must give logits"),
        (lambda ids: time_first(ids).transpose(0, 1), "must give logits"),
        (lambda ids: time_first(ids.T).transpose(0, 1).softmax(-1), "logits are not"),
        (3, "answer with a function"),
    ],
    "audit_your_model.exit_status": [(0, "doubt"), (1, "leaks"), (2, "nothing was audited"), (7, "cannot tell")],
    "audit_your_model.long_enough": [
        (511, "one token is missing"), (256, "so short"), (1024, "shorter text"), (2, "so short"),
    ],
}  # fmt: skip
