"""Corpora: windows against slicing by hand, seeds, splits; and the ways a text can be missing, wrong or late."""
import itertools
import math
import random
import threading
from dataclasses import FrozenInstanceError, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import torch

from fourierqk.data import tinyshakespeare
from fourierqk.data.corpus import Corpus, shakespeare, text, verse

PLAY = b"First Citizen:\nBefore we proceed any further, hear me speak.\n\nAll:\nSpeak, speak.\n" * 5


@pytest.fixture(scope="module")
def poem() -> Corpus:
    return verse()


def ramp(n: int = 300, m: int = 200) -> Corpus:
    """A corpus whose token i says where it stands: what a window holds tells where it was cut."""
    vocab = tuple(chr(0x4E00 + i) for i in range(n))
    return Corpus("ramp", torch.arange(n), torch.arange(m), vocab, 0.5, torch.arange(m).double())


# windows and batches


@pytest.mark.parametrize(("size", "length"), [(1, 1), (3, 7), (16, 64), (5, 199)])
def test_windows_are_slices_and_y_is_one_token_ahead(size, length):
    corpus = ramp()
    starts, x, y = corpus.windows("val", size, length, seed=3)
    assert starts.shape == (size,) and x.shape == y.shape == (size, length)
    assert x.dtype == y.dtype == starts.dtype == torch.int64
    for s, a, b in zip(starts.tolist(), x, y, strict=True):
        assert torch.equal(a, corpus.val[s : s + length]) and torch.equal(b, corpus.val[s + 1 : s + 1 + length])
    for x, y in itertools.islice(corpus.batches("train", size, length, seed=3), 4):
        assert x.shape == y.shape == (size, length)
        assert torch.equal(y, x + 1) and torch.equal(x - x[:, :1], torch.arange(length).expand(size, -1))


def test_starts_are_uniform_and_reach_both_ends():
    starts, *_ = ramp(m=20).windows("val", 4000, 9)
    counts = torch.bincount(starts, minlength=11)
    assert len(counts) == 11 and starts.max() + 9 == 19  # the last window ends on the last token
    chi2 = ((counts - 4000 / 11) ** 2 / (4000 / 11)).sum().item()
    assert chi2 < 10 + 4 * math.sqrt(20)  # 10 degrees of freedom: mean 10, variance 20


def test_a_text_of_exactly_one_window_has_one_window():
    starts, x, y = ramp(m=9).windows("val", 5, 8)
    assert starts.tolist() == [0] * 5 and y[:, -1].tolist() == [8] * 5


def test_batch_i_depends_on_seed_and_i_alone():
    corpus = ramp()
    run = list(itertools.islice(corpus.batches("train", 4, 8, seed=1), 6))
    torch.manual_seed(99), random.seed(99)
    resumed = corpus.batches("train", 4, 8, seed=1, start=3)
    torch.rand(7)
    for (x, y), (x2, y2) in zip(run[3:], resumed, strict=False):
        assert torch.equal(x, x2) and torch.equal(y, y2)
    first = [x[:, 0].tolist() for x, _ in run]
    others = [next(corpus.batches("train", 4, 8, seed))[0][:, 0].tolist() for seed in (0, 2, -1, 2**40 + 1)]
    assert len({tuple(s) for s in first + others}) == 10  # no two alike


def test_drawing_leaves_the_global_generators_alone():
    corpus = ramp()
    before = torch.random.get_rng_state(), random.getstate()
    next(corpus.batches("train", 4, 8, seed=1)), corpus.windows("val", 4, 8), corpus.shuffled(0)
    assert torch.equal(before[0], torch.random.get_rng_state()) and before[1] == random.getstate()


