"""What filters cost, each against the alternative: python benchmarks/filters.py

- the causal convolution of this library against a product with the whole Toeplitz matrix, conv1d and a padded FFT;
- how it grows with the length of the text: the exponent of its time, 1 where it is linear;
- a circular band with the few bins that it passes (this library) against an FFT of all, narrow and wide, by T.

What the filters cost a model is in benchmarks/systems.py.

Contenders are first checked to agree. Then they take turns, so that a busy machine slows all alike; a row shows the
median time of forward and backward, and the median and the quartiles of its ratio to the first row in the same turn.
On a CPU the time is that of the processor, all threads together, so waiting for a free core does not count.
"""
import math
import statistics
import time
from collections.abc import Callable
from functools import partial
from itertools import product

import torch
import torch.nn.functional as F
from torch import Tensor

from fourierqk.filters import Gaussian
from fourierqk.parts import convolve

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
clock = time.perf_counter if DEVICE == "cuda" else time.process_time


def race(title: str, contenders: dict[str, Callable[[], object]], turns: int = 9) -> dict[str, list[float]]:
    """Time all contenders, turn by turn, and print a table of ratios to the first -> their times, seconds."""
    for run in contenders.values():
        run()  # warm up
    times = {name: [] for name in contenders}
    for _ in range(turns):
        for name, run in contenders.items():
            synchronise()
            start = clock()
            run()
            synchronise()
            times[name].append(clock() - start)
    first = next(iter(times.values()))
    print(f"\n{title}")
    for name, mine in times.items():
        low, ratio, high = statistics.quantiles(t / t0 for t, t0 in zip(mine, first, strict=True))
        print(f"  {name:28s} {1e3 * statistics.median(mine):9.2f} ms   x {ratio:.2f} ({low:.2f} to {high:.2f})")
    return times


def synchronise() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def forward_backward(f: Callable[[Tensor], Tensor], x: Tensor) -> Callable[[], None]:
    def run() -> None:
        x.grad = None
        f(x).sum().backward()

    return run


def by_toeplitz(x: Tensor, h: Tensor) -> Tensor:
    """All of the lower-triangular matrix, T x T: what `convolve` does block by block."""
    n = x.shape[-2]
    lags = F.pad(h[:, :n], (n - 1, n - min(n, h.shape[-1]))).flip(-1)
    return lags.unfold(-1, n, 1).flip(-2) @ x


def by_conv1d(x: Tensor, h: Tensor) -> Tensor:
    """Heads as groups, batch and channels as batch."""
    b, heads, n, d = x.shape
    z = F.pad(x.permute(0, 3, 1, 2).reshape(b * d, heads, n), (h.shape[-1] - 1, 0))
    return F.conv1d(z, h.flip(-1)[:, None], groups=heads).view(b, d, heads, n).permute(0, 2, 3, 1)


def by_padded_fft(x: Tensor, h: Tensor) -> Tensor:
    n = x.shape[-2]
    size = n + h.shape[-1]  # room for the tail: linear, not circular
    y = torch.fft.rfft(x, n=size, dim=-2) * torch.fft.rfft(h, n=size)[:, :, None]
    return torch.fft.irfft(y, n=size, dim=-2)[..., :n, :]


def by_fft(band: Gaussian, x: Tensor) -> Tensor:
    """All bins."""
    n = x.shape[-2]
    response = band.response(torch.fft.rfftfreq(n, device=DEVICE))
    return torch.fft.irfft(torch.fft.rfft(x, dim=-2) * response[..., None], n=n, dim=-2)


def check(reference: Callable[[Tensor], Tensor], others: dict[str, Callable[[Tensor], Tensor]], x: Tensor) -> None:
    expected = reference(x)
    for name, f in others.items():
        error = ((f(x) - expected).abs().max() / expected.abs().max()).item()
        if error > 1e-3:
            raise SystemExit(f"{name} disagrees with the first by {error:.1e}: no use in timing it")


def compare(title: str, ways: dict[str, Callable[[Tensor], Tensor]], shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, device=DEVICE, requires_grad=True)
    check(next(iter(ways.values())), ways, x)
    runs = {name: forward_backward(f, x) for name, f in ways.items()}
    race(f"{title}, forward and backward, (B, heads, T, d) = {shape}", runs)


def growth(taps: int, lengths: tuple[int, ...] = (1024, 4096, 16384)) -> None:
    """How the time of a causal convolution grows with the text."""
    kernel = torch.randn(1, 8, taps, device=DEVICE)
    texts = {n: torch.randn(1, 8, n, 32, device=DEVICE, requires_grad=True) for n in lengths}
    runs = {f"T = {n}": forward_backward(lambda x: convolve(x, kernel), x) for n, x in texts.items()}
    times = race(f"Growth of a causal convolution, {taps} taps, forward and backward, (B, heads, d) = (1, 8, 32)", runs)
    shortest, longest = times[f"T = {lengths[0]}"], times[f"T = {lengths[-1]}"]
    exponents = (math.log(b / a, lengths[-1] / lengths[0]) for a, b in zip(shortest, longest, strict=True))
    low, middle, high = statistics.quantiles(exponents)
    print(f"  time grows as T to the power of {middle:.2f} ({low:.2f} to {high:.2f})")


def main() -> None:
    print(f"torch {torch.__version__}, {DEVICE}, {torch.get_num_threads()} threads, float32")
    others = {"whole Toeplitz product": by_toeplitz, "conv1d": by_conv1d, "zero-padded FFT": by_padded_fft}
    for taps, shape in product((2, 4, 5, 16, 128), ((16, 4, 128, 32), (16, 8, 256, 32), (4, 8, 1024, 32))):
        kernel = torch.randn(shape[1], taps, device=DEVICE)
        ways = {"convolve (ours)": lambda x, h: convolve(x, h[None]), **others}
        compare(f"Causal convolution, {taps} taps", {k: partial(f, h=kernel) for k, f in ways.items()}, shape)
    for taps in (4, 128):
        growth(taps)
    for n, width in product((128, 256, 1024, 4096), (0.5, 2, 8)):
        band = Gaussian(4 / 256, width / 256, heads=8, learn=True).to(DEVICE)
        ways = {"circular (ours)": band, "FFT of all bins": partial(by_fft, band)}
        compare(f"Circular band, {width} / 256 cycles per token wide", ways, (16384 // n, 8, n, 32))


if __name__ == "__main__":
    main()
