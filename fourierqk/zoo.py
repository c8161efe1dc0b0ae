"""The paper's names -> models and filters. Every gain is stated here.

All filters along time sit inside `Unit(gain=1)`: they leave the variance of white queries and keys as it was, so that
no system starts with larger scores than dot-product attention. A band narrower than a bin of the text (gauss-narrow,
where T is below 256) has a larger or a smaller gain, as its centre falls on a bin or between two. Maps of the channels
keep the variance of the scores, and fnet's DFT has norm 1.

Frequencies of the paper's bins are bins of T = 256. Causal kernels have 128 taps where nothing else is said, lag 0 is
the current token. Heads start alike unless the scales, 2, 4, 8, 16, 32 tokens, are dealt out to them in turn.
"""
from collections.abc import Callable
from dataclasses import dataclass

from fourierqk.channels import ChannelCollapse, RandomProjection, RandomRotation
from fourierqk.checks import unknown_name
from fourierqk.combinators import Analytic, Bank, Causal, Padded, PhaseRandomised, Residual, SlidingDFT, Sum, Unit
from fourierqk.filters import (
    AllPass,
    CausalGaussian,
    CausalMexicanHat,
    FeatureMap,
    Filter,
    Gaussian,
    MexicanHat,
    Morlet,
    MorletCorrelation,
    RandomBands,
    Tone,
    bins,
    period,
)  # fmt: skip
from fourierqk.model import GPT, FNet, GPTConfig, LanguageModel, check_shape
from fourierqk.neighbours import Dealt, Resonator, Separate, ShortConvolution, Taps, TokenShift
from fourierqk.prefix import PrefixFilter
from fourierqk.rotary import Rotary

__all__ = ["ENTRANTS", "SYSTEMS", "VARIANTS", "System", "build", "system"]

PERIODS = (50, 26, 10, 5)  # tokens: where the paper starts its four frequencies, from paragraph to word
SEED = 0  # of all that is drawn once: bands, phases, rotations, projections; the same in every layer


@dataclass(frozen=True)
class System:
    """One system of the paper: its name, what the audit finds, what it is in a line, and its filter.

    verdict: "causal" or "leaks". filter: makes what queries and keys of a model pass through; None for fnet, the one
    system that has neither. on: which projections pass through it. rotary: whether queries and keys are turned by their
    positions, which have no learned embedding then.
    """

    name: str
    verdict: str
    summary: str
    filter: Callable[[GPTConfig], FeatureMap] | None
    on: str = "qk"
    rotary: bool = False


def _fourier(cfg: GPTConfig, width: float = 2, tokens: float = 64) -> Filter:
    """The paper's selector: at first at `tokens` a cycle (bin 4), `width` bins wide."""
    return Gaussian(period(tokens), bins(width, 256), heads=cfg.n_head, learn=True)


def _past(taps: int) -> Filter:
    """What the selector hears of the past at first, so many taps of it; the same for all heads."""
    return Causal(Gaussian(period(64), bins(2, 256)), taps)


def _four(cfg: GPTConfig) -> list[Filter]:
    return [Gaussian(period(p), bins(2, 256), heads=cfg.n_head, learn=True) for p in PERIODS]


def _hats(cfg: GPTConfig) -> Filter:
    return Bank(*(MexicanHat(period(p), heads=cfg.n_head, learn=True) for p in PERIODS))


def _scales(cfg: GPTConfig) -> list[float]:
    return [2.0 ** (1 + h % 5) for h in range(cfg.n_head)]


def _channels(cfg: GPTConfig) -> FeatureMap:
    """The paper's selector along the channels: bin 4, 2 bins wide, of the 32 channels of the paper's heads."""
    return ChannelCollapse(Gaussian(bins(4, 32), bins(2, 32), heads=cfg.n_head, learn=True))


def _phases(cfg: GPTConfig) -> Filter:
    return PhaseRandomised(Unit(_fourier(cfg)), heads=cfg.n_head, seed=SEED)


