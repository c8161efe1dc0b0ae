"""The verse grammar: its texts parse, its rate is exact, its oracle equals brute force, its scales are there."""
import math
from collections.abc import Iterator

import pytest
import torch

from fourierqk.data.corpus import metre, verse
from fourierqk.data.grammar import METRE, VERSE, Choice, Grammar, Oracle, entropy_rate, write
from fourierqk.model import GPTConfig, filter_parameters
from fourierqk.zoo import SYSTEMS, build


def grammar(**rules: str) -> Grammar:
    """A tiny grammar: state="text:weight>next ..." with weights that sum to 1; the first state is the start."""
    table = {}
    for state, choices in rules.items():
        parts = [c.replace(">", ":").split(":") for c in choices.split()]
        table[state] = [Choice(text, float(p), after) for text, p, after in parts]
    return Grammar(next(iter(rules)), table)


# Words that begin alike, a state that remembers, units of several lengths; each text still has one parse.
TINY = grammar(
    line="a:.5>noun ab:.3>noun b:.2>verb",
    noun="cd:.6>end ca:.4>verb",
    verb="dd:.7>end dab:.3>noun",
    end=".:.8>line !!:.2>line",
)
# Choices that begin other choices: the past leaves several histories open, and some texts have several parses.
AMBIGUOUS = grammar(s="a:.5>s ab:.2>t b:.3>t", t="a:.4>s ba:.35>t b:.25>s")
COIN = grammar(s="h:.5>s t:.5>s")


def parses(g: Grammar, text: str, state=None) -> Iterator[list[Choice]]:
    """Every sequence of choices that spells exactly this text: recursive descent, no probabilities."""
    stack = [(0, g.start if state is None else state, [])]
    while stack:
        at, s, made = stack.pop()
        if at == len(text):
            yield made
        stack.extend((at + len(c.text), c.next, [*made, c]) for c in g.rules[s] if text.startswith(c.text, at))


def prefix_probability(g: Grammar, prefix: str, state=None) -> float:
    """P(the text begins with prefix), by enumeration of every sequence of choices that reaches its end."""
    total = 0.0
    for c in g.rules[g.start if state is None else state]:
        if prefix.startswith(c.text) and c.text != prefix:
            total += c.p * prefix_probability(g, prefix[len(c.text) :], c.next)
        elif c.text.startswith(prefix):
            total += c.p
    return total


def spell(choices: list[Choice]) -> str:
    return "".join(c.text for c in choices)


def nats(choices: list[Choice]) -> float:
    return -math.fsum(math.log(c.p) for c in choices)


@pytest.mark.parametrize("g", [TINY, VERSE, METRE], ids=["tiny", "verse", "metre"])
@pytest.mark.parametrize("seed", range(5))
def test_a_text_parses_back_to_the_choices_that_made_it_and_to_nothing_else(g, seed):
    made = write(g, 2000, seed)
    assert list(parses(g, spell(made))) == [made]


@pytest.mark.parametrize("g", [TINY, AMBIGUOUS, COIN], ids=["tiny", "ambiguous", "coin"])
def test_the_oracle_equals_brute_force_enumeration(g):
    oracle = Oracle(g)
    for seed in range(12):
        text = spell(write(g, 12, seed))[:12]
        p = [prefix_probability(g, text[:n]) for n in range(1, len(text) + 1)]
        expected = -torch.tensor([b / a for a, b in zip([1.0, *p], p, strict=False)], dtype=torch.float64).log()
        torch.testing.assert_close(oracle.nats(text), expected, rtol=1e-10, atol=1e-12)


def test_the_oracle_equals_brute_force_on_the_verse_itself():
    text = spell(write(VERSE, 300, "brute"))[:170]  # two speeches: past the rhyme and the next speaker
    got = Oracle(VERSE).nats(text).cumsum(0)
    for n in (1, 2, 5, 20, 43, 80, 84, 90, 170):
        assert got[n - 1].item() == pytest.approx(-math.log(prefix_probability(VERSE, text[:n])), rel=1e-12)


