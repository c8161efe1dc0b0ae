"""Spectral attention: filters for queries and keys, models, training, and the causality audit.

What a first program needs::

    systems       SYSTEMS, system, build
    models        GPT, GPTConfig, generate
    filters       AllPass, Tone, Gaussian, Morlet; CircularFilter or CausalFilter to write your own;
                  Causal or Unit around another; bins, period for frequencies
    texts         verse, shakespeare, text
    training      PRESETS, TrainConfig, train; load for what it kept in a folder
    the audit     audit, assert_causal

Everything else is imported from where it lives: ``from fourierqk.losses import honest_loss``, ``from
fourierqk.combinators import Bank``, ``from fourierqk import figures``. All but figures, widgets and the command line
needs torch and numpy alone.
"""
import ast
import importlib
import os
from pathlib import Path

__version__ = "0.1.0"

# Threads that wait for each other go to sleep. By default they spin, and where other programs share the cores a step
# of a small model then takes up to 40 times as long. Read by OpenMP when torch is first imported, so set before.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

_stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text("utf8"))
_HOMES = {alias.name: node.module for node in _stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}

__all__ = [*_HOMES]


def __getattr__(name: str) -> object:
    """Import a name from its home when it is asked for: who audits a model waits for no filter and no text."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
