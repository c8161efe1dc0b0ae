"""Talking to a model we did not write: any callable ids (B, T) -> logits (B, T, V).

An nn.Module, a function around one, a model that returns (logits, loss) or an object with `.logits`: measured as it
is, in eval mode, and left as it was found.
"""
import copy
import functools
import inspect
import random
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from types import BuiltinFunctionType, CellType, MappingProxyType, ModuleType
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import _disable_current_modes

__all__ = ["Adapter", "Arguments", "Model", "RefusedError", "beside_ids", "check_model", "duplicate"]

SEARCHED = 20_000  # objects to look into for modules, at most
_EMPTY = CellType()  # of a closure whose variable is not set yet
_LEAVES = (
    str, bytes, int, float, complex, type(None), type, range, ModuleType, BuiltinFunctionType, Tensor, np.ndarray,
)  # fmt: skip
_PLAIN = (bool, int, float, str, type(None))
_CONTAINERS = (dict, OrderedDict, list, tuple, set, frozenset)  # a module keeps a dozen empty ones

Model = Callable[..., Any]  # ids (B, T) -> logits (B, T, V), or a tuple, dict or object that holds them
Arguments = Mapping[str, Any] | Callable[[Tensor], Mapping[str, Any]]  # more for each call; a function has them of ids
_T = TypeVar("_T")


class RefusedError(ValueError):
    """A model, or a copy of one, will not do what was asked of it, however often it is asked."""


def _twice(call: Callable[[], _T]) -> _T:
    """What a call gives. RefusedError where it fails two times running.

    What a second try does not repeat was no answer to the call but is meant for the caller (an alarm that went off, a
    profiler that stops): it passes.
    """
    try:
        return call()
    except (Exception, SystemExit) as e:
        try:
            call()
        except (Exception, SystemExit):
            raise RefusedError(f"{type(e).__name__}: {e}") from e
        except KeyboardInterrupt:
            raise
        except BaseException:  # somebody had seen enough of the second try: it had got that far
            pass
        raise


def duplicate(model: Model) -> Model | None:
    """A deep copy; None where a stranger's class refuses to be copied."""
    try:
        return _twice(lambda: copy.deepcopy(model))
    except RefusedError:
        return None


def roots(model: Model) -> list[nn.Module]:
    """The outermost nn.Modules within reach of a callable, however it holds them.

    Itself, the object of a bound method, what a function closes over, what any of these keep in attributes and
    containers. A module inside another is found with it.
    """
    found: list[nn.Module] = []
    seen: set[int] = set()
    todo: deque[Any] = deque([model])
    while todo and len(seen) < SEARCHED:
        x = todo.popleft()
        if id(x) in seen:
            continue
        seen.add(id(x))
        if isinstance(x, nn.Module):
            found.append(x)
        todo += [y for y in _held(x) if not isinstance(y, _LEAVES) and not (type(y) in _CONTAINERS and not y)]
    inner = {id(child) for m in found for child in list(m.modules())[1:]}
    return [m for m in found if id(m) not in inner]


