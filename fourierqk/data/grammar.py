"""A text whose entropy is known: a small grammar that writes verse, its entropy rate, and its best predictor.

The grammar is a table. Each state offers choices; a choice has a text, a probability and the state that follows.
Three functions read the table, and share nothing else:

- ``write`` walks from state to state and keeps what it chose;
- ``entropy_rate`` solves for the share of time spent in each state: expected -log p of a choice over its expected
  characters, exact, since no two sequences of choices spell the same text;
- ``Oracle`` reads characters, never choices: it keeps the probability of every way the text so far can have come
  about, and so knows the probability of every next character.

The best predictor of a text is the one that knows the probabilities it was drawn with. On text it has not seen, no
model that reads only the past can do better on average.
"""
import bisect
import itertools
import math
import random
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Choice", "Grammar", "METRE", "Oracle", "VERSE", "entropy_rate", "shares", "write"]

State = Hashable


@dataclass(frozen=True)
class Choice:
    """One way out of a state: what it writes, how likely it is, and the state that follows."""

    text: str
    p: float
    next: State


@dataclass(frozen=True)
class Grammar:
    """A table of choices for each state, and the state that every text starts in and always comes back to.

    Raises ValueError for a state without choices or unknown to the table, probabilities that do not sum to 1, and
    choices that write nothing.
    """

    start: State
    rules: Mapping[State, Sequence[Choice]]

    def __post_init__(self) -> None:
        for state, choices in self.rules.items():
            total = math.fsum(c.p for c in choices)
            if not math.isclose(total, 1, rel_tol=1e-12):
                raise ValueError(f"state {state!r}: its probabilities sum to {total}, not to 1")
            for c in choices:
                if not c.text or not c.p > 0:
                    raise ValueError(f"state {state!r}: a choice must write something, with p > 0: {c}")
        for state in itertools.chain([self.start], (c.next for cs in self.rules.values() for c in cs)):
            if state not in self.rules:
                raise ValueError(f"state {state!r} is reached but has no choices")

    @property
    def vocab(self) -> tuple[str, ...]:
        """The characters it can write, sorted."""
        return tuple(sorted({ch for cs in self.rules.values() for c in cs for ch in c.text}))


def write(grammar: Grammar, length: int, seed: int | str) -> list[Choice]:
    """The choices of a text of at least `length` characters, ended where the walk is next back in the start state.

    Drawn with `random.Random(seed).random()`, which Python promises to keep: the same text on every machine.
    """
    u = random.Random(seed).random
    ladders = {s: [*itertools.accumulate(c.p for c in cs)] for s, cs in grammar.rules.items()}
    made, state, n = [], grammar.start, 0
    while n < length or state != grammar.start:
        choices = grammar.rules[state]
        c = choices[min(bisect.bisect_right(ladders[state], u()), len(choices) - 1)]
        made.append(c)
        state, n = c.next, n + len(c.text)
    return made


def entropy_rate(grammar: Grammar) -> float:
    """Nats per character in the long run: sum of pi(s) H(s) over sum of pi(s) E[characters written in s].

    pi are the `shares`. Exact as long as every text has one parse: then choices and characters carry the same
    information.
    """
    pi = shares(grammar).items()
    nats = math.fsum(w * -c.p * math.log(c.p) for s, w in pi for c in grammar.rules[s])
    return nats / math.fsum(w * c.p * len(c.text) for s, w in pi for c in grammar.rules[s])


def shares(grammar: Grammar) -> dict[State, float]:
    """How often each state is passed in the long run: the stationary distribution of the chain from the start."""
    states = list(_reached(grammar))
    at = {s: i for i, s in enumerate(states)}
    moves = torch.zeros(len(states), len(states), dtype=torch.float64)
    for s in states:
        for c in grammar.rules[s]:
            moves[at[s], at[c.next]] += c.p
    # pi (moves - 1) = 0 has one row too many: replace it by sum(pi) = 1
    system = (moves - torch.eye(len(states), dtype=torch.float64)).T
    system[-1] = 1
    ones = torch.zeros(len(states), dtype=torch.float64)
    ones[-1] = 1
    return dict(zip(states, torch.linalg.solve(system, ones).tolist(), strict=True))