def test_fixed_windows_are_pinned():
    starts, *_ = ramp().windows("val", 6, 8, seed=1)
    assert torch.equal(starts, ramp().windows("val", 6, 8, seed=1)[0])
    assert not torch.equal(starts, ramp().windows("val", 6, 8, seed=2)[0])
    assert starts.tolist() == PINNED


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda c: c.windows("test", 1, 8), "unknown split 'test'"),
        (lambda c: c.batches("test", 1, 8, 0), "unknown split 'test'"),
        (lambda c: c.windows("val", 1, 128), "the val split has 40 tokens, a window needs 129"),
        (lambda c: c.batches("val", 1, 40, 0), "the val split has 40 tokens, a window needs 41"),
        (lambda c: c.windows("val", 0, 8), "count = 0 must be a whole number, at least 1"),
        (lambda c: c.windows("val", 1, 0), "length = 0 must be a whole number, at least 1"),
        (lambda c: c.batches("val", 0, 8, 0), "size = 0 must be a whole number, at least 1"),
        (lambda c: c.batches("val", 1, 8, 0, start=-1), "start = -1 must be a whole number, at least 0"),
        (lambda c: c.oracle_loss(30, 41), "out of range"),
        (lambda c: c.oracle_loss(5, 5), "empty"),
        (lambda c: c.encode("ok"), r"no 'o' \(position 0"),
        (lambda c: replace(c, val=c.val[:0]), "val split of ramp is empty"),
        (lambda c: replace(c, oracle=c.oracle[:-1]), "oracle"),
        (lambda c: replace(c, val=c.val.int()), r"val split of ramp must be .* int64 ids.*not torch.int32 \(40,\)"),
        (lambda c: replace(c, train=c.train[None]), r"train split of ramp must be .*, not torch.int64 \(1, 300\)"),
        (lambda c: replace(c, val=c.val.tolist()), "must be a tensor of int64 ids.*, not list"),
        (lambda c: replace(c, val=c.val + 261), "ids in the val split of ramp must lie .* 0 and 299, got 261 to 300"),
        (lambda c: replace(c, train=c.train - 1), "train split of ramp must lie between 0 and 299, got -1 to 298"),
        (lambda c: replace(c, vocab=(*c.vocab, c.vocab[7])), "names a token twice"),
        (lambda c: replace(c, vocab=(*c.vocab, "")), "no characters"),
        (lambda c: c.characters(c.val + 299), "ids must lie between 0 and 299"),
    ],
)
def test_bad_requests_are_refused_at_once(ask, message):
    with pytest.raises(ValueError, match=message):
        ask(ramp(m=40))


# what a corpus knows of itself


def test_encode_and_decode_are_inverse_and_name_what_they_do_not_know(poem):
    line = "IVOR: reveko\n"
    assert poem.decode(poem.encode(line)) == line
    assert poem.decode(poem.val[:50]) == poem.decode(poem.val[:50].tolist())
    assert len(poem.encode("")) == 0
    with pytest.raises(ValueError, match=r"verse has no 'é' \(position 2 of the text\)"):
        poem.encode("IRé")
    with pytest.raises(ValueError, match="ids must lie between 0 and"):
        poem.decode(torch.tensor([0, len(poem.vocab)]))
    with pytest.raises(ValueError, match="ids must lie between 0 and"):
        poem.decode([-1])


def test_a_corpus_cannot_be_changed(poem):
    with pytest.raises(FrozenInstanceError):
        poem.train = poem.val


def test_unigram_entropy_in_closed_form():
    c = Corpus("x", torch.tensor([0]), torch.tensor([0, 0, 1, 2]), ("a", "b", "c", "never"))
    assert c.unigram_entropy == pytest.approx(1.5 * math.log(2), rel=1e-12)


def test_shuffled_keeps_the_counts_and_nothing_else(poem):
    s = poem.shuffled(0)
    assert torch.equal(s.val.bincount(), poem.val.bincount()) and not torch.equal(s.val, poem.val)
    assert s.train is poem.train and s.vocab == poem.vocab
    assert s.entropy_rate is None and s.oracle is None
    assert torch.equal(s.val, poem.shuffled(0).val) and not torch.equal(s.val, poem.shuffled(1).val)
    pairs = torch.zeros(52, 52).index_put_((s.val[:-1], s.val[1:]), torch.tensor(1.0), accumulate=True)
    p = s.val.bincount(minlength=52) / len(s.val)
    assert (pairs / pairs.sum() - p[:, None] * p).abs().max() < 0.002  # neighbours are independent
    with pytest.raises(ValueError, match="nobody knows the best possible loss on verse, shuffled"):
        s.oracle_loss(0, 10)


