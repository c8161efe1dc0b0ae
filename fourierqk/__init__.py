"""Spectral attention: filters for queries and keys, models, training, and the causality audit."""
from fourierqk.filters import *  # noqa: F403
