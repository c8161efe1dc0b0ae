"""Reading a text piece by piece against reading it whole: the same numbers, each token once, in bounded memory."""
import gc
import random

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fourierqk.channels import ChannelCollapse, RandomProjection, RandomRotation
from fourierqk.combinators import (
    Analytic,
    Bank,
    Causal,
    Padded,
    PhaseRandomised,
    Residual,
    SlidingDFT,
    Sum,
    Unit,
    shelf,
)  # fmt: skip
from fourierqk.filters import (
    AllPass,
    CausalFilter,
    FeatureMap,
    Gaussian,
    MexicanHat,
    Morlet,
    MorletCorrelation,
    RandomBands,
    Tone,
)  # fmt: skip
from fourierqk.model import GPT, Attention, FNet, GPTConfig, LanguageModel, generate
from fourierqk.neighbours import Dealt, Resonator, Separate, ShortConvolution, Taps, TokenShift
from fourierqk.prefix import PrefixFilter
from fourierqk.rotary import Rotary
from fourierqk.specimens import SPECIMENS
from fourierqk.streaming import Cache, convolution
from fourierqk.zoo import ENTRANTS, SYSTEMS, VARIANTS, build

ALL = SYSTEMS | VARIANTS | ENTRANTS
STREAMING = [name for name, s in ALL.items() if s.verdict == "causal" and name != "dc"]  # dc is causal by algebra alone
CFG = GPTConfig(vocab_size=11, block_size=140, n_layer=2, n_head=2, n_embd=16, dropout=0.3)
CLOSE = {torch.float32: 1e-5, torch.float64: 1e-10}  # of the largest number


def ids(b: int, n: int, seed: int = 0) -> Tensor:
    return torch.randint(11, (b, n), generator=torch.Generator().manual_seed(seed))


def make(name: str, cfg: GPTConfig = CFG, dtype: torch.dtype = torch.float64) -> LanguageModel:
    """A model whose weights are large enough for attention and filters to matter."""
    torch.manual_seed(0)
    model = build(name, cfg).to(dtype).eval()
    for p in model.parameters():
        if p.dim() > 1 and p.requires_grad:
            nn.init.normal_(p, std=0.5)
    return model


def cut(n: int, rng: random.Random, most: int = 40) -> list[int]:
    """n tokens in pieces of random sizes."""
    sizes = []
    while sum(sizes) < n:
        sizes.append(rng.randint(1, min(most, n - sum(sizes))))
    return sizes


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("name", STREAMING)
def test_a_model_says_of_every_token_what_it_says_when_it_reads_the_whole(name, dtype):
    """The text outlasts 128 taps: a prompt in one piece, then token by token, then in pieces of any size."""
    rng, model = random.Random(name), make(name, dtype=dtype)
    n, prompt, single = rng.randint(131, 140), rng.randint(1, 110), rng.randint(3, 12)
    x = ids(rng.randint(1, 3), n, seed=n)
    with torch.no_grad():
        whole = model(x)[0]
    for sizes in ([prompt, *[1] * single, *cut(n - prompt - single, rng)], cut(n, rng)):
        read = model.stream()
        pieces = torch.cat([read(piece) for piece in x.split(sizes, 1)], 1)
        torch.testing.assert_close(pieces, whole, rtol=0, atol=CLOSE[dtype] * whole.abs().max().item())


@pytest.mark.parametrize("name", [name for name in ALL if name not in STREAMING])
def test_a_model_that_hears_later_tokens_does_not_stream(name):
    with pytest.raises(NotImplementedError, match="does not stream: what it makes of a token may change"):
        make(name).stream()


# --- feature maps


