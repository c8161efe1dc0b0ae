"""Words as tokens: every text comes back whole, training alone decides what a word is, losses compare per character."""
import random
import re

import pytest
import torch

from fourierqk.data import words
from fourierqk.data.corpus import Corpus, shakespeare, text
from fourierqk.losses import ordered_loss

PROSE = "To be, or not to be: that's the question.\n\tDon't ask 'twas it 42 times -- ask twice, ask it TWICE! \n" * 12
RARE = "Äpfel und Birnen, ﬁn e\u0301tude \U0001f600 x_y 3rd o'clock o’clock ''quoted'' "
ALPHABET = PROSE[:103] + RARE


def corpus(content: str, tmp_path, level: str = "word") -> Corpus:
    (tmp_path / "mine.txt").write_bytes(content.encode())
    return text(tmp_path / "mine.txt", level=level)


def nonsense(length: int, rng: random.Random) -> str:
    """Characters of the alphabet and pieces of the prose, in any order: words cut in two, run together, upside down."""
    made = ""
    while len(made) < length:
        at = rng.randrange(len(ALPHABET))
        made += rng.choice([ALPHABET[at], ALPHABET[at : at + rng.randrange(12)], PROSE[at : at + 9][::-1], " "])
    return made[:length]


@pytest.mark.parametrize("seed", range(40))
def test_every_text_over_the_characters_comes_back_whole(seed, tmp_path):
    rng = random.Random(seed)
    c = corpus(PROSE + RARE, tmp_path)
    for t in (nonsense(rng.randrange(200), rng), PROSE + RARE, ""):
        ids = c.encode(t)
        assert c.decode(ids) == t and ids.dtype == torch.int64
        assert c.characters(ids).sum() == len(t) and len(ids) <= len(t)


@pytest.mark.parametrize("seed", range(5))
def test_a_vocabulary_of_characters_codes_a_text_as_single_characters_do(seed):
    t, vocab = nonsense(300, random.Random(seed)), tuple(sorted({*ALPHABET}))
    ids = [vocab.index(ch) for ch in t]
    assert words.encode(t, vocab, "x").tolist() == ids
    longer = (*vocab, "unheardof")
    assert words.encode(t, longer, "x").tolist() == ids  # a word that does not occur changes nothing


def test_words_spaces_and_marks_are_tokens_and_rare_words_are_spelt(tmp_path):
    c = corpus(PROSE + RARE, tmp_path)
    assert [c.vocab[i] for i in c.encode("Don't ask.\n")] == ["Don't", " ", "ask", ".", "\n"]
    assert [c.vocab[i] for i in c.encode("  basked")] == [" ", " ", *"basked"]  # no word within a word
    assert [c.vocab[i] for i in c.encode("42")] == ["4", "2"]
    assert [c.vocab[i] for i in c.encode("'twas'")] == ["'", "twas", "'"]


def test_cutting_by_hand():
    cut = words.cut("O, 'tis the heart's-ease o’ the re\u0301s_1!")
    assert cut == [
        "O", ",", " ", "'", "tis", " ", "the", " ", "heart's", "-", "ease", " ", "o", "’", " ", "the", " ",
        "re", "\u0301", "s", "_", "1", "!",
    ]  # fmt: skip


def test_the_vocabulary_is_the_most_frequent_words_of_training_in_a_fixed_order():
    train = "bb cc dd aa bb cc bb once I I I"
    vocab = words.vocabulary(train + " new new new Z", train)
    assert vocab == tuple(sorted({*train, *"new Z"})) + ("bb", "cc")  # dd, aa: seen once; new: not in training
    assert words.vocabulary(train, train + " aa", size=2)[-2:] == ("bb", "aa")  # of equals the first in code order
    assert all(len(w) == 1 for w in words.vocabulary(train, train, size=0))


def test_no_word_comes_from_the_held_out_part(tmp_path):
    c = corpus("one two one two " * 90 + "three " * 25 + "thr", tmp_path)
    assert set(c.vocab) == {*"one two three"} | {"one", "two"}
    assert set(c.decode(c.val).split()) > {"three"} and c.vocab[c.train[0]] == "one"


def test_both_levels_hold_the_same_text_on_either_side(tmp_path):
    char, word = (corpus(PROSE + RARE, tmp_path, level) for level in ("char", "word"))
    for split in ("train", "val"):
        assert char.decode(getattr(char, split)) == word.decode(getattr(word, split))
    assert char.chars_per_token == 1 and (char.characters(char.val) == 1).all()
    assert (char.name, word.name) == ("mine.txt", "mine.txt-words") and word.sha256 != char.sha256


@pytest.mark.parametrize("level", ["char", "word"])
def test_a_loss_over_chars_per_token_is_what_a_character_of_the_text_costs(level, tmp_path):
    """A predictor with fixed odds: its bill for the held-out text, by hand, over the characters of that text."""
    c = corpus((PROSE + RARE) * 10, tmp_path, level)
    logits = torch.linspace(-2, 2, len(c.vocab))
    bill = -logits.double().log_softmax(0)[c.val].sum() / len(c.decode(c.val))
    loss = ordered_loss(lambda ids: logits.expand(*ids.shape, -1), c, length=5, windows=4000)
    assert loss.mean / c.chars_per_token == pytest.approx(float(bill), abs=4 * loss.se)
    assert 10 * loss.se < bill  # tight enough to tell a character from a token

    starts, _, y = c.windows("val", 4000, 5, seed=1)
    spelt = [len(c.decode(c.val[s + 1 : s + 6])) for s in starts.tolist()]
    assert c.characters(y).sum(1).tolist() == spelt and c.characters(y).shape == y.shape


def test_a_character_that_is_not_there_is_named_with_its_place(tmp_path):
    c = corpus(PROSE, tmp_path)
    for bad in ("é", "\ud800", "\U0001f600"):
        with pytest.raises(ValueError, match=re.escape(f"mine.txt-words has no {bad!r} (position 4 of the text)")):
            c.encode(f"ask {bad}sk")


@pytest.mark.parametrize("level", ["words", "", None, 1])
def test_unknown_levels_are_refused_before_any_file_is_read(level, tmp_path):
    for read in (lambda: shakespeare(tmp_path / "no", level=level), lambda: corpus(PROSE, tmp_path, level)):
        with pytest.raises(ValueError, match="unknown level .*: did you mean word|there are char, word"):
            read()


def test_the_real_text_where_it_is_at_hand(plays):
    c, char = shakespeare(level="word"), shakespeare()
    assert len(c.vocab) == 65 + words.SIZE and c.vocab[:65] == char.vocab
    assert c.decode(c.train) == char.decode(char.train) and c.decode(c.val) == char.decode(char.val)
    assert c.vocab[65:68] == ("the", "to", "and")
    units = words.cut(char.decode(char.train))
    vocab = {*c.vocab}
    known = sum(u in vocab for u in units if len(u) > 1) / sum(len(u) > 1 for u in units)
    assert known == pytest.approx(0.92, abs=0.005)  # as words.py says
    assert units.count(c.vocab[-1]) == 4