def _width(cfg: GPTConfig) -> int:
    """The channels of a head."""
    return cfg.n_embd // cfg.n_head


def _rotation(cfg: GPTConfig) -> FeatureMap:
    return RandomRotation(_width(cfg), heads=cfg.n_head, seed=SEED)


def _projection(cfg: GPTConfig) -> FeatureMap:
    return RandomProjection(_width(cfg), rank=max(1, _width(cfg) // 2), heads=cfg.n_head, seed=SEED)


def _sliding(cfg: GPTConfig) -> Filter:
    """The paper's band, heard in the last 128 tokens."""
    return Unit(SlidingDFT(_fourier(cfg), window=128))


def _short(cfg: GPTConfig, taps: int = 4) -> FeatureMap:
    """Queries, keys and values each have their own."""
    return Separate(ShortConvolution(_width(cfg), taps, cfg.n_head), copies=3)


def _dealt(cfg: GPTConfig) -> FeatureMap:
    """A quarter of the channels keeps the token, the others hear the paper's rhythms from sentence to word."""
    rhythms = (Gaussian(period(p), bins(2, 256), heads=cfg.n_head, learn=True) for p in PERIODS[1:])
    return Dealt(AllPass(), *(Unit(SlidingDFT(band, window=128)) for band in rhythms))


def _resonant(cfg: GPTConfig) -> FeatureMap:
    """Four free taps, and beside them a rhythm a head that starts small."""
    rhythms = [period(PERIODS[h % len(PERIODS)]) for h in range(cfg.n_head)]
    both = Sum(Taps((1.0, 0.0, 0.0, 0.0), cfg.n_head), Resonator(rhythms, decay=16.0, gain=0.1, heads=cfg.n_head))
    return Separate(both, copies=3)


def _unit(filter: Callable[[GPTConfig], Filter]) -> Callable[[GPTConfig], Filter]:
    """The filter with gain 1."""
    return lambda cfg: Unit(filter(cfg))


_ALL = (
    System("base-dot", "causal", "S1: causal dot-product attention, no filter",
           lambda c: AllPass()),
    System("random-qk", "leaks", "S2: random two-sided bands, never learned",
           _unit(lambda c: RandomBands(c.n_head, SEED))),
    System("fourier-qk", "leaks", "S3: one two-sided band, its frequency learned per head",
           _unit(_fourier)),
    System("multifourier-qk", "leaks", "S4: four two-sided bands, learned per head",
           _unit(lambda c: Bank(*_four(c)))),
    System("multifourier-summed", "leaks", "S4 with the four responses summed to one filter: cross terms",
           _unit(lambda c: Sum(*_four(c)))),
    System("causal-gaussian", "causal", "S5: one-sided bells, scales 2 to 32 tokens, 128 taps",
           _unit(lambda c: CausalGaussian(_scales(c), taps=128))),
    System("causal-mexican-hat", "causal", "S6: one-sided Mexican hats, scales 2 to 32 tokens, 128 taps",
           _unit(lambda c: CausalMexicanHat(_scales(c), taps=128))),
    System("causal-morlet", "causal", "S7: one-sided Morlets, scales 2 to 32 tokens, 128 taps",
           _unit(lambda c: Morlet(_scales(c), taps=128))),
    System("causal-morlet-learned", "causal", "S7: one-sided Morlets, learned per head from a scale of 8 tokens",
           _unit(lambda c: Morlet([8.0] * c.n_head, taps=128, learn=True))),
    System("causal-morlet-identity", "causal", "S7 beside the plain queries and keys: the mean of both scores",
           _unit(lambda c: Bank(AllPass(), Unit(Morlet(_scales(c), taps=128))))),
    System("morlet-correlation", "leaks", "S8: whole Morlets, kernel even in the lag, scales 2 to 32 tokens",
           _unit(lambda c: MorletCorrelation(_scales(c)))),
    System("collapse-real", "leaks", "S9a: frequencies collapsed to one value a token: fourier-qk again",
           _unit(_fourier)),
    System("collapse-analytic", "leaks", "S9a with the Hilbert pair: a complex value a token",
           _unit(lambda c: Analytic(_fourier(c)))),
    System("collapse-channels", "causal", "S9b: a DFT over channels collapsed to a scalar a token: scores of rank 1",
           _channels),
    System("sliding-fourier-qk", "causal", "S9c: the band in a DFT of the last 128 tokens",
           _sliding),
    System("phase-randomised", "leaks", "S10: the amplitudes of fourier-qk with random phases, anew each step",
           _phases),
    System("random-rotation", "causal", "S11: channels rotated at random, alike in q and k: base-dot by algebra",
           _rotation),
    System("random-projection", "causal", "S12: channels projected at random on half as many directions",
           _projection),
    System("fnet", "leaks", "S13: a DFT over time and channels for attention, no queries and keys",
           None),
    System("dc", "causal", "the mean of all tokens alone: uniform attention by algebra, so causal",
           _unit(lambda c: Tone(0))),
    System("nyquist", "leaks", "the highest bin alone, 2 tokens a cycle",
           _unit(lambda c: Tone(0.5))),
    System("gauss-narrow", "leaks", "fourier-qk, half a bin wide instead of two",
           _unit(lambda c: _fourier(c, 0.5))),
    System("gauss-wide", "leaks", "fourier-qk, 16 bins wide instead of two",
           _unit(lambda c: _fourier(c, 16))),
    System("mexican-hat-bank", "leaks", "four two-sided Mexican hats, learned per head",
           _unit(_hats)),
)  # fmt: skip
SYSTEMS: dict[str, System] = {s.name: s for s in _ALL}

# Systems with one thing changed, for studies that ask what it does. Whatever takes a name takes these too.
_VARIED = (
    System("fourier-qk-sigma1", "leaks", "fourier-qk, one bin wide instead of two",
           _unit(lambda c: _fourier(c, 1))),
    System("fourier-qk-padded", "leaks", "fourier-qk on zero-padded text: look-ahead without wrap-round",
           lambda cfg: Padded(Unit(_fourier(cfg)))),
    System("fourier-qk-from26", "leaks", "fourier-qk, started at 26 tokens a cycle instead of 64",
           _unit(lambda c: _fourier(c, tokens=26))),
    System("fourier-qk-from10", "leaks", "fourier-qk, started at 10 tokens a cycle instead of 64",
           _unit(lambda c: _fourier(c, tokens=10))),
    System("fourier-qk-past128", "causal", "the past half of fourier-qk's band, not learned, 128 taps",
           _unit(lambda c: _past(128))),
    System("fourier-qk-past16", "causal", "the past half of fourier-qk's band, not learned, 16 taps",
           _unit(lambda c: _past(16))),
    System("fourier-qk-past2", "causal", "the past half of fourier-qk's band, not learned, 2 taps",
           _unit(lambda c: _past(2))),
    System("causal-morlet-min4", "causal", "causal-morlet, scales of 2 tokens, which alias, replaced by 4",
           _unit(lambda c: Morlet([max(4.0, scale) for scale in _scales(c)], taps=128))),
    System("causal-morlet-scale2", "causal", "causal-morlet, all scales 2 tokens: all of them aliased",
           _unit(lambda c: Morlet(2.0, taps=128))),
    System("causal-morlet-scale4", "causal", "causal-morlet, all scales 4 tokens: none of them aliased",
           _unit(lambda c: Morlet(4.0, taps=128))),
)  # fmt: skip
VARIANTS: dict[str, System] = {s.name: s for s in _VARIED}

# What is raced for an honest gain: the field's own methods, causal readings of the paper's, each also with rotary
# positions. None of them hears the future.
_RACED = (
    System("base-rope", "causal", "base-dot with rotary positions",
           lambda c: AllPass(), rotary=True),
    System("one-tap", "causal", "a learned gain a channel on q, k, v: short-conv without a neighbour",
           lambda c: _short(c, taps=1), on="qkv"),
    System("short-conv", "causal", "four taps a channel on q, k, v, residual (Canon)",
           _short, on="qkv"),
    System("short-conv-rope", "causal", "short-conv with rotary positions",
           _short, on="qkv", rotary=True),
    System("token-shift", "causal", "half of the channels of k, v a token late (RWKV)",
           lambda c: TokenShift(), on="kv"),
    System("token-shift-rope", "causal", "token-shift with rotary positions",
           lambda c: TokenShift(), on="kv", rotary=True),
    System("kv-shift", "causal", "two taps a head on k, and two on v (KV shift)",
           lambda c: Separate(Taps((1.0, 0.0), c.n_head), copies=2), on="kv"),
    System("kv-shift-rope", "causal", "kv-shift with rotary positions",
           lambda c: Separate(Taps((1.0, 0.0), c.n_head), copies=2), on="kv", rotary=True),
    System("late-key", "causal", "two taps a head on k alone (smeared keys)",
           lambda c: Taps((1.0, 0.0), c.n_head), on="k"),
    System("late-fourier", "causal", "k beside its band of the last 128 tokens, q plain",
           lambda c: Residual(_sliding(c)), on="k"),
    System("late-fourier-rope", "causal", "late-fourier with rotary positions",
           lambda c: Residual(_sliding(c)), on="k", rotary=True),
    System("prefix-fourier-qk", "causal", "the paper's two-sided band, run on what has been read",
           lambda c: PrefixFilter(Unit(_fourier(c)))),
    System("prefix-fourier-rope", "causal", "prefix-fourier-qk, of queries and keys in rotary positions",
           lambda c: PrefixFilter(Unit(_fourier(c))), rotary=True),
    System("dealt-fourier", "causal", "a quarter of the channels plain, three bands dealt to the others",
           _dealt),
    System("dealt-fourier-rope", "causal", "dealt-fourier with rotary positions",
           _dealt, rotary=True),
    System("taps-resonator", "causal", "four free taps and a damped rhythm a head, on q, k, v",
           _resonant, on="qkv"),
    System("taps-resonator-rope", "causal", "taps-resonator with rotary positions",
           _resonant, on="qkv", rotary=True),
    System("sliding-fourier-rope", "causal", "sliding-fourier-qk with rotary positions",
           _sliding, rotary=True),
    System("causal-morlet-rope", "causal", "causal-morlet with rotary positions",
           _unit(lambda c: Morlet(_scales(c), taps=128)), rotary=True),
    System("sliding-random-qk", "causal", "the bands of random-qk in a DFT of the last 128 tokens",
           _unit(lambda c: SlidingDFT(RandomBands(c.n_head, SEED), window=128))),
    System("sliding-multifourier-qk", "causal", "multifourier-qk in a DFT of the last 128 tokens",
           _unit(lambda c: SlidingDFT(Bank(*_four(c)), window=128))),
)  # fmt: skip
ENTRANTS: dict[str, System] = {s.name: s for s in _RACED}


def system(name: str) -> System:
    """Look a system, a variant of one or an entrant up by name; ValueError names the nearest ones."""
    known = SYSTEMS | VARIANTS | ENTRANTS
    if name not in known:
        raise ValueError(unknown_name("system", name, known))
    return known[name]


def build(name: str, cfg: GPTConfig) -> LanguageModel:
    """The model of a system, freshly initialised from torch's global generator."""
    if not isinstance(name, str):
        given = type(name).__name__
        raise ValueError(f'build("base-dot", cfg) takes a name, then a shape: the first given is a {given}')
    s = system(name)
    check_shape(cfg)
    if s.filter is None:
        return FNet(cfg)
    return GPT(cfg, s.filter(cfg), s.on, Rotary(_width(cfg)) if s.rotary else None)
