"""What filters cost, each against the alternative: python benchmarks/filters.py

- the causal convolution of this library (a Toeplitz product) against conv1d and a zero-padded FFT;
- a circular band by FFT (this library) against a thin transform, a product with the few bins that the band passes;
- a training step of each system against base-dot.

Contenders are first checked to agree. Then they take turns, so that a busy machine slows all alike; a row shows the
median time of forward and backward, and the median of its ratio to the first row in the same turn.
"""
import math
import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from fourierqk.filters import Gaussian, Morlet
from fourierqk.parts import convolve
from fourierqk.training import PRESETS
from fourierqk.zoo import SYSTEMS, build

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def race(title: str, contenders: dict[str, Callable[[], object]], turns: int = 7) -> None:
    """Time all contenders, turn by turn, and print a table of ratios to the first."""
    for run in contenders.values():
        run()  # warm up
    times = {name: [] for name in contenders}
    for _ in range(turns):
        for name, run in contenders.items():
            synchronise()
            start = time.perf_counter()
            run()
            synchronise()
            times[name].append(time.perf_counter() - start)
    first = next(iter(times.values()))
    print(f"\n{title}")
    for name, mine in times.items():
        ratio = statistics.median(t / t0 for t, t0 in zip(mine, first, strict=True))
        print(f"  {name:28s} {1e3 * statistics.median(mine):9.2f} ms   x {ratio:.2f}")


def synchronise() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def forward_backward(f: Callable[[Tensor], Tensor], x: Tensor) -> Callable[[], None]:
    def run() -> None:
        x.grad = None
        f(x).sum().backward()

    return run


def by_conv1d(x: Tensor, kernel: Tensor) -> Tensor:
    """Heads as groups, batch and channels as batch."""
    b, heads, n, d = x.shape
    z = F.pad(x.permute(0, 3, 1, 2).reshape(b * d, heads, n), (kernel.shape[-1] - 1, 0))
    return F.conv1d(z, kernel.flip(-1)[:, None], groups=heads).view(b, d, heads, n).permute(0, 2, 3, 1)


def by_padded_fft(x: Tensor, kernel: Tensor) -> Tensor:
    n = x.shape[-2]
    size = n + kernel.shape[-1]  # room for the tail: linear, not circular
    y = torch.fft.rfft(x, n=size, dim=-2) * torch.fft.rfft(kernel, n=size)[:, :, None]
    return torch.fft.irfft(y, n=size, dim=-2)[..., :n, :]


def thin(band: Gaussian, n: int) -> Callable[[Tensor], Tensor]:
    """The same band on the m bins where any head passes more than 1e-4: cosines and sines, (n, 2 m)."""
    weights = band.response(torch.fft.rfftfreq(n, device=DEVICE)).detach()
    k = (weights > 1e-4).any(0).nonzero()[:, 0]
    turn = 2 * math.pi * torch.arange(n, device=DEVICE)[:, None] * k / n
    count = torch.where((k == 0) | (2 * k == n), 1.0, 2.0)  # DC and Nyquist have no mirror image
    waves = torch.cat([turn.cos(), turn.sin()], 1)
    scale = (weights[:, k] * count / n).repeat(1, 2)[..., None]  # (heads, 2 m, 1)
    return lambda x: waves @ (scale * (waves.T @ x))


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


def training_step(name: str, preset: str, batch: int) -> Callable[[], None]:
    torch.manual_seed(0)
    cfg = PRESETS[preset].gpt(vocab_size=65)
    model = build(name, cfg).to(DEVICE)
    optimiser = torch.optim.AdamW(model.parameters())
    ids = torch.randint(65, (batch, cfg.block_size), device=DEVICE)

    def run() -> None:
        optimiser.zero_grad()
        model(ids, ids)[1].backward()
        optimiser.step()

    return run


def main() -> None:
    print(f"torch {torch.__version__}, {DEVICE}, {torch.get_num_threads()} threads, float32")
    for shape in ((16, 4, 128, 16), (16, 8, 256, 32), (4, 8, 1024, 32)):
        kernel = Morlet([8.0] * shape[1], taps=128).to(DEVICE).kernel().real.detach()
        ways = {"Toeplitz product (ours)": convolve, "conv1d": by_conv1d, "zero-padded FFT": by_padded_fft}
        compare("Causal convolution, 128 taps", {k: lambda x, f=f, h=kernel: f(x, h) for k, f in ways.items()}, shape)
    for shape in ((16, 4, 128, 16), (16, 8, 256, 32)):
        band = Gaussian(4 / 256, 2 / 256, heads=shape[1]).to(DEVICE)
        compare("Circular band", {"FFT (ours)": band, "thin transform": thin(band, shape[2])}, shape)
    for preset in ("tiny", "small"):
        steps = {name: training_step(name, preset, batch=16) for name in SYSTEMS}
        race(f"Training step, preset {preset}, batch 16", steps)


if __name__ == "__main__":
    main()
