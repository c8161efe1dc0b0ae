"""The spectrum of a text: how strongly its tokens keep each rhythm, whatever numbers they go by.

A token is a name, not an amplitude. So a text is as many signals as it has different tokens, the indicator of each: 1
where it stands, 0 elsewhere (one-hot; Voss 1992). Their power spectra add up to that of the text. Tokens drawn
independently of each other, with probabilities p, have sum p (1 - p) at every frequency: the unit of `relative`.
"""
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from fourierqk.checks import unknown_name
from fourierqk.records import folder
from fourierqk.storage import read_json

__all__ = ["Peak", "Spectrum", "recorded_spectra", "text_spectrum"]

CELLS = 2**22  # of the one-hot matrix that are held at once: 32 MB


@dataclass(frozen=True)
class Peak:
    """A maximum that stands out: its period in tokens per cycle, and its power over the median around it."""

    period: float
    ratio: float


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Power of a text at the frequencies k / n, k = 0 .. n // 2, in cycles per token.

    Over the whole circle, negative frequencies included, the mean power is the variance of the indicators, summed.
    """

    n: int  # tokens a window
    windows: int
    flat: float  # power of the same tokens in random order, at every frequency
    power: Tensor  # (n // 2 + 1,) float64, mean over windows
    se: Tensor  # (n // 2 + 1,) standard error of that mean; infinite for one window

    @property
    def freq(self) -> Tensor:
        """(n // 2 + 1,) float64, cycles per token."""
        return torch.fft.rfftfreq(self.n, dtype=torch.float64)

    @property
    def relative(self) -> Tensor:
        """Power in units of `flat`: above 1 the rhythm is stronger than chance makes it, below 1 it is avoided."""
        return self.power / self.flat

    def at(self, period: float) -> tuple[float, float]:
        """Relative power, and its standard error, in the bin nearest to a period in tokens per cycle (2 to n)."""
        if not 2 <= period <= self.n:
            raise ValueError(f"windows of {self.n} tokens show periods of 2 to {self.n} tokens, not {period:g}")
        k = round(self.n / period)
        return self.relative[k].item(), self.se[k].item() / self.flat

    def peaks(self, ratio: float = 1.1) -> list[Peak]:
        """The maxima that stand out, longest period first.

        A bin counts if nothing within a factor of 1.4 in frequency is stronger, it has at least `ratio` times the
        median power there, and more than chance would make of it (4 standard errors). The first bins are left out: a
        text drifts, and they have no lower side to stand out from.
        """
        found = []
        for k in range(4, len(self.power)):
            near = self.power[math.ceil(k / 1.4) : math.floor(k * 1.4) + 1]
            usual = near.median()
            if self.power[k] == near.max() and self.power[k] > torch.maximum(ratio * usual, usual + 4 * self.se[k]):
                found.append(Peak(self.n / k, (self.power[k] / usual).item() if usual > 0 else math.inf))
        return found


def text_spectrum(ids: Tensor, n: int = 1024) -> Spectrum:
    """The spectrum of token ids (N,): Welch's average over Hann windows of n tokens that overlap by half.

    Of each indicator the mean over the whole text is taken away first. Only tokens that occur in a window need a
    transform there, so the cost depends on the variety of a window, not on the size of the vocabulary. ValueError
    for anything but whole-number ids (N,), a text shorter than a window, and one that never changes.
    """
    ids = torch.as_tensor(ids)
    if ids.ndim != 1 or ids.is_floating_point() or ids.is_complex():
        raise ValueError(f"a text is a list of whole-number ids, of shape (N,), not {ids.dtype} {tuple(ids.shape)}")
    if not 4 <= n <= len(ids):
        raise ValueError(f"windows of n = {n} tokens do not fit a text of {len(ids)}: n must be 4 to {len(ids)}")
    _, ids, counts = ids.unique(return_inverse=True, return_counts=True)
    if len(counts) == 1:
        raise ValueError(f"all {len(ids)} tokens are the same: nothing in this text changes")
    p = counts.double() / len(ids)
    chance = (p * p).sum().item()
    w = torch.hann_window(n, periodic=True, dtype=torch.float64)
    W = torch.fft.rfft(w)
    powers = []
    for x in ids.unfold(0, n, n // 2):
        # sum over v of |X_v - p_v W|^2, where X_v is 0 unless v occurs: the cross terms are one transform for all v
        cross = (W.conj() * torch.fft.rfft(w * p[x])).real
        powers.append(_indicators(x, w) - 2 * cross + chance * W.abs().square())
    power = torch.stack(powers).clamp(min=0) / w.square().sum()  # (windows, n // 2 + 1)
    se = power.std(0) / math.sqrt(len(power)) if len(power) > 1 else torch.full_like(power[0], math.inf)
    return Spectrum(n, len(power), 1 - chance, power.mean(0), se)


def _indicators(x: Tensor, w: Tensor) -> Tensor:
    """Sum over the different tokens of a window of |DFT of the indicator times w|^2."""
    present, row = x.unique(return_inverse=True)
    step, total = max(1, CELLS // len(x)), w.new_zeros(len(x) // 2 + 1)
    for first in range(0, len(present), step):
        hot = w.new_zeros(min(step, len(present) - first), len(x))
        mine = (first <= row) & (row < first + step)
        hot[row[mine] - first, mine.nonzero()[:, 0]] = w[mine]
        total = total + torch.fft.rfft(hot).abs().square().sum(0)
    return total


def recorded_spectra(name: str) -> dict[str, Spectrum]:
    """Spectra of a text that this repository does not hold, by what they are of, as tools/spectra.py recorded them.

    FileNotFoundError lists the records that exist.
    """
    file = folder("spectra") / f"{name}.json"
    if not file.is_file():
        known = sorted(p.stem for p in file.parent.glob("*.json"))
        raise FileNotFoundError(unknown_name("spectra", name, known))
    spectra = read_json(file)["spectra"]
    tensors = {of: {k: torch.tensor(s[k], dtype=torch.float64) for k in ("power", "se")} for of, s in spectra.items()}
    return {of: Spectrum(**s | tensors[of]) for of, s in spectra.items()}