def test_the_fingerprint_tells_texts_and_vocabularies_apart():
    a = ramp()
    prints = [a.sha256, replace(a, val=a.val + 1).sha256, replace(a, vocab=a.vocab[::-1]).sha256, ramp(301).sha256]
    assert a.sha256 == ramp().sha256 and len(set(prints)) == 4
    moved = Corpus("x", a.train[:-1], torch.cat([a.train[-1:], a.val]), a.vocab)  # the same ids, split elsewhere
    assert moved.sha256 != a.sha256


# verse as a corpus


def test_verse_is_the_same_on_every_machine(poem):
    again = verse()
    assert torch.equal(again.train, poem.train) and torch.equal(again.val, poem.val)
    assert poem.sha256 == VERSE_SHA256
    assert verse(1).sha256 != poem.sha256


def test_verse_is_as_long_as_it_says_and_its_splits_differ(poem):
    assert 10**6 <= len(poem.train) < 1.01 * 10**6 and 10**5 <= len(poem.val) < 1.01 * 10**5
    train, val = poem.decode(poem.train), poem.decode(poem.val)
    speeches = ["\n".join(val.splitlines()[i : i + 4]) for i in range(0, val.count("\n"), 4)]
    assert sum(s in train for s in speeches[:200]) == 0  # nothing to learn by heart


def test_the_oracle_of_verse_meets_its_rate(poem):
    assert poem.oracle.shape == poem.val.shape and poem.oracle.dtype == torch.float64
    assert (poem.oracle >= -1e-12).all()
    assert poem.oracle_loss(0, len(poem.val)) == pytest.approx(poem.entropy_rate, rel=0.01)
    assert poem.oracle_loss(10, 30) == pytest.approx(poem.oracle[10:30].mean().item())


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_no_n_gram_comes_near_the_entropy_rate(poem, order):
    """A table of what followed each context in train, add-1/100 smoothed, pays more on val than the oracle does."""
    v, counts = len(poem.vocab), {}
    train, val = poem.decode(poem.train), poem.decode(poem.val)
    for i in range(order - 1, len(train)):
        key = train[i - order + 1 : i + 1]
        counts[key] = counts.get(key, 0) + 1
    totals = {}
    for key, n in counts.items():
        totals[key[:-1]] = totals.get(key[:-1], 0) + n
    keys = [val[i - order + 1 : i + 1] for i in range(order - 1, 30_000)]
    loss = -sum(math.log((counts.get(k, 0) + 0.01) / (totals.get(k[:-1], 0) + 0.01 * v)) for k in keys) / len(keys)
    assert loss > poem.entropy_rate + 0.1
    if order == 1:
        assert loss == pytest.approx(poem.unigram_entropy, rel=0.01)


# files


def test_a_file_of_your_own(tmp_path):
    file = tmp_path / "mine.txt"
    file.write_text("Ünïcode, twice over. " * 20, encoding="utf-8")
    c = text(file)
    assert c.name == "mine.txt" and c.decode(torch.cat([c.train, c.val])) == "Ünïcode, twice over. " * 20
    assert len(c.train) == 378 and len(c.val) == 42
    assert c.vocab == tuple(sorted(set("Ünïcode, twice over. "))) and c.oracle is None and c.entropy_rate is None
    assert torch.equal(text(str(file)).val, c.val)


