"""Harder cases for the audit: numbers of very different sizes, precisions that change inside, and compositions.

Thresholds on the size of a movement fail on these, one way or the other.
"""
import random

import torch
import torch.nn.functional as F
from leak_zoo import CLEAN, DORMANT, LEAKS, Attend, C, Case, Convolve, Do, Net, V, mask, mixed
from torch import Tensor, nn

from fourierqk.causality.probes import cuts
from fourierqk.causality.procedure import Audit, audit


class Sum(nn.Module):
    """Branches side by side."""

    def __init__(self, *parts: nn.Module) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, x: Tensor) -> Tensor:
        return sum(p(x) for p in self.parts)


class Residual(nn.Module):
    """x + inner(norm(x))."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.norm, self.inner = nn.LayerNorm(C), inner

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(self.norm(x))


class Scaled(nn.Module):
    def __init__(self, inner: nn.Module, factor: float) -> None:
        super().__init__()
        self.inner, self.factor = inner, factor

    def forward(self, x: Tensor) -> Tensor:
        return self.factor * self.inner(x)


class Coarse(nn.Module):
    """The output of a module rounded to bfloat16, its input too where asked."""

    def __init__(self, inner: nn.Module, before: bool) -> None:
        super().__init__()
        self.inner, self.before = inner, before

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x.bfloat16().to(x.dtype) if self.before else x).bfloat16().to(x.dtype)


class Offset(nn.Module):
    """A padded FFT convolution of a signal on an offset of 1e4, which may be taken off again: round-off stays."""

    def __init__(self, inner: Convolve, remove: bool) -> None:
        super().__init__()
        self.inner, self.remove = inner, remove

    def forward(self, x: Tensor) -> Tensor:
        y = self.inner(x + 1e4)
        return y - self.inner(torch.full_like(x, 1e4)) if self.remove else y


class Sink(nn.Module):
    """Token 3 is ten thousand times as loud as the others, and a padded FFT spreads its round-off over the text."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.embed, self.inner, self.head = nn.Embedding(V, C), inner, nn.Linear(C, V)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        x = torch.where((ids == 3)[..., None], 1e4 * x, x)
        return self.head(x + self.inner(x))


def delay(n: int, cast: bool) -> nn.Module:
    """A delay by FFT, whose silence at the start is round-off, which a LayerNorm makes loud."""
    inner = Convolve(n, 2 * n, 1.0, cast)
    inner.k = nn.Parameter(F.one_hot(torch.tensor(5), n)[:, None].expand(n, C).float().clone(), requires_grad=False)
    return nn.Sequential(inner, nn.LayerNorm(C))


def rest(x: Tensor) -> Tensor:
    """Prefix sums as the total less the suffix sum: causal, but with the round-off of all that comes."""
    return x.sum(1, keepdim=True) - x.flip(1).cumsum(1).flip(1) + x


class Padded(nn.Module):
    """A token that nobody may predict gets a logit of -1e15 or so; the other logits read the next token."""

    def __init__(self, fill: float) -> None:
        super().__init__()
        self.now, self.then = nn.Embedding(V, V), nn.Embedding(V, V)
        self.register_buffer("bias", F.one_hot(torch.tensor(3), V) * fill)

    def forward(self, ids: Tensor) -> Tensor:
        z = self.now(ids) + 5 * F.pad(self.then(ids)[:, 1:], (0, 0, 0, 1)) + self.bias
        return z.float()


class Where(nn.Module):
    """Adds the mean over the text where a condition on the signal (B, T, C) holds, the first token elsewhere."""

    def __init__(self, condition) -> None:  # noqa: ANN001
        super().__init__()
        self.condition = condition

    def forward(self, x: Tensor) -> Tensor:
        return x + 0.1 * (x.mean(1, keepdim=True) if self.condition(x) else x[:, :1])


def chunks(x: Tensor, size: int = 256) -> Tensor:
    """Every chunk's last token added to the whole chunk."""
    parts = [p + p[:, -1:] for p in x.split(size, 1)]
    return torch.cat(parts, 1)


def last_few(x: Tensor) -> Tensor:
    """Only the first two outputs hear the last token."""
    return torch.cat([x[:, :2] + x[:, -1:], x[:, 2:]], 1)


