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
from collections.abc import Hashable, Iterator, Mapping, Sequence
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
    """A table of choices for each state, and the state that every text starts in.

    Raises ValueError for a state without choices or unknown to the table, probabilities that do not sum to 1, and
    choices that write nothing.
    """

    start: State
    rules: Mapping[State, Sequence[Choice]]

    def __post_init__(self) -> None:
        for state, choices in self.rules.items():
            if not math.isclose(math.fsum(c.p for c in choices), 1, rel_tol=1e-12):
                raise ValueError(f"state {state!r}: its probabilities sum to {math.fsum(c.p for c in choices)}, not to 1")
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
    """The choices of a text of at least `length` characters, ended where the walk is back in the start state.

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


Belief = tuple[tuple[tuple[State, str], float], ...]  # ((state that follows, characters still to come), probability)


class Oracle:
    """The best possible predictor of a grammar's text: the exact probability of each next character.

    It is the forward algorithm. A hypothesis is (what is left of the current choice, the state after it); a belief
    gives each hypothesis that agrees with the characters so far its probability. The probability of a character is
    the share of the belief whose next character it is. The belief that remains, scaled to 1, is by Bayes' rule the
    exact posterior, so each step is P(character | all characters before) and the steps multiply to P(text). Where a
    text has one parse, P(text) is the product of the choices' probabilities: over whole units, the oracle's nats are
    the choices' -log p, summed.
    """

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.start = self._open([(grammar.start, 1.0)])
        self._known: dict[Belief, dict[str, tuple[float, Belief]]] = {}

    def _open(self, ready: Sequence[tuple[State, float]]) -> Belief:
        """The belief in which each of these states is about to choose."""
        return tuple(((c.next, c.text), w * c.p) for s, w in ready for c in self.grammar.rules[s])

    def next(self, belief: Belief) -> dict[str, tuple[float, Belief]]:
        """character -> (its probability, the belief once it was read), for every character that can follow."""
        if belief not in self._known:
            parts: dict[str, dict[tuple[State, str], float]] = {}
            for (state, rest), w in belief:
                part = parts.setdefault(rest[0], {})
                opened = [((state, rest[1:]), w)] if rest[1:] else self._open([(state, w)])
                for h, v in opened:
                    part[h] = part.get(h, 0.0) + v
            self._known[belief] = {}
            for ch, part in parts.items():
                p = math.fsum(part.values())
                self._known[belief][ch] = p, tuple((h, v / p) for h, v in part.items())
        return self._known[belief]

    def nats(self, text: str) -> Tensor:
        """-log P(character | the text before it) for each character of a text -> (len(text),) float64.

        Raises ValueError where the grammar cannot have written the text.
        """
        belief, out = self.start, []
        for i, ch in enumerate(text):
            follows = self.next(belief)
            if ch not in follows:
                raise ValueError(f"this grammar never writes {ch!r} at position {i}, after {text[max(0, i - 20) : i]!r}")
            p, belief = follows[ch]
            out.append(p)
        return -torch.tensor(out, dtype=torch.float64).log()


# The verse itself. A speech is a stanza of 4 lines of 3 words. With the blank or the stop behind it, a word takes 7
# characters on average, hence a line 21 and a speech 84: periods from which no filter of the zoo starts. The second
# and the fourth line rhyme, and each speaker has favourite images.
#
#     MAUDE: Gather storms,
#     Silver rivers glisten
#     Beneath lonely stars,
#     Gentle ravens listen.

_SPEAKERS = ("EDRIC", "MAUDE", "ROWAN", "SYBIL")
_CALLS = "Gather Summon Follow Answer Forget Kindle Praise Behold Forgive Silence Welcome Mourn Seek Trust".split()
_PLACES = "Beneath Beyond Within Before Beside Across Among".split()
_HUES = "Silver Golden Broken Frozen Gentle Lonely Hollow Silent Bitter Wicked Noble Sacred Weary Ancient".split()
_BEINGS = {
    "EDRIC": "heroes towers castles armies".split(),
    "MAUDE": "maidens meadows roses gardens".split(),
    "ROWAN": "rivers sailors oceans ravens".split(),
    "SYBIL": "shadows planets angels voices".split(),
}
_THINGS = {
    "EDRIC": "kings swords crowns wars".split(),
    "MAUDE": "songs thorns bells doves".split(),
    "ROWAN": "waves storms sails winds".split(),
    "SYBIL": "stars ghosts dreams tombs".split(),
}
_RHYMES = {
    "isten": "glisten listen".split(),
    "umble": "tumble crumble stumble rumble".split(),
    "atter": "scatter chatter shatter".split(),
    "immer": "glimmer shimmer".split(),
    "utter": "flutter mutter stutter".split(),
    "iver": "shiver quiver".split(),
    "onder": "wander ponder".split(),
    "icken": "quicken sicken thicken".split(),
}
_FAVOUR = 6  # a speaker takes an image of its own this many times as often as one of another's


def _shares(weights: Mapping[str, float]) -> list[tuple[str, float]]:
    total = sum(weights.values())
    return [(word, w / total) for word, w in weights.items()]


def _images(speaker: str, words: Mapping[str, Sequence[str]]) -> list[tuple[str, float]]:
    return _shares({w: _FAVOUR if s == speaker else 1 for s in words for w in words[s]})


def _even(words: Sequence[str]) -> list[tuple[str, float]]:
    return _shares(dict.fromkeys(words, 1))


def _stops(shares: list[tuple[str, float]], stops: Mapping[str, float]) -> list[tuple[str, float]]:
    return [(w + s + "\n", p * q) for w, p in shares for s, q in stops.items()]


def _speech(rules: dict[State, list[Choice]], who: str) -> None:
    hues = [(w + " ", p) for w, p in _even(_HUES)]
    beings = [(w + " ", p) for w, p in _images(who, _BEINGS)]
    things = _images(who, _THINGS)

    def rule(line: int, word: int, rhyme: str | None, options: list[tuple[str, float]], next: State) -> None:
        rules[who, line, word, rhyme] = [Choice(t, p, next) for t, p in options]

    rule(1, 2, None, [(w + " ", p) for w, p in _even(_CALLS)], (who, 1, 3, None))
    rule(1, 3, None, _stops(things, {",": 0.7, "!": 0.3}), (who, 2, 1, None))
    rule(2, 1, None, hues, (who, 2, 2, None))
    rule(2, 2, None, beings, (who, 2, 3, None))
    rules[who, 2, 3, None] = [
        Choice(w + "\n", 1 / len(_RHYMES) / len(ws), (who, 3, 1, r)) for r, ws in _RHYMES.items() for w in ws
    ]
    for r, ws in _RHYMES.items():
        rule(3, 1, r, [(w + " ", p) for w, p in _even(_PLACES)], (who, 3, 2, r))
        rule(3, 2, r, [(w.lower(), p) for w, p in hues], (who, 3, 3, r))
        rule(3, 3, r, _stops(things, {",": 1}), (who, 4, 1, r))
        rule(4, 1, r, hues, (who, 4, 2, r))
        rule(4, 2, r, beings, (who, 4, 3, r))
        rule(4, 3, r, _stops(_even(ws), {".": 0.7, "?": 0.3}), "speech")


def _verse() -> Grammar:
    rules: dict[State, list[Choice]] = {"speech": [Choice(s + ": ", 1 / len(_SPEAKERS), (s, 1, 2, None)) for s in _SPEAKERS]}
    for who in _SPEAKERS:
        _speech(rules, who)
    return Grammar("speech", rules)


VERSE = _verse()