def _reached(grammar: Grammar) -> Iterator[State]:
    """Every state that a text can pass through, once."""
    seen, todo = {grammar.start}, [grammar.start]
    while todo:
        yield (s := todo.pop())
        new = {c.next: None for c in grammar.rules[s] if c.next not in seen}
        seen.update(new)
        todo.extend(new)


Belief = tuple[tuple[tuple[State, str], float], ...]  # (((state that follows, letters till then), probability), ...)


class Oracle:
    """The best possible predictor of a grammar's text: the exact probability of each next character.

    It is the forward algorithm. A hypothesis is what is left of the current choice, and the state after it; a belief
    gives each hypothesis that agrees with the characters so far its probability. The next character has the
    probability of the hypotheses that start with it. These, scaled to sum to 1, are the next belief: Bayes' rule, so
    every step is P(character | all characters before it), and the steps multiply to P(text). A text with one parse
    has the probability of its choices, multiplied: over whole units the oracle's nats are their -log p, summed.
    """

    def __init__(self, grammar: Grammar) -> None:
        self._rules = grammar.rules
        self._beliefs: list[Belief] = []
        self._numbers: dict[Belief, int] = {}
        self._follows: dict[int, dict[str, tuple[float, int]]] = {}
        self.start = self._number(self._open(grammar.start, 1.0))  # the belief before the first character

    def _open(self, state: State, p: float) -> Belief:
        """All that a state can write."""
        return tuple(((c.next, c.text), p * c.p) for c in self._rules[state])

    def _number(self, belief: Belief) -> int:
        """Beliefs recur: each gets a number, so that what follows it is worked out once."""
        if belief not in self._numbers:
            self._numbers[belief] = len(self._beliefs)
            self._beliefs.append(belief)
        return self._numbers[belief]

    def follows(self, belief: int) -> dict[str, tuple[float, int]]:
        """Every character that can follow -> (its probability, the belief once it is read)."""
        if belief not in self._follows:
            groups: dict[str, dict[tuple[State, str], float]] = {}
            for (state, left), p in self._beliefs[belief]:
                group = groups.setdefault(left[0], {})
                for h, q in [((state, left[1:]), p)] if left[1:] else self._open(state, p):
                    group[h] = group.get(h, 0.0) + q
            totals = {ch: math.fsum(group.values()) for ch, group in groups.items()}
            self._follows[belief] = {
                ch: (p, self._number(tuple((h, q / p) for h, q in groups[ch].items()))) for ch, p in totals.items()
            }
        return self._follows[belief]

    def nats(self, text: str) -> Tensor:
        """-log P(character | the text before it) for each character of a text -> (len(text),) float64.

        The text must begin where the grammar begins. ValueError where the grammar cannot have written it.
        """
        belief, ps = self.start, []
        for i, ch in enumerate(text):
            follows = self.follows(belief)
            if ch not in follows:
                raise ValueError(f"the grammar cannot write {ch!r} at position {i}, after {text[max(0, i - 20) : i]!r}")
            p, belief = follows[ch]
            ps.append(p)
        return -torch.tensor(ps, dtype=torch.float64).log()


# The verse itself: dialogue in stanzas, in a tongue of our own. A word has three syllables, one of each kind below; a
# speech has four lines of three words, the first of which is the speaker's name. With the blank, or the stop and line
# break, behind it a word takes 7 characters on average, a line 21 and a speech 84: periods from which no filter of the
# zoo starts. Each speaker leans to two first syllables of his or her own; the last line rhymes with the second; no one
# speaks twice running.
#
#     IVOR: madabu sadako,
#     reveko sadape reveka
#     sadupi saviga relobon
#     renage salobu radaa.
#
# Real words would please more and teach less: their spelling takes a small model thousands of steps, these syllables a
# few hundred. What remains is chance, which no honest model can foresee and a look into the future can.