def test_the_text_is_the_same_however_its_file_marks_its_beginning_and_its_lines(tmp_path):
    file, said = tmp_path / "dos.txt", "one\ntwo\n\tthree \x0b\x1b[1mfour\ufeff\n" * 3
    for mark in (b"", b"\xef\xbb\xbf"):
        for end in (b"\n", b"\r\n", b"\r"):
            file.write_bytes(mark + said.encode().replace(b"\n", end))
            c = text(file)
            assert c.decode(torch.cat([c.train, c.val])) == said


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"short", "too short: 5 characters"),
        (b"caf\xe9 au lait, caf\xe9 noir", r"not UTF-8 text \(byte 3\)"),
        ("to be or not".encode("utf-16"), "f.txt is UTF-16.*save it as UTF-8"),
        ("to be or not".encode("utf-16-le"), r"'\\x00' at character 1.*Save UTF-16 as UTF-8"),
        (bytes([7, 0, 12, 0, 64, 1, 3, 0, 9, 0, 9, 0]), "'.x07' at character 0.*of token ids give the text"),
        (bytes([30, 9, 10, 65, 32, 32, 32, 32, 32, 32]), "'.x1e' at character 0"),
    ],
)
def test_files_that_are_no_text_are_refused(tmp_path, content, message):
    (tmp_path / "f.txt").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        text(tmp_path / "f.txt")


def test_a_short_text_is_refused_where_windows_are_cut(tmp_path):
    (tmp_path / "f.txt").write_bytes(PLAY)
    c = text(tmp_path / "f.txt")
    with pytest.raises(ValueError, match=r"the val split has 41 tokens, a window needs 129"):
        c.windows("val", 1, 128)


@pytest.mark.parametrize("read", [text, shakespeare])
def test_files_that_are_not_there_are_named(tmp_path, read):
    for path in (tmp_path / "none.txt", tmp_path if read is text else tmp_path / "x" / "y"):
        with pytest.raises(FileNotFoundError, match=str(path)):
            read(path)