def filters() -> dict[str, FeatureMap]:
    """Of signals (B, 2, T, 4)."""
    band, d = Gaussian([0.1, 0.2], 0.05, heads=2, learn=True), 4
    torch.manual_seed(0)
    short = ShortConvolution(d, 3, 2)
    nn.init.normal_(short.taps)
    return {name: f for name, f in shelf().items() if isinstance(f, CausalFilter | AllPass)} | {
        "cut": Causal(band, 9), "sliding": SlidingDFT(band, 7), "sliding bank": SlidingDFT(Bank(band, Gaussian()), 7),
        "one tap": Causal(band, 1), "unit": Unit(Causal(band, 5), 3), "residual": Residual(SlidingDFT(band, 6)),
        "sum": Sum(Taps((0.5, 0.2, -0.3), 2), Resonator(heads=2, taps=9)),
        "bank": Bank(AllPass(), Unit(Morlet([4.0, 8.0], taps=10)), Bank(Taps((1.0, 2.0)), Morlet(taps=3))),
        "short": short, "shift": TokenShift(), "rotary": Rotary(d), "separate": Separate(Taps((1.0, 0.5)), 3),
        "dealt": Dealt(AllPass(), TokenShift(), Causal(band, 5)), "collapse": ChannelCollapse(Gaussian()),
        "rotation": RandomRotation(d, 2), "projection": RandomProjection(d, 2, 2),
    }  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", filters())
def test_a_filter_makes_of_pieces_what_it_makes_of_the_whole(name, dtype):
    rng, own = random.Random(name), filters()[name].to(dtype)
    n = rng.randint(1, 200)
    x = torch.randn(rng.randint(1, 3), 2, n, 4, generator=torch.Generator().manual_seed(n)).to(dtype)
    hear = own.stream()
    with torch.no_grad():
        whole, pieces = own(x), torch.cat([hear(piece) for piece in x.split(cut(n, rng, 9), -2)], -2)
    assert pieces.dtype == dtype
    tolerance = CLOSE.get(dtype, 2**-7)
    torch.testing.assert_close(pieces, whole, rtol=0, atol=tolerance * whole.abs().max().item())


@pytest.mark.parametrize("taps", [1, 2, 5, 30])
def test_a_convolution_in_pieces_is_numpys(taps):
    rng = np.random.default_rng(taps)
    x, h = rng.normal(size=(2, 3, 40, 2)), rng.normal(size=(2, 3, taps))
    hear = convolution(torch.from_numpy(h))
    pieces = torch.cat([hear(piece) for piece in torch.from_numpy(x).split([1, 1, 20, 1, 2, 15], -2)], -2)
    for b, head, k, c in np.ndindex(2, 3, 2, 2):
        expected = np.convolve(x[b, head, :, c], h[k, head])[:40]
        np.testing.assert_allclose(pieces[b, head, :, 2 * k + c], expected, rtol=0, atol=1e-12)


def test_the_signals_of_a_layer_stay_apart():
    """Together as apart, whether they share a filter or have their own."""
    each = Separate(Taps((1.0, 0.5), heads=2), 3)
    for p in each.parameters():
        nn.init.normal_(p)
    signals = torch.randn(3, 2, 2, 9, 4).unbind(0)
    for own in (each, Taps((0.5, 2.0, 1.0)), Bank(AllPass(), Morlet(taps=5))):
        hear = own.streams(3)
        pieces = [hear(*piece) for piece in zip(*(x.split([4, 1, 1, 3], -2) for x in signals), strict=True)]
        for expected, *parts in zip(own.together(*signals), *pieces, strict=True):
            torch.testing.assert_close(torch.cat(parts, -2), expected)
    with pytest.raises(ValueError, match="give copies=2"):
        each.streams(2)


@pytest.mark.parametrize("make", [lambda: Gaussian(), lambda: Tone(), lambda: Padded(Gaussian()),
                                  lambda: Unit(Bank(AllPass(), Gaussian())), lambda: Dealt(AllPass(), Gaussian()),
                                  lambda: Separate(Sum(Gaussian(), Taps()), 2), lambda: PrefixFilter(Gaussian()),
                                  lambda: Analytic(Causal(Gaussian())), lambda: PhaseRandomised(AllPass()),
                                  MexicanHat, RandomBands, MorletCorrelation])  # fmt: skip
