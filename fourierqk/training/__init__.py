"""Training that resumes, at the sizes of the book."""
from fourierqk.training.loop import History, load, optimiser, schedule, train
from fourierqk.training.presets import PRESETS, Preset, TrainConfig

__all__ = ["PRESETS", "History", "Preset", "TrainConfig", "load", "optimiser", "schedule", "train"]
