"""The spectrum of a text: against the plain sum over all indicators, SciPy, closed forms; and the recorded ones."""
import inspect
import math

import numpy as np
import pytest
import spectra
import torch
from scipy import signal

from fourierqk.data import spectrum, words
from fourierqk.data.corpus import LEVELS, Corpus, shakespeare, verse
from fourierqk.data.spectrum import Spectrum, recorded_spectra, text_spectrum
from fourierqk.records import library


def one_hot(ids: np.ndarray) -> np.ndarray:
    """(V, N): the indicators of the tokens that occur, their means taken away."""
    x = (ids == np.unique(ids)[:, None]).astype(float)
    return x - x.mean(1, keepdims=True)


def brute(ids: np.ndarray, n: int) -> np.ndarray:
    """(windows, n // 2 + 1): periodograms by the definition, every indicator, window and frequency in turn."""
    w = np.sin(np.pi * np.arange(n) / n) ** 2
    k = np.arange(n // 2 + 1)[:, None]
    waves = np.exp(-2j * np.pi * k * np.arange(n) / n)
    starts = range(0, len(ids) - n + 1, n // 2)
    return np.array([sum(abs(waves @ (w * x[s : s + n])) ** 2 for x in one_hot(ids)) for s in starts]) / (w**2).sum()


def draw(length: int, p: list[float], seed: int) -> torch.Tensor:
    return torch.tensor(p, dtype=torch.float64).multinomial(length, True, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("seed", range(8))
def test_it_is_the_sum_over_all_indicators(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 40))
    ids = rng.integers(-3, rng.integers(0, 20), size=n + rng.integers(0, 90))
    ids[0], ids[-1] = 7, -9  # never all the same
    got, expected = text_spectrum(torch.from_numpy(ids), n), brute(ids, n)
    np.testing.assert_allclose(got.power, expected.mean(0), atol=1e-12)
    assert got.windows == len(expected) and got.n == n and got.power.dtype == torch.float64
    assert got.flat == pytest.approx((one_hot(ids) ** 2).mean(1).sum())
    if len(expected) > 1:
        np.testing.assert_allclose(got.se, expected.std(0, ddof=1) / math.sqrt(len(expected)), atol=1e-12)
    else:
        assert got.se.isinf().all()


@pytest.mark.parametrize("n", [64, 100])
def test_scipy_agrees(n):
    ids = draw(1000, [0.5, 0.3, 0.1, 0.1], 0).numpy()
    f, welch = signal.welch(one_hot(ids), nperseg=n, noverlap=n // 2, detrend=False, return_onesided=False)
    got = text_spectrum(torch.from_numpy(ids), n)
    np.testing.assert_allclose(got.power, welch.sum(0)[: n // 2 + 1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(got.freq, abs(f[: n // 2 + 1]))


def test_a_large_vocabulary_is_taken_in_pieces_to_the_same_end(monkeypatch):
    ids = torch.randint(10**12, (700,), generator=torch.Generator().manual_seed(0)) % 97 * 10**9
    whole = text_spectrum(ids, 64)
    monkeypatch.setattr(spectrum, "CELLS", 200)  # 3 tokens at once
    torch.testing.assert_close(text_spectrum(ids, 64).power, whole.power, rtol=1e-12, atol=1e-12)


def test_numbers_given_to_the_tokens_do_not_matter():
    ids = draw(600, [0.4, 0.3, 0.2, 0.1], 1)
    codes = torch.tensor([40, -7, 10**15, 3])
    torch.testing.assert_close(text_spectrum(codes[ids], 50).power, text_spectrum(ids, 50).power, rtol=1e-12, atol=0)


@pytest.mark.parametrize("p", [2, 3, 5, 8])
def test_a_periodic_text_has_lines_at_whole_multiples_of_its_frequency_and_nothing_else(p):
    """p different tokens over and over: 1/p of the power at each k / p, which a Hann window spreads 1 : 4 : 1."""
    n = 12 * p
    got = text_spectrum(torch.arange(40 * p) % p, n)
    expected = torch.zeros(n // 2 + 1, dtype=torch.float64)
    for m in range(1, p):
        for bin, share in ((12 * m, 4), (12 * m + 1, 1), (12 * m - 1, 1)):
            if bin <= n // 2:
                expected[bin] += share * n / 6 / p
    torch.testing.assert_close(got.power, expected, atol=1e-10, rtol=1e-10)
    assert got.flat == pytest.approx(1 - 1 / p)


def test_a_beat_among_letters_without_one():
    """A mark at every fifth token, any of two letters between. The mark has a line of 2 n / 3 times (1/5)^2, each
    letter, missing there, of 2 n / 3 times (1/10)^2; over a level of 0.4, the variance of the free choices."""
    ids = draw(40_000, [0.5, 0.5], 2)
    ids[::5] = 2
    found = text_spectrum(ids, 500)
    assert found.flat == pytest.approx(0.64, abs=1e-4)
    assert [round(1 / q.period, 6) for q in found.peaks()] == [0.2, 0.4]
    for period in (5, 2.5):
        assert found.at(period)[0] * 0.64 == pytest.approx(500 * 2 / 3 * (1 / 25 + 2 / 100) + 0.4, rel=0.01)
    assert found.power[105:195].mean().item() == pytest.approx(0.4, rel=0.02)


@pytest.mark.parametrize("p", [[0.5, 0.5], [0.9, 0.06, 0.04], [1 / 300] * 300])
def test_independent_tokens_have_sum_p_times_1_minus_p_at_every_frequency(p):
    got = text_spectrum(draw(200_000, p, 3), 128)
    z = (got.power - (1 - sum(q * q for q in p))) / got.se
    assert z.abs().max() < 5 and 0.7 < z.std() < 1.3  # as many standard errors off as chance allows, no fewer
    assert got.peaks() == [] and got.flat == pytest.approx(1 - sum(q * q for q in p), rel=0.01)


def test_words_of_random_length_follow_the_renewal_formula():
    """Blanks with independent gaps g: Re (1 + phi) / (1 - phi) / E g, where phi(f) = E exp(-2 pi i f g)."""
    gaps, odds = torch.tensor([3, 4, 5, 8]), torch.tensor([0.2, 0.4, 0.3, 0.1], dtype=torch.float64)
    ends = gaps[odds.multinomial(60_000, True, generator=torch.Generator().manual_seed(4))].cumsum(0)
    ids = torch.zeros(int(ends[-1]) + 1, dtype=torch.int64).index_fill(0, ends, 1)
    got = text_spectrum(ids, 256)
    f = got.freq[4:]  # the window blurs what lies next to 0
    phi = (odds * torch.exp(-2j * math.pi * f[:, None] * gaps)).sum(1)
    expected = 2 / (odds * gaps).sum() * ((1 + phi) / (1 - phi)).real  # twice: the blank, and what is none
    curved = 0.02 * expected  # and blurs a curved spectrum a little
    assert ((got.power[4:] - expected).abs() < 5 * got.se[4:] + curved).all()


@pytest.mark.parametrize("n", [32, 33])
def test_parseval(n):
    """The mean over the whole circle is the variance in the windows, weighted as they are."""
    ids = draw(400, [0.6, 0.3, 0.1], 5)
    got, w = text_spectrum(ids, n), torch.hann_window(n, dtype=torch.float64).square()
    p = ids.bincount().double() / 400
    variance = 1 - 2 * p[ids] + p.square().sum()  # sum over v of (indicator - p_v)^2
    expected = (variance.unfold(0, n, n // 2) * w).sum(1).mean() / w.sum()
    circle = torch.cat([got.power, got.power[1 : (n + 1) // 2]])
    assert len(circle) == n and circle.mean().item() == pytest.approx(expected.item(), rel=1e-12)


def test_what_the_spectrum_of_verse_shows_was_built_in_and_goes_when_it_is_shuffled():
    corpus = verse()
    periods = [q.period for q in text_spectrum(corpus.train).peaks(ratio=1.3)]
    for planned in (84, 21, 7):
        assert min(abs(q / planned - 1) for q in periods) < 0.02, planned
    assert text_spectrum(corpus.shuffled(0).val).peaks() == []


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: text_spectrum(torch.arange(9)), "windows of n = 1024 tokens do not fit a text of 9"),
        (lambda: text_spectrum(torch.arange(9), 3), "n must be 4 to 9"),
        (lambda: text_spectrum(torch.arange(0)), "a text of 0"),
        (lambda: text_spectrum(torch.ones(9)), r"whole-number ids.*float32 \(9,\)"),
        (lambda: text_spectrum(torch.eye(9, dtype=int), 4), r"\(9, 9\)"),
        (lambda: text_spectrum(torch.ones(9, dtype=int), 4), "all 9 tokens are the same"),
        (lambda: text_spectrum(torch.arange(9), 4).at(1.9), "4 tokens show periods of 2 to 4 tokens, not 1.9"),
        (lambda: text_spectrum(torch.arange(9), 4).at(5), "not 5"),
    ],
)
def test_bad_requests_are_refused(ask, message):
    with pytest.raises(ValueError, match=message):
        ask()


def test_one_window_proves_no_peak():
    ids = draw(64, [0.5, 0.5], 6)
    ids[::4] = 2
    one = text_spectrum(ids, 64)
    assert one.windows == 1 and one.peaks() == []


def test_peaks_by_hand():
    power = torch.ones(65, dtype=torch.float64)
    power[[1, 3, 8, 20, 36, 64]] = torch.tensor([9, 9, 3, 1.05, 1.2, 1.5], dtype=torch.float64)
    s = Spectrum(128, 100, 0.5, power, torch.full_like(power, 0.04))
    assert [(q.period, q.ratio) for q in s.peaks()] == [(16, 3), (128 / 36, pytest.approx(1.2)), (2, 1.5)]
    assert [q.period for q in s.peaks(1.3)] == [16, 2]
    assert s.at(16) == (6.0, 0.08)
    weak = Spectrum(128, 100, 0.5, power, torch.full_like(power, 0.06))
    assert [q.period for q in weak.peaks()] == [16, 2]  # 0.2 is less than 4 standard errors


# the records


@pytest.mark.parametrize("level", spectra.LEVELS)
def test_a_record_is_whole_and_of_a_commit_without_changes(level):
    record = library.read_json(library.folder("spectra") / f"{spectra.name(level)}.json")
    assert record["commit"] and not record["uncommitted_changes"]
    assert record["spectra"].keys() == spectra.signals(letters(level)).keys()
    for of, s in recorded_spectra(spectra.name(level)).items():
        assert len(s.power) == len(s.se) == s.n // 2 + 1, of
        circle = s.power.sum() + s.power[1:-1].sum()
        assert circle.item() / s.n == pytest.approx(s.flat, rel=0.02)  # Parseval


@pytest.mark.parametrize("level", spectra.LEVELS)
def test_a_record_holds_what_its_text_gives(level, monkeypatch):
    """Of a text at hand, against the definition, in six digits."""
    corpus = letters(level, 900)
    monkeypatch.setattr(spectra, "shakespeare", lambda level: corpus)
    record = spectra.measure(level)
    assert record["corpus"]["sha256"] == corpus.sha256 and record["corpus"]["vocabulary"] == len(corpus.vocab)
    for of, ids in spectra.signals(corpus).items():
        s, expected = record["spectra"][of], brute(ids.numpy(), 1024)
        assert (s["n"], s["windows"]) == (1024, len(expected))
        assert s["flat"] == pytest.approx((one_hot(ids.numpy()) ** 2).mean(1).sum())
        np.testing.assert_allclose(s["power"], expected.mean(0), rtol=1e-5, atol=1e-9)


def test_the_records_are_of_the_text_that_the_library_describes():
    char, word = (library.read_json(library.folder("spectra") / f"{spectra.name(v)}.json")["corpus"] for v in LEVELS)
    said = inspect.getdoc(shakespeare)
    assert f"{char['tokens']:,} characters, {char['vocabulary']} different ones" in said
    assert word["vocabulary"] == char["vocabulary"] + words.SIZE and f"the {words.SIZE:,} words most frequent" in said


@pytest.mark.parametrize("level", spectra.LEVELS)
def test_a_record_is_what_the_plays_give(level, plays):
    record = library.read_json(library.folder("spectra") / f"{spectra.name(level)}.json")
    fresh = spectra.measure(level)
    assert fresh["corpus"] == record["corpus"]
    for of, s in fresh["spectra"].items():
        for key in ("n", "windows", "flat", "power", "se"):
            np.testing.assert_allclose(s[key], record["spectra"][of][key], rtol=1e-4, err_msg=f"{of}: {key}")


def letters(level: str, times: int = 300) -> Corpus:
    """A small text of either level, with blank lines in it."""
    vocab = ("\n", " ", "a", "b") if level == "char" else ("\n", " ", "a", "b", "ab")
    return Corpus("x", words.encode("a ab\n\n" * times, vocab, "x"), torch.tensor([0]), vocab)


def test_the_signals_that_are_recorded_are_what_their_names_say():
    ids = spectra.signals(letters("char"))
    assert [ids[of][:6].tolist() for of in ("white space", "line ends", "speeches")] == [
        [0, 1, 0, 0, 1, 1], [0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 0]
    ]  # fmt: skip
    among = spectra.signals(letters("word"))
    assert among["all tokens"][:5].tolist() == [2, 1, 4, 0, 0]
    assert among["without blanks"][:4].tolist() == [2, 4, 2, 4]


def test_an_unknown_record_is_named_with_those_that_exist():
    with pytest.raises(FileNotFoundError, match="unknown spectra .verse.: there are shakespeare, shake"):
        recorded_spectra("verse")


def test_what_the_chapter_on_text_says_of_the_plays_is_so():
    plays, worded = recorded_spectra("shakespeare"), recorded_spectra("shakespeare-words")
    (line, *others) = sorted(plays["all tokens"].peaks(1.02), key=lambda q: -q.ratio)
    assert 40 < line.period < 50 and any(abs(2 * q.period / line.period - 1) < 0.1 for q in others)  # and a harmonic
    power, se = plays["all tokens"].at(64)
    assert power < 1 - 10 * se and all(not 64 / 1.2 < q.period < 64 * 1.2 for q in (line, *others))
    assert 4 < max(plays["white space"].peaks(), key=lambda q: q.ratio).period < 5.5
    assert all(not 154 / 1.5 < q.period < 154 * 1.5 for q in plays["speeches"].peaks(1.02))
    assert worded["without blanks"].peaks() == []
    written = text_spectrum(verse().train)
    for s, drifts in ((plays["all tokens"], True), (worded["all tokens"], True), (written, False)):
        assert (s.relative[2] > s.relative[5] + 4 * s.se[5]) == drifts
