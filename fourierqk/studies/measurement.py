"""What is measured of a run for its record, all of it from the same weights."""
import time
from dataclasses import asdict
from typing import Any

from fourierqk.analysis import coverage, future_share
from fourierqk.causality import audit
from fourierqk.data import Corpus
from fourierqk.filters import Filter
from fourierqk.losses import (
    Loss,
    excess,
    honest_loss,
    loss_by_position,
    ordered_loss,
    shuffled_gap,
    truncated_loss,
)  # fmt: skip
from fourierqk.model import LanguageModel, attentions, generate
from fourierqk.records import FEW_WINDOWS
from fourierqk.training import History

__all__ = ["measure", "summary"]

SAMPLE = 300  # tokens that a model writes for its record


def measure(model: LanguageModel, corpus: Corpus, history: History) -> dict[str, Any]:
    """What a record says of a trained model, in types that JSON knows. Losses in nats per token.

    model: has `cfg`, as a GPT has; its best weights, on any device. history: of its training. The wall time is that of
    training and of this, in seconds, interruptions not counted.
    """
    began = time.perf_counter()
    found = (_of_hidden_tokens if corpus.hidden else _of_next_tokens)(model, corpus) | {
        "filters": _filters(model),
        "parameters": sum(p.numel() for p in model.parameters()),
        "history": asdict(history),
        "vocab": list(corpus.vocab),
    }
    return {**found, "wall_seconds": round(history.seconds + time.perf_counter() - began, 3)}


def _of_next_tokens(model: LanguageModel, corpus: Corpus) -> dict[str, Any]:
    return {
        "losses": _losses(model, corpus),
        **({} if corpus.test is None else {"test": _tested(model, corpus.judged())}),
        "loss_by_position": [round(nats, 5) for nats in loss_by_position(model, corpus).tolist()],
        "audit": audit(model, len(corpus.vocab), model.cfg.block_size).as_dict(),
        "sample": _sample(model, corpus),
    }


def _of_hidden_tokens(model: LanguageModel, corpus: Corpus) -> dict[str, Any]:
    """Of a model that hears both sides: nothing to audit, and every loss is honest."""
    loss, tested = ordered_loss(model, corpus), None if corpus.test is None else ordered_loss(model, corpus.judged())
    floor = _floor(loss, corpus)
    return {
        "losses": {"ordered": loss.as_dict(), "honest": loss.as_dict() | {"floor": floor}, "floor": floor},
        **({} if tested is None else {"test": {"ordered": _by_window(tested), "honest": tested.as_dict()}}),
        "audit": {"verdict": "not asked"},
    }


def _losses(model: LanguageModel, corpus: Corpus) -> dict[str, Any]:
    gap, honest = shuffled_gap(model, corpus), honest_loss(model, corpus)
    about_gap = {"gap": gap.gap, "unigram_entropy": gap.unigram, "below_unigram": gap.below}
    return {
        "ordered": gap.ordered.as_dict(),
        "shuffled": gap.shuffled.as_dict() | about_gap,
        "honest": honest.as_dict() | {"floor": _floor(honest, corpus)},
        "truncated": truncated_loss(model, corpus).as_dict(),
        "floor": _floor(gap.ordered, corpus),
    }


def _tested(model: LanguageModel, corpus: Corpus) -> dict[str, Any]:
    """The losses on a text that nothing was chosen by; the ordered one window by window, so that runs can be paired."""
    ordered, honest = ordered_loss(model, corpus), honest_loss(model, corpus)
    return {
        "ordered": _by_window(ordered),
        "honest": honest.as_dict(),
        "by_position": [round(nats, 5) for nats in loss_by_position(model, corpus).tolist()],
    }


def _by_window(loss: Loss) -> dict[str, Any]:
    return loss.as_dict() | {"values": [round(nats, 4) for nats in loss.values.tolist()]}