HARD_LEAKS = {
    "logit of -1e15": Case(lambda n: Padded(-1e15), "Padded"),
    "logit of -1e6": Case(lambda n: Padded(-1e6), "Padded"),
    "beside 1e10": Case(lambda n: Net(Sum(Convolve(n, 2 * n, 1e10), Convolve(n, n))), "mix.parts.1"),
    "swallowed in float32": Case(lambda n: Net(Sum(Do(lambda x: 1e10 * x), Convolve(n, n))), "mix.parts.1"),
    "mask of -20": Case(lambda n: Net(Attend(bias=lambda n, s: mask(n, s).clamp(min=-20))), "mix"),
    "odd batches": Case(lambda n: Net(Where(lambda x: len(x) % 2)), "mix"),
    "batch of one": Case(lambda n: Net(Where(lambda x: len(x) == 1)), "mix"),
    "maximum over the batch": Case(mixed(lambda x: x / x.abs().max()), "mix"),
    "first two outputs": Case(mixed(last_few), "mix"),
}
HARD_CLEAN = {
    "padded FFT, rounded to bfloat16": Case(lambda n: Net(Coarse(Convolve(n, 2 * n, 1.0, True), False))),
    "padded FFT, bfloat16 in and out": Case(lambda n: Net(Coarse(Convolve(n, 2 * n, 1.0, True), True))),
    "offset": Case(lambda n: Net(Offset(Convolve(n, 2 * n), False))),
    "offset, float32 inside": Case(lambda n: Net(Offset(Convolve(n, 2 * n, 1.0, True), False))),
    "offset taken off": Case(lambda n: Net(Offset(Convolve(n, 2 * n), True))),
    "offset taken off, float32 inside": Case(lambda n: Net(Offset(Convolve(n, 2 * n, 1.0, True), True))),
    "sink": Case(lambda n: Sink(Convolve(n, 2 * n))),
    "sink, float32 inside": Case(lambda n: Sink(Convolve(n, 2 * n, 1.0, True))),
    "normed silence": Case(lambda n: Net(delay(n, False))),
    "normed silence, float32 inside": Case(lambda n: Net(delay(n, True))),
    "total less the rest": Case(mixed(rest)),
    "mask of -1e4": Case(lambda n: Net(Attend(bias=lambda n, s: mask(n, s).clamp(min=-1e4)))),
}

WHOLE = {"trigger ahead", "peek at parity", "strictly earlier tokens"}  # no (B, T, C) mixer inside
BLOCKS = {name: case.make for name, case in {**LEAKS, **DORMANT, **CLEAN}.items() if name not in WHOLE}


def compose(seed: int) -> tuple[nn.Module, int, bool]:
    """A chain, a residual stack or a sum of one to four blocks, some loud -> model, length, whether one leaks."""
    dice = random.Random(seed)
    torch.manual_seed(seed)
    n, leaky = dice.randint(14, 40), dice.random() < 0.5
    names = dice.choices(sorted(set(CLEAN) - WHOLE), k=dice.randint(1, 3))
    if leaky:
        names.insert(dice.randint(0, len(names)), dice.choice(sorted((set(LEAKS) | set(DORMANT)) - WHOLE)))
    blocks = [BLOCKS[name](n).mix for name in names]
    blocks = [Scaled(b, 10 ** dice.uniform(0, 10)) if dice.random() < 0.25 else b for b in blocks]
    shape = dice.choice(["chain", "sum", "residual"])
    if shape == "chain":
        mix = nn.Sequential(*(m for b in blocks for m in (b, nn.LayerNorm(C))))
    else:
        mix = Sum(*blocks) if shape == "sum" else nn.Sequential(*map(Residual, blocks))
    return Net(mix), n, leaky


def hears_the_future(model: nn.Module, n: int, draws: int = 40) -> bool:
    """By brute force: whether any output before a cut is not, bit for bit, what it was with another future."""
    rng = torch.Generator().manual_seed(0)
    for cut in cuts(n):
        x = torch.randint(V, (1, n), generator=rng).repeat(draws, 1)
        y = x.clone()
        y[:, cut:] = torch.randint(V, (draws, n - cut), generator=rng)
        torch.manual_seed(0)
        a = model(x)
        torch.manual_seed(0)
        if not torch.equal(a[:, :cut], model(y)[:, :cut]):
            return True
    return False


SEEDS = (0, 5, 10, 19)  # two lengths in float32, two in float64
LEAKING, CLEAR = {**LEAKS, **HARD_LEAKS}, {**CLEAN, **HARD_CLEAN}
ALL = {**LEAKING, **DORMANT, **CLEAR}
NEEDS_24 = {"narrow Gaussian"}  # in a shorter window its band passes nothing


def judge(name: str, seed: int, dress=lambda model: model) -> Audit:  # noqa: ANN001
    """A case at a length that depends on the seed, in float32 for even and float64 for odd seeds."""
    torch.manual_seed(seed)
    length = 24 + seed if name in NEEDS_24 else 14 + seed
    model = ALL[name].make(length)
    return audit(dress(model.double() if seed % 2 else model), V, length, draws=8, seed=seed)