_FIRST = {"EDNA": "ma mi".split(), "IVOR": "ra re".split(), "MAUD": "sa so".split(), "RUTH": "te to".split()}
_SECOND = "na ne li lo da du vi ve".split()
_THIRD = "ka ko pe pi bon bu ga e".split()  # 2 letters on average: units nest with a small spread
_STOPS = [(",", 0.7), ("!", 0.3)]  # behind the first line
_LAST_STOPS = [(".", 0.7), ("?", 0.3)]
_FAVOUR = 4  # a speaker takes each syllable of its own this many times as often as one of another's

Shares = list[tuple[str, float]]  # (text, probability)


def _uniform(texts: Iterable[str]) -> Shares:
    texts = list(texts)
    return [(t, 1 / len(texts)) for t in texts]


def _favoured(who: str, first: Mapping[str, list[str]]) -> Shares:
    weights = {t: _FAVOUR if owner == who else 1 for owner, own in first.items() for t in own}
    return [(t, w / sum(weights.values())) for t, w in weights.items()]


def _vowel(syllable: str) -> str:
    return next(ch for ch in syllable if ch in "aeiou")


def _verse(first: Mapping[str, list[str]], third: list[str], stops: Shares) -> Grammar:
    """Speakers with the first syllables of each, third syllables, and what stands behind the first line."""
    rules: dict[State, list[Choice]] = {}

    def word(here: tuple, who: str, last: list[Choice]) -> None:
        """A word: two syllables, then one of the choices that end it and say what follows."""
        rules[here] = [Choice(t, p, (*here, "second")) for t, p in _favoured(who, first)]
        rules[*here, "second"] = [Choice(t, p, (*here, "third")) for t, p in _uniform(_SECOND)]
        rules[*here, "third"] = last

    def inner(after: State) -> list[Choice]:
        return [Choice(t + " ", p, after) for t, p in _uniform(third)]

    def closing(after: State, stops: Shares) -> list[Choice]:
        return [Choice(t + stop + "\n", p * q, after) for t, p in _uniform(third) for stop, q in stops]

    for who in first:
        rules["cue", who] = [Choice(f"{s}: ", p, (s, 1, 2)) for s, p in _uniform(s for s in first if s != who)]
        word((who, 1, 2), who, inner((who, 1, 3)))
        word((who, 1, 3), who, closing((who, 2, 1), stops))
        word((who, 2, 1), who, inner((who, 2, 2)))
        word((who, 2, 2), who, inner((who, 2, 3)))
        word((who, 2, 3), who, [Choice(t + "\n", p, (who, 3, 1, _vowel(t))) for t, p in _uniform(third)])
        for rhyme in "aeiou":  # remembered for two lines
            word((who, 3, 1, rhyme), who, inner((who, 3, 2, rhyme)))
            word((who, 3, 2, rhyme), who, inner((who, 3, 3, rhyme)))
            word((who, 3, 3, rhyme), who, closing((who, 4, 1, rhyme), [("", 1.0)]))
            word((who, 4, 1, rhyme), who, inner((who, 4, 2, rhyme)))
            word((who, 4, 2, rhyme), who, inner((who, 4, 3, rhyme)))
            word((who, 4, 3, rhyme), who, [Choice(rhyme + stop + "\n", q, ("cue", who)) for stop, q in _LAST_STOPS])
    return Grammar(("cue", [*first][-1]), rules)


VERSE = _verse(_FIRST, _THIRD, _STOPS)

# The same with every unit of one length: five letters a name, two a syllable, no stop behind the first line. A word
# takes 7 characters, a line 21, a speech 84, always: if a filter gains by a rhythm, it gains here.
_NAMES = ("BASIL", "CLARA", "EDITH", "RUFUS")
METRE = _verse(dict(zip(_NAMES, _FIRST.values(), strict=True)), "ka ko pe pi bo bu ga ge".split(), [("", 1.0)])
