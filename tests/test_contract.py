"""A filter of one's own: what is wrong with it is said before anything is trained, and so is what to write."""
import inspect

import pytest
import torch
from torch import Tensor, nn

from fourierqk import GPT, CausalFilter, CircularFilter, Gaussian, GPTConfig, Unit
from fourierqk.channels import RandomRotation
from fourierqk.combinators import Analytic, Bank, Causal, PhaseRandomised, Residual, SlidingDFT, Sum, shelf
from fourierqk.contract import check_map
from fourierqk.filters import FeatureMap, Filter

CFG = GPTConfig(20, 16, n_layer=1, n_head=2, n_embd=16)


def answering(answer, parent=CircularFilter):
    """A filter whose response (or kernel) is what a function makes of the frequencies."""

    class Own(parent):
        def response(self, f: Tensor) -> object:
            return answer(f)

        def kernel(self) -> object:
            return answer(torch.arange(4.0))

    if parent is CausalFilter:
        del Own.response
    return Own()


class Overriding(CausalFilter):
    def kernel(self):
        return torch.ones(1, 2)

    def forward(self, x):
        return 2 * super().forward(x)


class Misspelt(CircularFilter):
    def respones(self, f: Tensor) -> Tensor:
        return torch.ones_like(f)[None]


class Empty(CausalFilter):
    pass


class Forgetful(CircularFilter):
    def __init__(self) -> None:
        self.sharp = 3

    def response(self, f: Tensor) -> Tensor:
        return torch.ones_like(f)[None]


class ModuleOnly(Forgetful):
    def __init__(self) -> None:
        nn.Module.__init__(self)


class ParameterFirst(Forgetful):
    def __init__(self) -> None:
        self.gain = nn.Parameter(torch.ones(1))


class BufferFirst(Forgetful):
    def __init__(self) -> None:
        self.register_buffer("gain", torch.ones(1))


class PartFirst(Forgetful):
    def __init__(self) -> None:
        self.inner = Gaussian()


class OtherKernel(CausalFilter):
    def kernel(self, n):
        return torch.ones(1, n)


class OtherResponse(CircularFilter):
    def response(self):
        return torch.ones(1, 9)


class OtherForward(FeatureMap):
    def forward(self, q, k):
        return q, k


WRONG = {
    "no axis of heads": (lambda: answering(torch.ones_like), "h[None]"),
    "no axis of heads, causal": (lambda: answering(torch.ones_like, CausalFilter), "h[None]"),
    "another length": (lambda: answering(lambda f: f[None, 1:]), "512 numbers to 513 frequencies"),
    "numpy": (lambda: answering(lambda f: f.numpy()[None]), "ndarray: return a tensor"),
    "a list, causal": (lambda: answering(lambda f: [1.0], CausalFilter), "list: return a tensor"),
    "infinite at DC": (lambda: answering(lambda f: 1 / f[None]), "infinity or NaN at 0 cycles per token"),
    "NaN in the middle": (lambda: answering(lambda f: (0 / (f - 0.25))[None]), "at 0.25 cycles per token"),
    "an infinite tap": (lambda: answering(lambda t: 1 / (t - 2)[None], CausalFilter), "at lag 2"),
    "a class": (lambda: Gaussian, "Gaussian is a class: write Gaussian(...)"),
    "a function": (lambda: lambda x: x, "got a function: write a subclass of"),
    "another module": (lambda: nn.Linear(4, 4), "got a Linear: write a subclass of"),
    "no super().__init__()": (Forgetful, "must begin with super().__init__()"),
    "nn.Module's alone": (ModuleOnly, "must begin with super().__init__()"),
    "a parameter first": (ParameterFirst, "ParameterFirst.__init__ must begin with super().__init__()"),
    "a buffer first": (BufferFirst, "BufferFirst.__init__ must begin with super().__init__()"),
    "a part first": (PartFirst, "PartFirst.__init__ must begin with super().__init__()"),
    "another kernel": (OtherKernel, "has a kernel that takes other arguments: write def kernel(self)"),
    "another response": (OtherResponse, "has a response that takes other arguments: write def response(self, f)"),
    "no such setting": (lambda: Gaussian(frequency=0.1), "unknown setting of Gaussian 'frequency': did you mean freq?"),
    "misspelt": (Misspelt, "needs a method response(f); it defines respones: is one of them misspelt?"),
    "a forward of its own": (Overriding, "has a forward of its own, which filters around it pass by: define kernel()"),
    "nothing at all": (Empty, "needs a method kernel(); it defines nothing of its own"),
}
HOLDERS = {
    "GPT": lambda x: GPT(CFG, x), "Unit": Unit, "Causal": Causal, "SlidingDFT": SlidingDFT, "Bank": Bank, "Sum": Sum,
    "Residual": Residual, "Analytic": Analytic, "PhaseRandomised": PhaseRandomised,
}  # fmt: skip


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("name", WRONG)
def test_a_filter_that_cannot_work_says_what_to_write(name, holder):
    make, says = WRONG[name]
    with pytest.raises((ValueError, NotImplementedError, TypeError)) as e:
        HOLDERS[holder](make())
    assert says in str(e.value)


@pytest.mark.parametrize("holder", [h for h in HOLDERS if h != "GPT"])
def test_a_map_that_is_no_filter_has_no_response(holder):
    with pytest.raises(ValueError, match="expected a Filter, got a RandomRotation"):
        HOLDERS[holder](RandomRotation(8, heads=2))
    GPT(CFG, RandomRotation(8, heads=2))


def test_a_map_of_one_s_own_is_called_with_a_signal_alone():
    with pytest.raises(ValueError, match=r"has a forward that takes other arguments: write def forward\(self, x\)"):
        GPT(CFG, OtherForward())


def test_a_filter_shows_what_it_is_made_with_and_other_errors_of_its_maker_pass():
    assert [*inspect.signature(Gaussian).parameters] == ["freq", "width", "heads", "learn"]

    class Own(CircularFilter):
        def __init__(self, sharp: int = 2) -> None:
            super().__init__()
            self.sharp = sharp.no_such_thing

    assert [*inspect.signature(Own).parameters] == ["sharp"]
    with pytest.raises(AttributeError, match="no_such_thing"):
        Own()


def test_every_filter_of_the_library_passes():
    for filter in shelf().values():
        check_map(filter, Filter)


def test_a_map_without_a_forward_says_so():
    with pytest.raises(NotImplementedError, match=r"needs a method forward\(x\)"):
        FeatureMap()(torch.zeros(1, 1, 1, 1))