def _held(x: Any) -> list[Any]:
    """What an object holds, one step in."""
    if isinstance(x, dict):
        return list(x.values())
    if isinstance(x, list | tuple | set | frozenset):
        return list(x)
    if isinstance(x, functools.partial):
        return [x.func, *x.args, *x.keywords.values()]
    if inspect.ismethod(x):
        return [x.__self__, x.__func__]
    if inspect.isfunction(x) and not (x.__module__ or "").startswith("torch."):
        cells = [c.cell_contents for c in x.__closure__ or () if c != _EMPTY]
        named = [x.__globals__[n] for n in x.__code__.co_names if n in x.__globals__]
        return [*cells, *named, *(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()]
    slots = [getattr(x, n) for c in type(x).__mro__ for n in getattr(c, "__slots__", ()) if hasattr(x, n)]
    return [*getattr(x, "__dict__", {}).values(), *slots]


class Adapter:
    """A model that somebody else wrote, with the modules within its reach, which are looked for once.

    arguments: what each call is given beside the ids, copied anew, or a function of the ids that has them.
    """

    def __init__(self, model: Model, arguments: Arguments = MappingProxyType({})) -> None:
        self.model, self.arguments = model, arguments
        self.roots = roots(model)
        _check_sizes(self.roots)
        self._worked: Callable[[], Any] | None = None  # the first call that did, of this model or what it is a copy of

    def around(self, model: Model) -> "Adapter":
        """The same for a copy of the model."""
        other = Adapter(model, self.arguments)
        other._worked = self._worked
        return other

    @cached_property
    def modules(self) -> list[nn.Module]:
        """Every nn.Module within reach of the model, inner ones included, each once."""
        return list({id(m): m for root in self.roots for m in root.modules()}.values())

    @cached_property
    def device(self) -> torch.device:
        """Where the model's weights live; the CPU when it has none."""
        held = (t for m in self.modules for t in (*m._parameters.values(), *m._buffers.values()) if t is not None)
        return next((t.device for t in held), torch.device("cpu"))

    @property
    def weights(self) -> list[Tensor]:
        """Floating-point parameters and buffers that hold any number, each once."""
        held = {id(t): t for m in self.modules for t in (*m._parameters.values(), *m._buffers.values())
                if t is not None and t.numel() and (t.is_floating_point() or t.is_complex())}  # fmt: skip
        return list(held.values())

    def copied(self) -> "Adapter | None":
        """A copy; None where the model is no module, refuses to be copied, shares its parts with its copy, or becomes
        another: what __getstate__ leaves out, say, a copy lacks."""
        if not isinstance(self.model, nn.Module):
            return None
        other = duplicate(self.model)
        if other is None:
            return None
        copied = self.around(other)
        shared = {id(m) for m in copied.modules} & {id(m) for m in self.modules}
        return None if shared or _settings(other) != _settings(self.model) else copied

    @contextmanager
    def at_rest(self, training: bool = False) -> Iterator[None]:
        """Eval mode without gradients, or training mode with them; no autocast; modes are put back afterwards.

        The fused path of torch's Transformer layers stays off: it runs in eval mode without gradients alone, and takes
        any number in a mask for minus infinity. What trains is judged, and what trains adds the mask as it is.
        """
        modes = [(m, m.training) for m in self.modules if hasattr(m, "training")]  # a frozen script has no mode left
        fused = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            for m, _ in modes:
                m.training = training  # not eval(): a mode is a flag of each module, and some override train()
            with torch.set_grad_enabled(training), torch.autocast(self.device.type, enabled=False):
                yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fused)
            for m, mode in modes:
                m.training = mode

    @contextmanager
    def restored(self) -> Iterator[None]:
        """At rest, with weights, buffers and every random generator put back afterwards."""
        state: list[tuple[dict[str, Any], str, Tensor, Tensor]]
        state = [(held, name, t, t.detach().clone()) for m in self.modules for held in (m._parameters, m._buffers)
                 for name, t in held.items() if t is not None]  # fmt: skip
        devices = [self.device] if self.device.type == "cuda" else []
        python, numpy = random.getstate(), np.random.get_state()
        try:
            with torch.random.fork_rng(devices), self.at_rest():
                yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
            for held, name, t, value in state:
                held[name] = t
                if not torch.equal(t, value):
                    t.data.copy_(value)

    def logits(self, ids: Tensor) -> Tensor:
        """The model's logits, (B, T, V) in its own precision. RefusedError when it fails or returns something else.

        An exception that does not answer these ids, for it stays away at a second try or comes at a text that once was
        read, passes as it is.
        """
        b, t = ids.shape
        try:
            out = _twice(lambda: self._answer(ids))
        except RefusedError as e:
            if self._worked:
                self._worked()
            raise RefusedError(
                f"the model failed on ids of shape {(b, t)} with values {int(ids.min())} to {int(ids.max())} "
                f"({e}). Check vocab_size and length: some models take one length only"
                f"{_or_made(self.model)}{_or_transposed(self.model)}"
            ) from e.__cause__
        if not (isinstance(out, Tensor) and out.dim() == 3 and tuple(out.shape[:2]) == (b, t)
                and out.shape[2] and out.is_floating_point()):  # fmt: skip
            raise RefusedError(_not_logits(out, b, t))
        if self._worked is None:
            self._worked = functools.partial(self._again, ids, torch.is_grad_enabled())
        return out

    def _again(self, ids: Tensor, training: bool) -> Any:
        """The same call in the same mode, in the machine's own arithmetic."""
        with _disable_current_modes(), self.at_rest(training):
            return self._answer(ids)

    def _answer(self, ids: Tensor) -> Any:
        out = _unwrap(self._call(ids))
        if isinstance(out, Tensor) and out.dim() == 3 and out.shape[1] == 1 < ids.shape[1] and self._takes_targets:
            # nanoGPT returns the last position alone unless it is given targets: fixed ones, which tell it nothing
            return _unwrap(self._call(ids, targets=torch.zeros_like(ids)))
        return out

    def _call(self, ids: Tensor, **more: Tensor) -> Any:
        """The model's own answer; it may write into what it is given."""
        held = self.arguments(ids) if callable(self.arguments) else copy.deepcopy(dict(self.arguments))
        return self.model(ids.clone(), **{**held, **more})

    @cached_property
    def _takes_targets(self) -> bool:
        return isinstance(self.model, nn.Module) and "targets" in inspect.signature(self.model.forward).parameters


