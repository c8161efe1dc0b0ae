"""Models that we did not write: what they say of themselves, how they are run, and how they are made from a name."""
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from fourierqk.adapter import Adapter
from fourierqk.causality import audit
from fourierqk.foreign import load_model
from fourierqk.sizes import block_size, vocab_size


class Says(nn.Module):
    """A model with a configuration, as transformers' models have one."""

    def __init__(self, **numbers: object) -> None:
        super().__init__()
        self.config = SimpleNamespace(**numbers)


SAYS = {  # as public models say it: numbers -> the longest text, the number of tokens
    "BigBird": ({"block_size": 64, "max_position_embeddings": 4096, "vocab_size": 40}, 4096, 40),
    "a block beside n_positions": ({"block_size": 256, "n_positions": 1024}, 1024, None),
    "nanoGPT": ({"block_size": 64, "vocab_size": 40}, 64, 40),
    "a number that is none": ({"max_position_embeddings": "many", "block_size": 8}, 8, None),
    "a switch": ({"block_size": True, "vocab_size": True}, None, None),
    "XLNet: no limit": ({"max_position_embeddings": -1, "vocab_size": 40}, None, 40),
    "MPT": ({"max_seq_len": 2048, "vocab_size": 40}, 2048, 40),
    "OLMo, LLaDA": ({"max_sequence_length": 512, "vocab_size": 40}, 512, 40),
    "ChatGLM": ({"seq_length": 512, "padded_vocab_size": 48}, 512, 48),
    "lit-gpt": ({"block_size": 64, "padded_vocab_size": 48, "vocab_size": 40}, 64, 40),
    "RWKV": ({"context_length": 1024, "vocab_size": 40}, 1024, 40),
    "Mamba": ({"d_model": 8, "vocab_size": 40, "pad_vocab_size_multiple": 8}, None, 40),
    "what generate() writes": ({"max_length": 20, "sliding_window": 4, "vocab_size": 40}, None, 40),
    "block diffusion of text with pictures": (
        {"block_size": 4, "text_config": SimpleNamespace(vocab_size=40, max_position_embeddings=64)}, 64, 40),
    "encoder and decoder": ({"decoder": SimpleNamespace(vocab_size=40, n_positions=64)}, 64, 40),
    "nothing": ({"hidden_size": 8}, None, None),
}  # fmt: skip


@pytest.mark.parametrize("name", SAYS)
def test_a_model_s_numbers_are_read_under_their_own_names(name):
    numbers, longest, tokens = SAYS[name]
    model = Says(**numbers)
    for said in (model, lambda ids: model(ids), nn.DataParallel(model), nn.Sequential(model)):
        assert (block_size(said), vocab_size(said)) == (longest, tokens)


class Lone(nn.Module):
    """A model that keeps its numbers elsewhere than in a config."""

    def __init__(self, **held: object) -> None:
        super().__init__()
        for name, value in held.items():
            setattr(self, name, value)


@pytest.mark.parametrize("model, longest, tokens", [
    (Lone(cfg={"context_length": 64, "vocab_size": 40}), 64, 40),  # a dict: LLMs-from-scratch
    (Lone(args=SimpleNamespace(ctx_len=64, vocab_size=40)), 64, 40),  # RWKV-LM
    (Lone(params=SimpleNamespace(max_seq_len=64, vocab_size=-1), vocab_size=40), 64, 40),  # Llama: not known yet
    (Lone(block_size=64, tok_emb=nn.Embedding(40, 8)), 64, 40),  # minGPT
    (Lone(max_seq_len=64, num_tokens=40), 64, 40),  # x-transformers
    (Lone(wte=nn.Embedding(40, 8), wpe=nn.Embedding(64, 8), head=nn.Linear(8, 40)), None, 40),
    (Lone(wte=nn.Embedding(40, 8), wpe=nn.Embedding(64, 8)), None, None),  # which of the two?
    (Lone(config=SimpleNamespace(max_position_embeddings=66, vocab_size=40),  # RoBERTa: two rows serve the padding
          pos=nn.Embedding(66, 8, padding_idx=1), tok=nn.Embedding(40, 8, padding_idx=1)), 64, 40),
    (Lone(config=SimpleNamespace(max_position_embeddings=64, vocab_size=64), tok=nn.Embedding(64, 8, padding_idx=1)),
     64, 64),
])  # fmt: skip
def test_a_model_is_asked_wherever_it_keeps_its_numbers(model, longest, tokens):
    assert (block_size(model), vocab_size(model)) == (longest, tokens)


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


@pytest.mark.parametrize("prefix", [
    "", "_orig_mod.", "module.", "module._orig_mod.", "_orig_mod.module.", "model.", "model._orig_mod.", "net.module.",
])  # fmt: skip
def test_weights_of_a_wrapped_model_fit_the_model(code, prefix):
    trained = load_model("single.py:Model")
    torch.save({"model": {prefix + name: value for name, value in trained.state_dict().items()}}, "weights.pt")
    loaded = load_model("single.py:Model", Path("weights.pt")).state_dict()
    assert all(torch.equal(value, loaded[name]) for name, value in trained.state_dict().items())


class TimeFirst(nn.Module):
    """Masks as long as the text, for layers that take the rows of a batch for it."""

    def __init__(self):
        super().__init__()
        self.emb, self.layer = nn.Embedding(20, 16), nn.TransformerEncoderLayer(16, 2, 32)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        return self.layer(self.emb(ids), mask)


def test_a_model_that_refuses_and_takes_time_first_is_asked_about_it():
    with pytest.raises(ValueError, match="batch_first=False: was True forgotten"):
        audit(TimeFirst(), 20, 12, draws=2)


def test_a_part_that_is_called_module_keeps_its_name(code):
    Path("wrapped.py").write_text(MODEL.format(imports="", width=4) + """
class Wrapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.module = Model()
""")
    torch.save(load_model("wrapped.py:Wrapped").state_dict(), "weights.pt")
    load_model("wrapped.py:Wrapped", Path("weights.pt"))


def test_the_folder_of_a_model_s_file_is_left_again(code):
    """A file beside it, random.py say, would else be what the library finds later."""
    Path("elsewhere").mkdir()
    Path("elsewhere/beside.py").write_text("WIDTH = 4")
    late = "def make():\n    import beside\n    return Model(beside.WIDTH)\n"
    Path("elsewhere/made.py").write_text(MODEL.format(imports="", width=4) + late)
    Path("elsewhere/gone.py").write_text("import sys\nsys.path.pop(0)\n" + MODEL.format(imports="", width=4))
    before = [*sys.path]
    for name in ("made.py:make", "gone.py:Model", "made.py:nothing"):
        try:
            load_model(f"elsewhere/{name}")
        except ValueError:
            assert "nothing" in name
        assert sys.path == before
    for name in ("beside", "made", "gone"):
        del sys.modules[name]


@pytest.mark.parametrize("around", [lambda m: m, lambda m: lambda ids: m(ids), nn.DataParallel])
def test_a_layer_that_waits_for_its_first_input_is_named(around):
    model = nn.Sequential(nn.Embedding(V, 8), nn.LazyLinear(V))
    with pytest.raises(ValueError, match=r"1 \(LazyLinear\) has no weights .*: call the model once"):
        audit(around(model), V, N)
    model(torch.zeros(1, N, dtype=torch.int64))
    assert audit(around(model), V, N, draws=2).verdict == "causal"
