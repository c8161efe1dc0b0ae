"""Spectral attention: filters for queries and keys, models, training, and the causality audit.

Needs torch and numpy alone. Figures and widgets are modules of their own: ``from fourierqk import figures``.
"""
# ruff: noqa: F401, F403
from fourierqk.causality import *
from fourierqk.data import *
from fourierqk.filters import *
from fourierqk.leakage import *
from fourierqk.model import *
from fourierqk.train import PRESETS, History, TrainConfig, train
from fourierqk.zoo import *