# shakespeare: path, environment, cache, network


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A stand-in for the text, an empty cache, no FOURIERQK_DATA, and mirrors on this machine that obey a script.

    The fixture is the list of answers that the mirrors give, in order: bytes, or a status; the last one repeats.
    """
    answers: list[bytes | int | str] = []
    asked: list[str] = []

    class Mirror(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            answer = answers[min(len(asked), len(answers)) - 1]
            if isinstance(answer, int):
                return self.send_error(answer)
            self.send_response(200)
            self.send_header("Content-Length", str(len(PLAY) if answer == "cut" else len(answer)))
            self.end_headers()
            self.wfile.write(PLAY[:100] if answer == "cut" else answer)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Mirror)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(tinyshakespeare, "MIRRORS", (f"{host}/a", f"{host}/b"))
    monkeypatch.setattr(tinyshakespeare, "PAUSES", (0, 0, 0))
    monkeypatch.setattr(tinyshakespeare, "SHA256", tinyshakespeare._digest(PLAY))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("FOURIERQK_DATA", raising=False)
    answers_and_log = type("Library", (), {"answers": answers, "asked": asked, "cache": tmp_path / "cache/fourierqk"})
    yield answers_and_log
    server.shutdown()
    server.server_close()


def is_play(c: Corpus) -> bool:
    return c.name == "shakespeare" and c.decode(torch.cat([c.train, c.val])).encode() == PLAY


def test_the_text_is_fetched_once_and_then_read_from_the_cache(library):
    library.answers += [PLAY]
    assert is_play(shakespeare()) and is_play(shakespeare())
    assert library.asked == ["/a"]
    assert [f.name for f in library.cache.iterdir()] == ["tinyshakespeare.txt"]


@pytest.mark.parametrize("trouble", [[429], [403, 429, 503], [b"<html>sign in</html>"], ["cut"], [404, 404, PLAY[:-1]]])
def test_mirrors_that_refuse_or_send_rubbish_are_asked_again(library, trouble):
    library.answers += [*trouble, PLAY]
    assert is_play(shakespeare())
    assert library.asked == (["/a", "/b"] * 3)[: len(trouble) + 1]
    assert (library.cache / "tinyshakespeare.txt").read_bytes() == PLAY


@pytest.mark.parametrize(("answer", "said"), [(429, "429"), (PLAY[:-1], "not the text"), ("cut", "IncompleteRead")])
def test_when_all_mirrors_fail_the_error_says_why_and_names_three_ways_out(library, answer, said):
    library.answers += [answer]
    with pytest.raises(ConnectionError) as e:
        shakespeare()
    assert len(library.asked) == 6
    for words in (said, *tinyshakespeare.MIRRORS, "FOURIERQK_DATA", "path=", "verse()"):
        assert words in str(e.value)
    assert not library.cache.exists() or not list(library.cache.iterdir())  # nothing half written is kept


def test_without_a_network_the_error_is_as_clear(library, monkeypatch):
    monkeypatch.setattr(tinyshakespeare, "MIRRORS", ("http://127.0.0.1:9/a", "http://no-such-host.invalid/b"))
    with pytest.raises(ConnectionError, match="(?s)refused.*Three ways out"):
        shakespeare()


def test_a_damaged_cache_is_named_and_replaced(library):
    library.answers += [PLAY]
    library.cache.mkdir(parents=True)
    file = library.cache / "tinyshakespeare.txt"
    file.write_bytes(PLAY[:50])
    with pytest.warns(UserWarning, match=f"{file} is damaged .50 bytes"):
        assert is_play(shakespeare())
    assert file.read_bytes() == PLAY
    assert is_play(shakespeare())  # and now without a word


def test_a_damaged_cache_without_a_network_is_left_and_both_are_told(library):
    library.answers += [429]
    library.cache.mkdir(parents=True)
    (library.cache / "tinyshakespeare.txt").write_bytes(b"")
    with pytest.warns(UserWarning, match="damaged"), pytest.raises(ConnectionError, match="Three ways out"):
        shakespeare()
    assert [f.name for f in library.cache.iterdir()] == ["tinyshakespeare.txt"]


def test_a_write_that_fails_leaves_nothing_behind_and_the_text_is_still_given(library, monkeypatch):
    library.answers += [PLAY]

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tinyshakespeare.os, "replace", full)
    with pytest.warns(UserWarning, match="No space left"):
        assert is_play(shakespeare())
    assert not list(library.cache.iterdir())


@pytest.mark.parametrize("home", ["unknown", "closed"])
def test_who_has_no_home_reads_the_text_all_the_same(library, tmp_path, monkeypatch, home):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.chdir(tmp_path)
    if home == "unknown":
        monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as where neither HOME nor a password file tells
    else:
        monkeypatch.setenv("HOME", str(tmp_path / "file"))
        (tmp_path / "file").write_text("no folder can be made in this")
    library.answers += [PLAY]
    with pytest.warns(UserWarning, match="cannot keep the text in .*XDG_CACHE_HOME"):
        assert is_play(shakespeare())
    assert not (tmp_path / "~").exists()


def test_argument_before_environment_before_cache(library, tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "tinyshakespeare.txt").write_bytes(PLAY)
    for value in (folder, folder / "tinyshakespeare.txt"):
        monkeypatch.setenv("FOURIERQK_DATA", str(value))
        assert is_play(shakespeare())
    monkeypatch.setenv("FOURIERQK_DATA", str(tmp_path / "gone"))
    with pytest.raises(FileNotFoundError, match="gone .FOURIERQK_DATA names it"):
        shakespeare()
    assert is_play(shakespeare(folder)) and is_play(shakespeare(path=str(folder / "tinyshakespeare.txt")))
    assert library.asked == []  # none of this touched the network


def test_another_text_under_the_name_is_refused(library, tmp_path):
    (tmp_path / "hamlet.txt").write_bytes(b"To be, or not to be.")
    with pytest.raises(ValueError, match="is not tiny Shakespeare.*Use text"):
        shakespeare(tmp_path / "hamlet.txt")


def test_the_real_text_where_it_is_at_hand(plays):
    c = shakespeare()
    assert len(c.train) == 1_003_854 and len(c.val) == 111_540 and len(c.vocab) == 65
    assert c.decode(c.train[:14]) == "First Citizen:"
    assert c.unigram_entropy == pytest.approx(3.34, abs=0.005)


PINNED = [155, 57, 170, 98, 97, 99]  # the same on every machine, as random() is
VERSE_SHA256 = "24be51ac5bc30122249d3c9479a312e94682ab40b2d7e3c9e2fc3ac4531f5f42"
