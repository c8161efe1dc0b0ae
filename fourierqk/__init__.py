"""Spectral attention: filters for queries and keys, models, training, and the causality audit.

Needs torch and numpy alone. Figures and widgets are modules of their own: ``from fourierqk import figures``.
"""
# ruff: noqa: E402, F401, F403, I001
import os

# Threads that wait for each other go to sleep. By default they spin, and where other programs share the cores a step
# of a small model then takes up to 40 times as long. Read by OpenMP when torch is first imported, so set before.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from fourierqk.analysis import *
from fourierqk.causality import *
from fourierqk.channels import *
from fourierqk.combinators import *
from fourierqk.data import *
from fourierqk.filters import *
from fourierqk.losses import *
from fourierqk.model import *
from fourierqk.training import PRESETS, History, TrainConfig, train
from fourierqk.zoo import *
