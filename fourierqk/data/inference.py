"""What hidden characters of a grammar's text are, given what stands on both sides: exact, by forward and backward sums.

A text of a grammar, read letter by letter, is a Markov chain: its state is what is left of the current choice, and the
state of the grammar after it. Each state shows one letter. So the probability of a hidden letter given all others is a
sum over paths, and two passes collect it (Baum et al. 1970; Rabiner 1989, equations 19 to 27).
"""
from collections.abc import Sequence

import torch
from torch import Tensor

from fourierqk.data.grammar import Grammar, State, shares

__all__ = ["Chain"]

ROWS = 32  # texts at a time, for memory's sake


class Chain:
    """A grammar as a Markov chain of letters, in its long run.

    vocab: the letters that the grammar writes, in the order of their ids. An id beyond them stands for a hidden letter.
    """

    def __init__(self, grammar: Grammar, vocab: Sequence[str]) -> None:
        often: dict[tuple[State, str], float] = {}  # how often each state of the chain is met: (state to come, left)
        for state, share in shares(grammar).items():
            for c in grammar.rules[state]:
                for start in range(len(c.text)):
                    place = c.next, c.text[start:]
                    often[place] = often.get(place, 0.0) + share * c.p
        number = {place: i for i, place in enumerate(often)}
        moves = [(number[place], number[then], p) for place in often for then, p in _moves(grammar, *place)]
        self._here, self._there = torch.tensor([move[:2] for move in moves]).T
        self._p = torch.tensor([p for *_, p in moves], dtype=torch.float64)[:, None]
        self._share = torch.tensor([*often.values()], dtype=torch.float64)
        self._share /= self._share.sum()
        ids = {letter: i for i, letter in enumerate(vocab)}
        self._letter = torch.tensor([ids[left[0]] for _, left in often])
        self._letters = len(vocab)

    def probabilities(self, ids: Tensor) -> Tensor:
        """P(letter at a place | all that is shown at the other places) of texts cut anywhere from a long one.

        ids: (B, T), hidden letters with an id beyond the vocabulary -> (B, T, V) float64. ValueError for a text that
        the grammar cannot have written.
        """
        before = self._before(ids)
        after = torch.ones_like(before[0])  # P(what is shown later | state), scaled
        found = torch.zeros(*ids.T.shape, self._letters, dtype=torch.float64)  # (T, B, V)
        for t in reversed(range(ids.shape[1])):
            found[t].index_add_(1, self._letter, (before[t] * after).T)
            after = self._carried(self._fitting(after, ids[:, t]), self._there, self._here)
            after /= after.sum(0)
        return (found / found.sum(-1, keepdim=True)).transpose(0, 1)

    def _fitting(self, x: Tensor, letters: Tensor) -> Tensor:
        """(S, B) less the states that do not show the letters (B,) that are shown."""
        return x.where((self._letter[:, None] == letters) | (letters >= self._letters), 0.0)

    def _before(self, ids: Tensor) -> list[Tensor]:
        """P(state at t | what is shown before t), (S, B) for each t."""
        found, now = [], self._share[:, None].repeat(1, len(ids))
        for letters in ids.unbind(1):
            found.append(now)
            seen = self._fitting(now, letters)
            if not (total := seen.sum(0)).all():
                raise ValueError("the grammar cannot have written this text, or the hidden letters leave no way open")
            now = self._carried(seen / total, self._here, self._there)
        return found

    def _carried(self, x: Tensor, source: Tensor, target: Tensor) -> Tensor:
        """What flows along all moves from their sources to their targets, (S, B) -> (S, B)."""
        return torch.zeros_like(x).index_add_(0, target, self._p * x[source])

    def nats(self, ids: Tensor, answers: Tensor) -> Tensor:
        """-log P of the hidden letters that are asked for: ids (B, T), answers (B, T), negative where nothing is asked.

        -> (B, T) float64, 0 where nothing is asked.
        """
        p = torch.cat([self.probabilities(rows) for rows in ids.split(ROWS)])
        p = p.gather(-1, answers.clamp(min=0)[..., None])[..., 0]
        return torch.where(answers >= 0, -p.log(), 0.0)


def _moves(grammar: Grammar, state: State, left: str) -> list[tuple[tuple[State, str], float]]:
    """Where the chain goes once the first letter of what is left is written, and how likely."""
    return [((state, left[1:]), 1.0)] if left[1:] else [((c.next, c.text), c.p) for c in grammar.rules[state]]
