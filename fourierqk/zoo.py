"""The paper's names -> models and filters. Every gain is stated here.

All filters sit inside `Unit(gain=1)`: they leave the variance of white queries and keys as it was, so that no system
starts with louder scores than dot-product attention. Frequencies of the paper's bins are bins of T = 256.
"""
import difflib
from collections.abc import Callable
from dataclasses import dataclass

from fourierqk.filters import AllPass, Bank, Filter, Gaussian, Morlet, RandomBands, SlidingDFT, Unit, bins, period
from fourierqk.model import GPT, GPTConfig

__all__ = ["SYSTEMS", "System", "build", "system"]


@dataclass(frozen=True)
class System:
    """One system of the paper: its name, what it is in a line, and how to make its filter for a model."""

    name: str
    summary: str
    filter: Callable[[GPTConfig], Filter]


def _fourier(cfg: GPTConfig) -> Filter:
    return Gaussian(bins(4, 256), bins(2, 256), heads=cfg.n_head, learn=True)


def _multifourier(cfg: GPTConfig) -> Filter:
    bands = (Gaussian(period(p), bins(2, 256), heads=cfg.n_head, learn=True) for p in (50, 26, 10, 5))
    return Bank(*bands)


def _sliding(cfg: GPTConfig) -> Filter:
    return SlidingDFT(_fourier(cfg), window=128)


def _morlet(cfg: GPTConfig) -> Filter:
    """The fixed scales of the paper, 2, 4, 8, 16, 32 tokens, dealt out to the heads in turn."""
    return Morlet([2.0 ** (1 + h % 5) for h in range(cfg.n_head)], taps=128)


_ALL = (
    System("base-dot", "S1: causal dot-product attention, no filter", lambda cfg: AllPass()),
    System("random-qk", "S2: random two-sided bands, never learned", lambda cfg: Unit(RandomBands(cfg.n_head, seed=0))),
    System("fourier-qk", "S3: one two-sided band, its frequency learned per head", lambda cfg: Unit(_fourier(cfg))),
    System("multifourier-qk", "S4: four two-sided bands, learned per head", lambda cfg: Unit(_multifourier(cfg))),
    System("sliding-fourier-qk", "S9c: the band in a DFT of the last 128 tokens", lambda cfg: Unit(_sliding(cfg))),
    System("causal-morlet", "S7: one-sided Morlets, scales 2 to 32 tokens, 128 taps", lambda cfg: Unit(_morlet(cfg))),
)
SYSTEMS: dict[str, System] = {s.name: s for s in _ALL}


def system(name: str) -> System:
    """Look a system up by name; ValueError names the nearest ones."""
    if name not in SYSTEMS:
        near = difflib.get_close_matches(name, SYSTEMS, n=2) or SYSTEMS
        raise ValueError(f"unknown system {name!r}: did you mean {' or '.join(near)}? `fourierqk systems` lists all")
    return SYSTEMS[name]


def build(name: str, cfg: GPTConfig) -> GPT:
    """The model of a system, freshly initialised from torch's global generator."""
    return GPT(cfg, system(name).filter(cfg))