@pytest.mark.parametrize("g", [TINY, VERSE, METRE], ids=["tiny", "verse", "metre"])
def test_over_whole_units_the_oracle_pays_what_the_choices_cost(g):
    made = write(g, 3000, "whole")
    got = Oracle(g).nats(spell(made))
    ends = torch.tensor([len(c.text) for c in made]).cumsum(0) - 1
    costs = -torch.tensor([c.p for c in made], dtype=torch.float64).log()
    # TINY's "a" may still become "ab" when it is complete: only where the next letter has told are the sums equal
    whole = [i for i, c in enumerate(made) if c.next == g.start or g is VERSE]
    torch.testing.assert_close(got.cumsum(0)[ends][whole], costs.cumsum(0)[whole], rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize("g", [TINY, AMBIGUOUS, VERSE], ids=["tiny", "ambiguous", "verse"])
def test_next_character_probabilities_sum_to_one_in_every_state_a_text_can_reach(g):
    oracle, vocab = Oracle(g), set(g.vocab)
    seen, todo = {oracle.start}, [oracle.start]
    while todo and len(seen) < 20_000:  # beliefs of an ambiguous grammar need not recur
        follows = oracle.follows(todo.pop())
        assert abs(math.fsum(p for p, _ in follows.values()) - 1) < 1e-12
        assert set(follows) <= vocab
        new = {b for _, b in follows.values()} - seen
        seen |= new
        todo += new
    assert g is AMBIGUOUS or not todo  # all of them were visited
    assert len(seen) > len(g.rules)


def test_the_oracle_refuses_what_the_grammar_cannot_have_written():
    with pytest.raises(ValueError, match="cannot write 'z' at position 3, after 'acd'"):
        Oracle(TINY).nats("acdz")


def test_entropy_rates_in_closed_form():
    assert entropy_rate(COIN) == pytest.approx(math.log(2), rel=1e-14)
    # one bit for one letter half the time, for three letters the other half
    assert entropy_rate(grammar(s="h:.5>s ttt:.5>s")) == pytest.approx(math.log(2) / 2, rel=1e-14)
    # two states visited 1 : 2 (pi = moves pi), entropies ln 2 and 0
    assert entropy_rate(grammar(s="a:.5>t b:.5>t", t="c:1>u", u="d:1>s")) == pytest.approx(math.log(2) / 3, rel=1e-14)
    # a state that no text reaches does not count
    assert entropy_rate(grammar(s="h:.5>s t:.5>s", t="x:1>s")) == pytest.approx(math.log(2), rel=1e-14)


@pytest.mark.parametrize("g", [TINY, VERSE, METRE], ids=["tiny", "verse", "metre"])
def test_empirical_entropy_meets_the_exact_rate_within_four_standard_errors(g):
    cost, size = [], []
    for seed in range(40):
        made = write(g, 10_000, f"rate {seed}")
        cost.append(nats(made))
        size.append(len(spell(made)))
    cost, size = torch.tensor(cost, dtype=torch.float64), torch.tensor(size, dtype=torch.float64)
    rate = cost.sum() / size.sum()
    se = ((cost - rate * size) / size.mean()).std() / len(size) ** 0.5
    assert se < 0.005 * rate  # sharp enough to see an error of 2 %
    assert abs(rate - entropy_rate(g)) < 4 * se


def test_the_verse_is_rich_enough_to_be_read_and_poor_enough_to_be_learned():
    assert 0.6 <= entropy_rate(VERSE) <= 1.0
    assert 30 <= len(VERSE.vocab) <= 40


def test_units_nest_by_whole_factors_with_some_spread():
    made = write(VERSE, 200_000, "lengths")
    text = spell(made)
    lines = text.splitlines()
    words, turns = text.split(), speeches(text)
    for units, mean in ((words, 7), (lines, 21), (turns, 84)):
        lengths = torch.tensor([float(len(u) + 1) for u in units])  # with the blank or line break behind
        assert lengths.mean().item() == pytest.approx(mean, rel=0.002)
        assert 0.2 < lengths.std() < 0.15 * mean
    assert len(lines) == 4 * len(turns) and len(words) == 3 * len(lines)


def speeches(text: str) -> list[str]:
    lines = text.splitlines()
    return ["\n".join(lines[i : i + 4]) for i in range(0, len(lines), 4)]


def test_lines_rhyme_speakers_alternate_and_keep_to_their_syllables():
    told = [s.replace("\n", " ").split() for s in speeches(spell(write(VERSE, 100_000, "form")))]
    assert all(s[0].isupper() and s[0].endswith(":") for s in told)
    assert all(a[0] != b[0] for a, b in zip(told, told[1:], strict=False))
    vowel = [(s[5].rstrip("n")[-1], s[11].rstrip(".?!")[-1]) for s in told]
    assert all(a == b for a, b in vowel) and {a for a, _ in vowel} == set("aeiou")
    # each syllable is said by its favourite speaker four times as often as by any other: 4 / (4 + 1 + 1 + 1)
    said = [s[0] for s in told if s[6].startswith("te")]
    share = said.count("RUTH:") / len(said)
    assert abs(share - 4 / 7) < 4 * (0.25 / len(said)) ** 0.5


def spectrum(ids: torch.Tensor, vocab: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The sum of the periodograms of a text's one-hot indicators, averaged over windows of 84 * 48 tokens."""
    n = 84 * 48
    x = torch.nn.functional.one_hot(ids[: len(ids) // n * n].view(-1, n), vocab).float()
    x = (x - x.mean(1, keepdim=True)) * torch.hann_window(n)[:, None]
    return torch.fft.rfftfreq(n), torch.fft.rfft(x, dim=1).abs().square().sum(-1).mean(0)


def peak(f: torch.Tensor, power: torch.Tensor, period: float) -> tuple[float, float]:
    """Where the spectrum is highest within 15 % of a period, and by what factor it stands out from that surrounding."""
    near = ((f * period - 1).abs() < 0.15).nonzero()[:, 0]
    top = near[power[near].argmax()]
    return 1 / f[top].item(), (power[top] / power[near].median()).item()


def test_the_spectrum_peaks_where_the_grammar_puts_it_and_not_once_shuffled():
    corpus = verse()
    ordered, shuffled = (spectrum(c.val, len(c.vocab)) for c in (corpus, corpus.shuffled(0)))
    for period in (7, 21, 84):
        at, height = peak(*ordered, period)
        assert at == pytest.approx(period, rel=0.02)
        assert height > 1.8
        assert peak(*shuffled, period)[1] < 1.5


def test_no_filter_that_learns_starts_at_a_scale_of_the_verse():
    starts = []
    for name in sorted(SYSTEMS.keys() - {"collapse-channels"}):  # its frequency runs over channels, not tokens
        model = build(name, GPTConfig(10, 16, n_layer=1, n_head=2, n_embd=8))
        starts += [1 / (torch.sigmoid(p) / 2) for p in filter_parameters(model)]  # a centre is a logit of twice f
    periods = torch.cat(starts).flatten()
    assert len(periods) > 0 and periods.min() > 2
    for scale in (7, 21, 84):
        assert ((periods / scale - 1).abs() > 0.15).all()


def test_the_same_seed_writes_the_same_text_and_another_seed_another():
    a, b = (spell(write(VERSE, 1000, s)) for s in ("one", "two"))
    assert a == spell(write(VERSE, 1000, "one")) and a != b
    assert a.startswith(OPENING)


OPENING = "MAUD: sodabon tovebon,\nsonega soliko soloko\n"  # pinned: the same on every machine


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"s": [Choice("a", 0.5, "s")]}, "sum to 0.5"),
        ({"s": [Choice("", 1.0, "s")]}, "must write something"),
        ({"s": [Choice("a", 1.5, "s"), Choice("b", -0.5, "s")]}, "p > 0"),
        ({"s": [Choice("a", 1.0, "t")]}, "'t' is reached but has no choices"),
        ({"t": [Choice("a", 1.0, "t")]}, "'s' is reached but has no choices"),
        ({"s": []}, "sum to 0"),
    ],
)
def test_a_grammar_that_makes_no_sense_is_refused(rules, message):
    with pytest.raises(ValueError, match=message):
        Grammar("s", rules)


def test_every_word_line_and_speech_of_metre_has_one_length():
    corpus = metre()
    text = corpus.decode(corpus.val)
    assert all((c == "\n") == (i % 21 == 20) for i, c in enumerate(text))
    assert all((c in " \n") == (i % 7 == 6) for i, c in enumerate(text))
    assert {text[i : i + 5] for i in range(0, len(text), 84)} == {"BASIL", "CLARA", "EDITH", "RUFUS"}
    assert text.count(":") * 84 == len(text)
