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
from fourierqk.combinators import Analytic, Bank, Causal, Padded, PhaseRandomised, SlidingDFT, Sum, Unit
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
from fourierqk.model import GPT, FNet, GPTConfig, LanguageModel

__all__ = ["SYSTEMS", "VARIANTS", "System", "build", "system"]

PERIODS = (50, 26, 10, 5)  # tokens: where the paper starts its four frequencies, from paragraph to word
SEED = 0  # of all that is drawn once: bands, phases, rotations, projections; the same in every layer


@dataclass(frozen=True)
class System:
    """One system of the paper: its name, what the audit finds, what it is in a line, and its filter.

    verdict: "causal" or "leaks". filter: makes what queries and keys of a model pass through; None for fnet, the one
    system that has neither.
    """

    name: str
    verdict: str
    summary: str
    filter: Callable[[GPTConfig], FeatureMap] | None


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


def _rotation(cfg: GPTConfig) -> FeatureMap:
    return RandomRotation(cfg.n_embd // cfg.n_head, heads=cfg.n_head, seed=SEED)


def _projection(cfg: GPTConfig) -> FeatureMap:
    d = cfg.n_embd // cfg.n_head
    return RandomProjection(d, rank=max(1, d // 2), heads=cfg.n_head, seed=SEED)


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
           _unit(lambda c: SlidingDFT(_fourier(c), window=128))),
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


def system(name: str) -> System:
    """Look a system or a variant of one up by name; ValueError names the nearest ones."""
    known = SYSTEMS | VARIANTS
    if name not in known:
        raise ValueError(unknown_name("system", name, known))
    return known[name]


def build(name: str, cfg: GPTConfig) -> LanguageModel:
    """The model of a system, freshly initialised from torch's global generator."""
    filter = system(name).filter
    return FNet(cfg) if filter is None else GPT(cfg, filter(cfg))
