"""A device without float64 (Apple's MPS), imitated: training, measuring and the audit ask it for none."""
import pytest
import torch
from torch import Tensor, nn

from fourierqk import GPTConfig, TrainConfig, audit, build, text, train
from fourierqk.studies import measure


class Single(Tensor):
    """A tensor on a device without float64: what is computed from it is there too, until it is copied to the CPU."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is Tensor.cpu:
            return args[0].as_subclass(Tensor).clone()
        out = super().__torch_function__(func, types, args, kwargs or {})
        made = out if isinstance(out, tuple | list) else (out,)
        if any(isinstance(t, Single) and t.dtype in (torch.float64, torch.complex128) for t in made):
            raise TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64")
        return out

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            copied = self.detach().as_subclass(Tensor).clone().as_subclass(Single)
            memo[id(self)] = on_device(copied, self.requires_grad) if isinstance(self, nn.Parameter) else copied
        return memo[id(self)]


def on_device(t: Tensor, learned: bool, place: type[Tensor] = Single) -> nn.Parameter:
    return nn.Parameter(t.detach().as_subclass(place), learned)


def moved(model: nn.Module, place: type[Tensor] = Single) -> nn.Module:
    known: dict[int, nn.Parameter] = {}  # tied weights stay tied
    for m in model.modules():
        for name, p in m._parameters.items():
            if p is not None:
                m._parameters[name] = known.setdefault(id(p), on_device(p, p.requires_grad, place))
        for name, b in m._buffers.items():
            if b is not None:
                m._buffers[name] = b.as_subclass(place)
    return model


@pytest.mark.parametrize("system", ["fourier-qk", "causal-morlet"])
def test_a_device_without_float64_trains_and_is_measured(tmp_path, monkeypatch, one_thread, system):
    monkeypatch.setattr(nn.Module, "cpu", lambda model: moved(model, Tensor))
    (tmp_path / "text.txt").write_text("to be, or not to be: that is the question.\n" * 60)
    corpus = text(tmp_path / "text.txt")
    model = moved(build(system, GPTConfig(len(corpus.vocab), block_size=16, n_layer=1, n_head=2, n_embd=16)))
    with pytest.raises(TypeError, match="MPS"):
        model.tokens.weight.double()
    assert isinstance(model(corpus.val[None, :4])[0], Single)
    history = train(model, corpus, TrainConfig(steps=2, batch=2, eval_windows=4, device="cpu"), out=tmp_path / "run")
    assert measure(model, corpus, history)["losses"]["honest"]["mean"] > 0


class Rounds(nn.Module):
    """Causal, by a zero-padded transform whose round-off moves the past: it has to be told from a dependence."""

    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(7, 8), nn.Linear(8, 7)

    def forward(self, ids):
        x = torch.fft.rfft(self.embed(ids), n=2 * ids.shape[1], dim=1)
        past = torch.fft.rfft(torch.ones(ids.shape[1]), n=2 * ids.shape[1])
        return self.head(torch.fft.irfft(x * past[:, None], n=2 * ids.shape[1], dim=1)[:, : ids.shape[1]])


def test_round_off_is_judged_on_the_cpu(monkeypatch, one_thread):
    monkeypatch.setattr(nn.Module, "cpu", lambda model: moved(model, Tensor))
    torch.manual_seed(0)
    found = audit(moved(Rounds()), 7, 12, draws=4)
    assert (found.verdict, found.rel > 0) == ("causal", True)