def _floor(loss: Loss, corpus: Corpus) -> dict[str, Any] | None:
    """What the oracle pays for the same tokens, and how far the loss is from it; None where nobody knows."""
    if not corpus.has_floor:
        return None
    d = excess(loss, corpus)
    return {"oracle": loss.mean - d.mean, "difference": d.mean, "se": d.se, "below": d.below}


def _filters(model: LanguageModel) -> list[dict[str, list[float]]]:
    """What each layer's filter along time passes and hears at full length, one value a head; [] where there is none."""
    n, along_time = model.cfg.block_size, [a.filter for a in attentions(model) if isinstance(a.filter, Filter)]
    return [{"coverage": coverage(f, n).tolist(), "future_share": future_share(f, n).tolist()} for f in along_time]


def _sample(model: LanguageModel, corpus: Corpus) -> str:
    """What the model writes after the first full window of the validation text, at temperature 1 (seed 0).

    The prompt is as long as what it was trained on, so that every token is drawn from an honest prediction.
    """
    prompt = corpus.val[None, : model.cfg.block_size]
    return corpus.decode(generate(model, prompt, SAMPLE)[0, prompt.shape[1] :])


def summary(record: dict[str, Any]) -> str:
    """A record in a few lines, as `fourierqk train` prints it."""
    losses, history = record["losses"], record["history"]
    told = _told_of_hidden_tokens(losses) if "shuffled" not in losses else _told_of_next_tokens(losses)
    took = f"{history['steps'][-1]} steps in {history['seconds']:.0f} s on {history['device']}"
    lines = [
        f"{record['system']} on {record['corpus']['name']}, {record['preset']}, seed {record['seed']}: nats per token",
        *told,
        f"  floor     {_about_floor(losses['floor'])}",
        *_doubts(losses["ordered"]),
        f"  audit     {_about_audit(record['audit'])}",
        f"  speed     {history['tokens_per_second']:,.0f} tokens per second, {took}",
    ]
    return "\n".join(lines)


def _told_of_next_tokens(losses: dict[str, Any]) -> list[str]:
    s, h = losses["shuffled"], losses["honest"]["floor"]
    above = f", {h['difference']:+.3f} ± {h['se']:.3f} above the oracle there" if h else ""
    return [
        f"  ordered   {_mean(losses['ordered'])}   all positions of {losses['ordered']['windows']} windows",
        f"  shuffled  {_mean(s)}   gap {s['gap']:+.3f}; unigram entropy {s['unigram_entropy']:.3f}",
        f"  honest    {_mean(losses['honest'])}   last position of {losses['honest']['windows']} windows{above}",
        f"  truncated {_mean(losses['truncated'])}   last position of {losses['truncated']['windows']} prefixes",
    ]


def _told_of_hidden_tokens(losses: dict[str, Any]) -> list[str]:
    return [f"  masked    {_mean(losses['ordered'])}   all hidden tokens of {losses['ordered']['windows']} windows"]


def _mean(loss: dict[str, Any]) -> str:
    return f"{loss['mean']:.3f} ± {loss['se']:.3f}"


def _about_floor(f: dict[str, Any] | None) -> str:
    if f is None:
        return "unknown for this text"
    meaning = "below the floor: it reads the future" if f["below"] else "not below the floor"
    return (
        f"{f['oracle']:.3f}           ordered is {f['difference']:+.3f} ± {f['se']:.3f} from it "
        f"({f['difference'] / f['se']:+.1f} standard errors): {meaning}"
    )


def _doubts(loss: dict[str, Any]) -> list[str]:
    room = loss.get("side_by_side", FEW_WINDOWS)
    few = f"  doubt     this text holds {room} windows side by side: every error (±) here is too small"
    return [few] if room < FEW_WINDOWS else []


def _about_audit(a: dict[str, Any]) -> str:
    if "probes" not in a:
        return "none: here a model may hear both sides"
    where = f", enters in {a['first_leak']}, {a['reach']} tokens ahead" if a["verdict"] == "leaks" else ""
    return f"{a['verdict']} ({a['probes']} probes{where})"