def test_what_hears_later_tokens_does_not_stream(make):
    with pytest.raises(NotImplementedError, match="does not stream.*needs a method stream"):
        make().streams(2)


def test_who_rewrites_forward_says_anew_how_it_streams():
    class Peeks(TokenShift):
        def forward(self, x: Tensor) -> Tensor:
            return x.flip(-2)

    class Late(Attention):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) + 1

    class Doubled(Peeks):
        def forward(self, x: Tensor) -> Tensor:
            return 2 * x

        def stream(self):
            return self

    class Renamed(Doubled):
        pass

    for own in (Peeks(), Late(CFG, AllPass())):
        with pytest.raises(NotImplementedError, match=f"{type(own).__name__} does not stream"):
            own.stream()
    x = torch.randn(1, 1, 3, 2)
    assert torch.equal(Renamed().stream()(x), 2 * x)


# --- what is kept


def kept(stream: object) -> int:
    """Bytes of all tensors that a stream holds, by whatever way, but those of modules."""
    found, todo, seen = {}, [stream], set()
    while todo:
        x = todo.pop()
        if id(x) in seen or isinstance(x, nn.Module | type) or getattr(x, "__name__", "") in ("builtins", "torch"):
            continue
        seen.add(id(x))
        if isinstance(x, Tensor):
            found[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        elif callable(x) or isinstance(x, dict | list | tuple) or type(x).__name__ == "cell":
            todo += [y for y in gc.get_referents(x) if y is not getattr(x, "__globals__", None)]
    return sum(found.values())


@pytest.mark.parametrize("name", filters())
def test_a_filter_keeps_no_more_of_a_long_text_than_its_taps(name):
    hear, x = filters()[name].stream(), torch.randn(1, 2, 1, 4)
    with torch.no_grad():
        sizes = [(hear(x), kept(hear))[1] for _ in range(300)]
    assert sizes[0] == sizes[-1] == max(sizes)


def test_a_filter_of_filters_keeps_what_each_of_them_keeps():
    hear = Unit(Bank(Taps((1.0, 2.0)), Sum(AllPass(), Taps((1.0, 2.0, 3.0))))).stream()
    for _ in range(9):
        hear(torch.randn(1, 2, 1, 4))
    assert kept(hear) == 4 * (1 + 2 * 2 * 4 + 2 * 3 * 4 + 2 * (2 + 3))  # a gain; tokens; taps, both ways round


@pytest.mark.parametrize("taps", [2, 17, 100])
def test_a_convolution_keeps_a_token_a_tap(taps):
    hear = convolution(torch.ones(1, 1, taps))
    for n in (1, 1, 200, 1):
        hear(torch.randn(3, 2, n, 4))
    assert kept(hear) == 4 * (3 * 2 * taps * 4 + 2 * taps)  # what one product hears; the taps, both ways round


def test_attention_keeps_keys_and_values_in_room_that_is_taken_once():
    layer = Attention(CFG, AllPass()).eval()
    hear = layer.stream()
    with torch.no_grad():
        sizes = [(hear(torch.randn(1, n, 16)), kept(hear))[1] for n in (1, 50, 1)]
    assert sizes == [4 * 2 * 140 * 16] * 3


# --- what a stream refuses, and what it leaves alone


def test_attention_without_a_mask_does_not_stream():
    with pytest.raises(NotImplementedError, match="without a mask"):
        GPT(GPTConfig(**{**vars(CFG), "causal": False})).stream()


@pytest.mark.parametrize("name", SPECIMENS)
def test_a_mixer_of_somebody_else_does_not_stream(name):
    model = LanguageModel(CFG, lambda: SPECIMENS[name].mixer(16))
    with pytest.raises(NotImplementedError, match="does not stream"):
        model.stream()


def test_a_stream_reads_no_more_than_the_model_can():
    model = make("base-rope")
    read = model.stream()
    with pytest.raises(ValueError, match="block_size = 140"):
        read(ids(1, 141))
    read(ids(1, 139))
    with pytest.raises(ValueError, match=r"got \(1, 2\) after 139 tokens"):
        read(ids(1, 2))
    with pytest.raises(ValueError, match=r"got \(1, 0\)"):
        read(ids(1, 0))
    read(ids(1, 1))


def test_a_stream_goes_on_with_the_texts_that_it_began_with():
    read = make("base-dot").stream()
    read(ids(2, 5))
    with pytest.raises(ValueError, match="this stream reads 2 texts of at most 140 tokens and has read 5 of them"):
        read(ids(1, 1))
    keep = Cache(3)
    with pytest.raises(ValueError, match="cannot take 4 more of 1 texts"):
        keep(torch.ones(1, 1, 4, 2))


def test_a_filter_that_widens_one_signal_is_explained():
    model = GPT(CFG, Morlet(4.0, taps=6), on="k")
    with pytest.raises(ValueError, match="one that widens needs on='qk'"):
        model.stream()(ids(1, 3))


def test_streams_of_one_model_share_nothing_but_weights_and_have_no_gradient():
    model, x, y = make("late-fourier-rope"), ids(1, 20), ids(1, 20, seed=1)
    a, b = model.stream(), model.stream()
    for i in range(20):
        left, right = a(x[:, i : i + 1]), b(y[:, i : i + 1])
    assert not left.requires_grad
    torch.testing.assert_close(left[:, 0], model(x)[0][:, -1].detach())
    torch.testing.assert_close(right[:, 0], model(y)[0][:, -1].detach())


# --- generate


def anew(model: LanguageModel, idx: Tensor, n: int, temperature: float, seed: int) -> Tensor:
    """`generate`, written down once more: the whole window for each token."""
    rng = torch.Generator().manual_seed(seed)
    for _ in range(n):
        with torch.no_grad():
            logits = model(idx[:, -model.cfg.block_size :])[0][:, -1].float()
        drawn = torch.multinomial((logits / temperature).softmax(-1), 1, generator=rng) if temperature else None
        idx = torch.cat([idx, logits.argmax(-1, keepdim=True) if drawn is None else drawn], 1)
    return idx


@pytest.mark.parametrize("temperature", [0, 1.3])
@pytest.mark.parametrize("prompt", [1, 13, 24, 30])
@pytest.mark.parametrize("name", ["base-dot", "short-conv-rope", "prefix-fourier-qk", "taps-resonator", "fourier-qk",
                                  "dc", "fnet"])  # fmt: skip
def test_writing_by_a_stream_writes_the_same_text(name, prompt, temperature):
    """Inside the block of 24 tokens and beyond, whether the model streams or not."""
    model = make(name, GPTConfig(**{**vars(CFG), "block_size": 24}))
    text = generate(model, ids(2, prompt), 26, temperature, seed=prompt)
    assert torch.equal(text, anew(model, ids(2, prompt), 26, temperature, seed=prompt))


def lengths(model: LanguageModel, prompt: int, n: int) -> list[int]:
    """How many tokens a model reads at a time when it writes n."""
    seen: list[int] = []
    model.tokens.register_forward_hook(lambda m, args, y: seen.append(args[0].shape[1]))
    generate(model, ids(1, prompt), n)
    return seen


def test_each_token_is_read_once_until_the_window_slides():
    cfg = GPTConfig(**{**vars(CFG), "block_size": 24})
    assert lengths(make("causal-morlet", cfg), 20, 8) == [20, 1, 1, 1, 1, 24, 24, 24]
    assert lengths(make("causal-morlet", cfg), 30, 2) == [24, 24]
    assert lengths(make("fourier-qk", cfg), 20, 6) == [20, 21, 22, 23, 24, 24]
    assert lengths(make("causal-morlet", cfg), 20, 0) == []


def test_writing_by_a_foreign_mixer_reads_the_window_anew():
    model = LanguageModel(CFG, lambda: nn.Linear(16, 16)).eval()
    assert lengths(model, 4, 3) == [4, 5, 6]
    assert generate(FNet(CFG), ids(2, 3), 4).shape == (2, 7)
