"""Specimens are what they are called, the audit tells them apart, and every rival test errs where it is said to."""
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from fourierqk.causality.procedure import audit
from fourierqk.specimens import rivals
from fourierqk.specimens.models import SPECIMENS, Attend, centred, chosen, convolved, mean, peek, specimen, swallowed

each = pytest.mark.parametrize("name", SPECIMENS)


def built(name: str, length: int = 16):
    torch.manual_seed(0)
    return specimen(name, vocab_size=7, length=length)


def texts(length: int = 16) -> torch.Tensor:
    return torch.randint(7, (4, length), generator=torch.Generator().manual_seed(1))


def test_an_unknown_specimen_is_named():
    with pytest.raises(ValueError, match="'mask of -9'.*mask of -10"):
        specimen("mask of -9")


@each
def test_the_audit_tells_them_apart(name):
    found = audit(built(name), 7, 16, draws=6)
    assert found.verdict == ("leaks" if SPECIMENS[name].leaks else "causal")
    assert found.realised is (SPECIMENS[name].leaks and name != "shut gate")
    if found.verdict == "leaks":
        assert found.first_leak in ("blocks.0.mixer", "blocks.0.mixer.other")


@pytest.mark.parametrize("n", [1, 2, 9, 16])
def test_attention_is_pytorchs(n):
    attend, x = Attend(8).double(), torch.randn(3, n, 8, dtype=torch.float64)
    q, k, v = attend.q(x), attend.k(x), attend.v(x)
    assert torch.allclose(attend(x), F.scaled_dot_product_attention(q, k, v, is_causal=True))


@pytest.mark.parametrize("n", [1, 4, 9])
def test_functions_along_time_by_brute_force(n):
    x = torch.randn(2, n, 5, dtype=torch.float64)
    y = x.numpy()
    around = lambda b, t, c: [y[b, s, c] for s in (t - 1, t, t + 1) if 0 <= s < n]  # noqa: E731
    each = [(b, t, c) for b in range(2) for t in range(n) for c in range(5)]
    for pad in (n, n + 1, 2 * n):
        lag = (np.arange(n)[:, None] - np.arange(n)) % pad
        want = np.einsum("ts,bsc->btc", np.where(lag < n, 0.9**lag, 0), y)
        np.testing.assert_allclose(convolved(x, pad), want, atol=1e-12)
    np.testing.assert_allclose(centred(x), np.array([sum(around(*i)) / 3 for i in each]).reshape(2, n, 5), atol=1e-12)
    bit = np.array([t + 1 < n and y[b, t + 1, 0] > 0 for b, t, c in each]).reshape(2, n, 5)
    np.testing.assert_allclose(peek(x), y * bit, atol=1e-12)
    np.testing.assert_allclose(mean(x), y.mean(1, keepdims=True) + 0 * y, atol=1e-12)
    np.testing.assert_allclose(swallowed(x), mean(x), atol=1e-12)
    assert (chosen(x).abs().sum(2) > 0).sum(1).tolist() == [n // 4] * 2


ALARM = {
    rivals.redraw: {"padded FFT", "live dropout"},  # by any movement at all
    rivals.nan_poison: {"causal attention", "log-length scores", "padded FFT"},
    rivals.prefix: {"log-length scores", "live dropout"},
    rivals.gradient: set(),
}
MISS = {
    rivals.redraw: {"shut gate"},
    rivals.gradient: {"peek at a sign", "top-k over the text", "shut gate"},
    rivals.nan_poison: {"peek at a sign", "top-k over the text", "mean without NaNs"},
    rivals.prefix: {"shut gate"},
}


@pytest.mark.parametrize("rival", ALARM, ids=lambda f: f.__name__)
@each
def test_each_rival_errs_where_it_is_known_to(rival, name):
    most = {rivals.redraw: 0, rivals.gradient: 1e-6, rivals.nan_poison: 0, rivals.prefix: 1e-5}[rival]
    model = built(name)
    if rival is rivals.prefix and name == "mask of -10":
        return  # so faint without training that a tolerance hides it or not, by chance
    wrong = MISS[rival] if SPECIMENS[name].leaks else ALARM[rival]
    assert (rival(model, texts()) > most) is (SPECIMENS[name].leaks is (name not in wrong))


def test_rivals_measure_what_they_say():
    """On a model that adds up embeddings: z_t = E x_t + E x_{t+1}, all by hand."""
    model = built("causal attention")
    model.blocks = torch.nn.ModuleList([torch.nn.Module()])
    model.blocks[0].forward = lambda h: h + F.pad(h[:, 1:], (0, 0, 0, 1))
    model.norm = torch.nn.Identity()
    with torch.no_grad():
        model.positions.weight.zero_()
    x, e = texts(), model.tokens.weight.detach()
    gram = e @ e.T
    other = x.roll(0).flip(0)
    last = [(gram[other[:, t]] - gram[x[:, t]]).abs().max() for t in range(1, 16)]
    assert rivals.redraw(model, x) == pytest.approx(max(last).item(), rel=1e-5)
    assert rivals.gradient(model, x) == pytest.approx(1, rel=1e-5)  # tomorrow counts as much as today
    assert rivals.nan_poison(model, x) == pytest.approx(1 / 8)  # one of the eight outputs before the cut
    cut = [gram[x[:, n]].abs().max() for n in (4, 8, 15)]
    assert rivals.prefix(model, x) == pytest.approx(max(cut).item(), rel=1e-5)


def test_rivals_leave_the_model_as_it_was():
    model = built("mean over the text")
    before = model(texts())[0]
    for rival in ALARM:
        rival(model, texts())
    assert torch.equal(model(texts())[0], before) and not model.tokens._forward_hooks
