"""What a model learned: the periods that its filters have tuned to."""
import torch
from torch import Tensor, nn

from fourierqk.filters import Filter, learned_centres
from fourierqk.model import Attention, attentions

__all__ = ["learned_periods"]


@torch.no_grad()
def learned_periods(model: nn.Module) -> list[Tensor]:
    """The periods that a model's filters have tuned to, in tokens per cycle: (bands, heads) for every layer.

    1 / the centre frequency of each band with learn=True, in the order of the bank. Of the band that is tuned: where
    `Causal` cuts it, the peak of what runs lies elsewhere (its `response` shows where).
    Raises ValueError for a model that learns no frequency along time.
    """
    layers = [_periods(layer) for layer in attentions(model)]
    if not any(len(periods) for periods in layers):
        raise ValueError("no filter of this model learns a frequency: build it from bands with learn=True")
    return layers


def _periods(layer: Attention) -> Tensor:
    """(bands, heads), with no band where the filter learns nothing or does not run along time."""
    centres = learned_centres(layer.filter).values() if isinstance(layer.filter, Filter) else ()
    rows = [(1 / centre()).flatten().expand(layer.cfg.n_head).cpu() for centre in centres]
    return torch.stack(rows) if rows else torch.empty(0, layer.cfg.n_head)
