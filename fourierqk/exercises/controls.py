"""Checkers of the chapter on controls."""
import math

import numpy as np
import torch

from fourierqk.exercises import Numeric, arrays, checker, fits, reply, ruled, vector

__all__ = ["absorb", "delay_angle", "ranks", "surrogate"]


@checker
def absorb(answer) -> str | None:
    """A function (W_o, M) -> the output matrix that does for plain values v what W_o does for M v."""
    w, m = (torch.randn(s, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(s)) for s in (4, 6))
    want = w @ m
    got = fits(reply(answer, w, m), tuple(want.shape), "the new output matrix has the shape of W_o.")
    wrong = {
        "that undoes the map. Asked is the matrix that does for v what W_o does for M v.": w @ torch.linalg.inv(m),
        "transposed: a value is a column here, and M v is M @ v.": w @ m.T,
        "that is W_o itself, which has never heard of M.": w,
    }
    return arrays(got, want, wrong, "the output is W_o (M v) summed over tokens: move the brackets.")


@checker
def ranks(answer) -> str | None:
    """The ranks of the scores of 256 tokens with 32 channels: through 32 x 32 maps, and through one of 20 x 32."""
    got = vector(answer, 2, "ranks, the one with the square matrices first").tolist()
    if got == [20, 32]:
        return "the other way round: the rank with the square matrices comes first."
    if 256 in got:
        return "256 x 256 is the size of the score matrix. Its rank is at most the number of channels that made it."
    if got[0] != 32:
        return "the first is wrong: a random square matrix is invertible, so the 32 channels stay 32."
    if got[1] == 32:
        return "20 directions of 32 are left in queries and keys. What rank has a 256 x 20 times a 20 x 256 matrix?"
    if got[1] != 20:
        return "the second is wrong: count the channels that are left after the projection."


@ruled
def delay_angle() -> Numeric:
    """The angle, in degrees, by which a delay of 3 tokens turns a wave of one cycle in 12 tokens: -90."""
    wrong = {
        90: "right size, wrong sign: a delay turns the arrow back, exp(-2 pi i f s).",
        (math.pi / 2, -math.pi / 2): "that is in radians. Give degrees.",
        (30, -30): "that is a delay of one token.",
        (0.25, -0.25): "that is in turns. Give degrees: a whole turn has 360.",
        (36, -36): "a delay of 3 is not 3 turns of 12 degrees: it is 3/12 of a whole turn."
    }
    otherwise = "3 tokens are a quarter of a cycle of 12. How many degrees has a quarter turn?"
    return Numeric((-90, 270), wrong, otherwise)


@checker
def surrogate(answer) -> str | None:
    """A function (x (n,), angles (n // 2 + 1,)) -> x with each bin but DC and Nyquist turned by its angle."""
    for n in (16, 15):
        rng = torch.Generator().manual_seed(n)
        x = torch.randn(n, dtype=torch.float64, generator=rng) + 1
        angles = 2 * math.pi * torch.rand(n // 2 + 1, dtype=torch.float64, generator=rng)
        z, turned = torch.fft.rfft(x), angles.clone()
        turned[0] = 0
        turned[n // 2 :] *= n % 2  # an odd n has no Nyquist
        got = fits(reply(answer, x, angles), (n,), "as many as went in. Tell irfft the length with n=.")
        if np.iscomplexobj(got):
            return "return a real signal: use rfft and irfft."
        if np.allclose(got, x, atol=1e-4):
            return "that is the signal as it was: multiply its DFT by exp(1j * angles)."
        amplitude = torch.fft.rfft(torch.tensor(got, dtype=torch.float64)).abs()
        if not math.isclose(amplitude[0], z[0].abs(), rel_tol=1e-4):
            return "the amplitude of DC has changed: a real signal needs it real, so leave it as it is."
        if n % 2 == 0 and not math.isclose(amplitude[-1], z[-1].abs(), rel_tol=1e-4):
            return "at even n the last bin is Nyquist. It has no imaginary part in time, so leave it as it is."
        if not torch.allclose(amplitude, z.abs(), atol=1e-4):
            return "the amplitudes have changed: multiply each bin by exp(1j * angle), whose magnitude is 1."
        if np.allclose(got, torch.fft.irfft(z * torch.exp(-1j * turned), n=n), atol=1e-4):
            return "each bin is turned the wrong way: exp(1j * angle), with a plus."
        if not np.allclose(got, torch.fft.irfft(z * torch.exp(1j * turned), n=n), atol=1e-4):
            return f"at n = {n} the amplitudes are right, the phases are not: turn all bins but DC and Nyquist."
