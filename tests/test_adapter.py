"""Models that we did not write: what they say of themselves, how they are run, and how they are made from a name."""
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from fourierqk.adapter import Adapter, block_size, vocab_size
from fourierqk.causality import audit
from fourierqk.foreign import load_model


class Says(nn.Module):
    """A model with a configuration, as transformers' models have one."""

    def __init__(self, **numbers: object) -> None:
        super().__init__()
        self.config = SimpleNamespace(**numbers)


@pytest.mark.parametrize("numbers, longest", [
    ({"block_size": 64, "max_position_embeddings": 4096}, 4096),  # BigBird: 64 is a block of its sparse attention
    ({"block_size": 256, "n_positions": 1024}, 1024),
    ({"block_size": 64}, 64),
    ({"max_position_embeddings": "many", "block_size": 8}, 8),
    ({"hidden_size": 8}, None),
])  # fmt: skip
def test_the_longest_text_is_read_under_its_own_name(numbers, longest):
    model = Says(**numbers)
    assert block_size(model) == block_size(lambda ids: model(ids)) == longest


def test_the_number_of_tokens_is_asked_for():
    assert vocab_size(Says(vocab_size=40)) == 40 and vocab_size(Says()) is None


# --- a model is run as it trains

N, V = 12, 11


class Encoder(nn.Module):
    """torch's own Transformer layers, with numbers added to the scores in the place of a mask."""

    def __init__(self, bias: Tensor) -> None:
        super().__init__()
        self.bias, self.embed, self.head = bias, nn.Embedding(V, 16), nn.Linear(16, V)
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2)

    def forward(self, ids: Tensor) -> Tensor:
        n = ids.shape[1]
        return self.head(self.layers(self.embed(ids), mask=self.bias[:n, :n]))


DISTANCE = (torch.arange(N)[:, None] - torch.arange(N)).abs()
BIASES = {
    "soft mask": (torch.full((N, N), -3.0).triu(1), "leaks"),
    "distance and no mask": (-0.5 * DISTANCE.float(), "leaks"),
    "hard mask": (torch.full((N, N), -torch.inf).triu(1), "causal"),
    "distance and a hard mask": (-0.5 * DISTANCE + torch.full((N, N), -torch.inf).triu(1), "causal"),
}


@pytest.mark.parametrize("name", BIASES)
def test_a_number_in_a_mask_is_no_mask(name):
    """Eval mode without gradients takes a fused path in torch, where any number but 0 hides: what trains adds it."""
    bias, verdict = BIASES[name]
    torch.manual_seed(0)
    assert audit(Encoder(bias), V, N, draws=3).verdict == verdict


@pytest.mark.parametrize("name", BIASES)
def test_at_rest_computes_what_trains(name):
    torch.manual_seed(0)
    model, ids = Encoder(BIASES[name][0]).eval(), torch.randint(V, (2, N))
    with Adapter(model).at_rest():
        still = Adapter(model).logits(ids)
    assert torch.allclose(still, model(ids), atol=1e-5)  # with gradients there is no other path
    assert torch.backends.mha.get_fastpath_enabled()


# --- and made from a name

MODEL = """
from torch import nn
{imports}

class Model(nn.Module):
    def __init__(self, width={width}):
        super().__init__()
        self.embed, self.head = nn.Embedding(9, width), nn.Linear(width, 9)

    def forward(self, ids):
        return self.head(self.embed(ids))

class Needs(Model):
    def __init__(self, width):
        super().__init__(width)

def reads(ids): return nn.functional.one_hot(ids, 9).float()
def makes(width, depth): return Model(width)
"""


@pytest.fixture
def code(tmp_path, monkeypatch):
    """A file and a package with the same model, in the working folder."""
    monkeypatch.chdir(tmp_path)
    Path("single.py").write_text(MODEL.format(imports="", width=4))
    Path("apackage").mkdir()
    Path("apackage/__init__.py").write_text("")
    Path("apackage/sizes.py").write_text("WIDTH = 4")
    Path("apackage/inner.py").write_text(MODEL.format(imports="from .sizes import WIDTH", width="WIDTH"))
    yield
    for name in [name for name in sys.modules if name.split(".")[0] in ("single", "apackage")]:
        del sys.modules[name]


def test_a_file_or_a_package_names_a_model(code):
    for home in ("single.py", "apackage.inner"):
        assert load_model(f"{home}:Model")(torch.zeros(1, 3, dtype=torch.int64)).shape == (1, 3, 9)
        assert load_model(f"{home}:reads")(torch.zeros(1, 3, dtype=torch.int64)).shape == (1, 3, 9)


@pytest.mark.parametrize("place, error, says", [
    ("apackage/inner.py:Model", ValueError, "name it as package.module:NAME"),
    ("apackage.nothing:Model", ImportError, "apackage.nothing"),
    ("apackage.inner:nothing", ValueError, "apackage.inner has no 'nothing'"),
    ("single.py:Needs", ValueError, "needs arguments (width)"),
    ("single.py:makes", ValueError, "needs arguments (width, depth)"),
])  # fmt: skip
def test_a_name_that_makes_no_model_says_why(code, place, error, says):
    with pytest.raises(error) as e:
        load_model(place)
    assert says in str(e.value)


@pytest.mark.parametrize("prefix", ["", "_orig_mod.", "module.", "module._orig_mod.", "_orig_mod.module."])
def test_weights_of_a_wrapped_model_fit_the_model(code, prefix):
    trained = load_model("single.py:Model")
    torch.save({"model": {prefix + name: value for name, value in trained.state_dict().items()}}, "weights.pt")
    loaded = load_model("single.py:Model", Path("weights.pt")).state_dict()
    assert all(torch.equal(value, loaded[name]) for name, value in trained.state_dict().items())


def test_a_part_that_is_called_module_keeps_its_name(code):
    Path("wrapped.py").write_text(MODEL.format(imports="", width=4) + """
class Wrapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.module = Model()
""")
    torch.save(load_model("wrapped.py:Wrapped").state_dict(), "weights.pt")
    load_model("wrapped.py:Wrapped", Path("weights.pt"))
