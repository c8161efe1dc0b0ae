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

__all__ = ["Choice", "Grammar", "Oracle", "VERSE", "entropy_rate", "write"]

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

    pi is the stationary distribution of the chain of states reached from the start. Exact as long as every text has
    one parse: then choices and characters carry the same information.
    """
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
    pi = torch.linalg.solve(system, ones).tolist()
    nats = math.fsum(w * -c.p * math.log(c.p) for s, w in zip(states, pi, strict=True) for c in grammar.rules[s])
    characters = math.fsum(w * c.p * len(c.text) for s, w in zip(states, pi, strict=True) for c in grammar.rules[s])
    return nats / characters


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


# The verse itself: dialogue in stanzas. A speech has 4 lines of 3 words. With the blank, or the stop and line break,
# behind it a word takes 7 characters on average, hence a line 21 and a speech 84: periods from which no filter of the
# zoo starts. Each speaker has images of its own; the last line rhymes with the second; no one speaks twice running.
#
#     IVO: Gather storms,
#     Silver sailors sleep
#     Beneath lonely stars,
#     Tender shadows weep.

_CALLS = "Answer Behold Cherish Follow Forget Gather Kindle Mourn Praise Summon Trust Welcome".split()
_PLACES = "Above Among Beneath Beyond Through Within".split()
_HUES = "Ancient Bitter Broken Crimson Frozen Golden Hollow Lonely Noble Proud Silent Silver Tender Wicked".split()
_BEINGS = {  # what a line is about
    "EDRIC": "armies castles heroes kings".split(),
    "IVO": "oceans ravens sailors tides".split(),
    "MAUD": "doves gardens maidens roses".split(),
    "RUTH": "angels comets moths shadows".split(),
}
_THINGS = {  # what a line ends on
    "EDRIC": "crowns swords vows wars".split(),
    "IVO": "oars storms waves winds".split(),
    "MAUD": "bees bells songs thorns".split(),
    "RUTH": "ghosts lamps owls stars".split(),
}
_RHYMES = [
    "crumble grumble stumble tumble".split(),
    "abide collide divide subside".split(),
    "believe deceive grieve weave".split(),
    "creep sleep sweep weep".split(),
]
_FIRST_STOPS = [(",", 0.5), ("!", 0.3), (";", 0.2)]
_LAST_STOPS = [(".", 0.6), ("?", 0.2), ("!", 0.2)]
_FAVOUR = 3  # a speaker takes each image of its own this many times as often as one of another's

Shares = list[tuple[str, float]]  # (text, probability)


def _even(words: Iterable[str]) -> Shares:
    words = list(words)
    return [(w, 1 / len(words)) for w in words]


def _images(who: str, words: Mapping[str, Sequence[str]]) -> Shares:
    weights = {w: _FAVOUR if owner == who else 1 for owner in words for w in words[owner]}
    return [(w, weight / sum(weights.values())) for w, weight in weights.items()]


def _close(words: Shares, stops: Shares) -> Shares:
    """Words that end a line, each with a stop chosen on its own."""
    return [(w + stop + "\n", p * q) for w, p in words for stop, q in stops]


def _line(rules: dict[State, list[Choice]], names: Sequence[State], slots: Sequence[Shares]) -> None:
    """Words chosen regardless of each other: state names[i] chooses from slots[i], then comes names[i + 1]."""
    for here, slot, after in zip(names, slots, names[1:], strict=False):
        rules[here] = [Choice(t if t.endswith("\n") else t + " ", p, after) for t, p in slot]


def _verse() -> Grammar:
    rules: dict[State, list[Choice]] = {}
    hues = _even(_HUES)
    lower = _even(h.lower() for h in _HUES)
    verbs = [v for rhyme in _RHYMES for v in rhyme]
    for who in _BEINGS:
        beings, things = _images(who, _BEINGS), _images(who, _THINGS)
        others = [s for s in _BEINGS if s != who]
        rules["cue", who] = [Choice(f"{s}: ", p, ("call", s)) for s, p in _even(others)]  # who has just spoken
        _line(rules, [("call", who), ("called", who), ("scene", who)], [_even(_CALLS), _close(things, _FIRST_STOPS)])
        _line(rules, [("scene", who), ("being", who), ("verb", who)], [hues, beings])
        rules["verb", who] = [Choice(v + "\n", p, ("place", who, v)) for v, p in _even(verbs)]
        for rhyme in _RHYMES:
            for v in rhyme:  # remembered for two lines
                echo = _even(w for w in rhyme if w != v)
                parts = ("place", "hue", "thing", "turn", "being", "rhyme")
                names = [*((part, who, v) for part in parts), ("cue", who)]
                slots = [_even(_PLACES), lower, _close(things, _even([","])), hues, beings, _close(echo, _LAST_STOPS)]
                _line(rules, names, slots)
    return Grammar(("cue", "RUTH"), rules)


VERSE = _verse()
