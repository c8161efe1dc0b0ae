"""Training that resumes, at the sizes of the book."""
from fourierqk.training.checkpoint import CHECKPOINT, steps_done
from fourierqk.training.hardware import describe, out_of_memory, pick_device, pick_precision
from fourierqk.training.loop import RECORD, History, load, lr_schedule, optimiser, train
from fourierqk.training.presets import MOST_SEED, PRESETS, Preset, TrainConfig

__all__ = [
    "CHECKPOINT", "MOST_SEED", "PRESETS", "RECORD", "History", "Preset", "TrainConfig", "describe", "load",
    "lr_schedule", "optimiser", "out_of_memory", "pick_device", "pick_precision", "steps_done", "train",
]  # fmt: skip