def _not_logits(out: Any, b: int, t: int) -> str:
    """What to say of an answer that is none, to ids (b, t)."""
    if isinstance(out, nn.Module):
        return f"the call made a model ({type(out).__name__}) instead of logits: give that, not what makes it"
    got = f"{tuple(out.shape)} of {out.dtype}" if isinstance(out, Tensor) else type(out).__name__
    return (
        f"expected logits (batch, time, vocabulary) = ({b}, {t}, V) for ids {(b, t)}, got {got}: give a "
        "callable that returns them, or a tuple that starts with them, or an object with .logits"
    )


def _settings(model: Model) -> dict[str, dict[str, Any]]:
    """The plain attributes of a model and of every module in it, by their paths."""
    modules = model.named_modules() if isinstance(model, nn.Module) else ()
    return {path: {k: v for k, v in vars(m).items() if isinstance(v, _PLAIN)} for path, m in modules}


def _check_sizes(roots: list[nn.Module]) -> None:
    """ValueError where a layer (nn.LazyLinear, say) takes the size of its weights from an input that it never had."""
    for root in roots:
        for path, m in root.named_modules():
            if any(is_lazy(t) for t in (*m._parameters.values(), *m._buffers.values())):
                raise ValueError(
                    f"{path or 'the model'} ({type(m).__name__}) has no weights before it has read something: call the "
                    "model once, as model(torch.zeros(1, length, dtype=torch.long)), and load its weights after that"
                )


def check_model(model: Model, arguments: Arguments = MappingProxyType({})) -> None:
    """ValueError unless it could be called with ids (B, T) and these arguments: a class, say, or what makes a model."""
    if not callable(model):
        raise ValueError(f"a model is a callable ids (B, T) -> logits (B, T, V), not {type(model).__name__}")
    if isinstance(model, type):
        raise ValueError(f"{model.__name__} is a class: give an instance of it, {model.__name__}(...)")
    if not (callable(arguments) or isinstance(arguments, Mapping)):
        raise ValueError(f"kwargs = {arguments!r} must be a dict of arguments, or a function of ids that returns one")
    needed, given = beside_ids(model), {} if callable(arguments) else arguments
    if not callable(arguments) and (missing := [n for n in needed if n not in given]):
        raise ValueError(
            f"{_name(model)} needs {', '.join(missing)} beside ids: give kwargs={{{missing[0]!r}: ...}}, the same for "
            f"every call, or a function of ids that returns such a dict{_or_made(model)}"
        )


def beside_ids(model: Model) -> list[str]:
    """The arguments that a model needs beside ids; [] where it does not say. ValueError where it takes no ids."""
    try:
        _, *more = _parameters(model)
    except TypeError:  # made in C, or a script: it says nothing of its arguments
        return []
    except ValueError:
        name = _name(model)
        raise ValueError(f"{name} takes no ids: if it makes a model, give the model that it makes, {name}()") from None
    return [p.name for p in more if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def _name(model: Model) -> str:
    return type(model).__name__ if isinstance(model, nn.Module) else getattr(model, "__name__", type(model).__name__)


def _or_made(model: Model) -> str:
    """What else may be wrong with a function that is no model: it may make one."""
    return "" if isinstance(model, nn.Module) else f"; if {_name(model)} makes a model, give the model that it makes"


def _or_transposed(model: Model) -> str:
    """What else may be wrong with a model whose parts take time as their first axis."""
    parts = model.modules() if isinstance(model, nn.Module) else ()
    late = any(getattr(part, "batch_first", True) is False for part in parts)
    return ". A part of it has batch_first=False: was True forgotten?" if late else ""


def _parameters(model: Model) -> list[inspect.Parameter]:
    """What it may be called with. TypeError where it does not say; ValueError where it is nothing."""
    call = model.forward if isinstance(model, nn.Module) else model
    try:
        found = list(inspect.signature(call).parameters.values())
    except ValueError as e:
        raise TypeError from e
    if not any(p.kind is not p.KEYWORD_ONLY for p in found):
        raise ValueError
    return found


def _unwrap(out: Any) -> Any:
    if isinstance(out, dict) and "logits" in out:
        return out["logits"]
    if isinstance(getattr(out, "logits", None), Tensor):  # before tuples: a named tuple may hold them anywhere
        return out.logits
    return out[0] if isinstance(out, tuple | list) and out else out
