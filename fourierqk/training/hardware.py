"""Where a model runs: device, precision, random numbers."""
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

__all__ = [
    "combine_seeds", "describe", "out_of_memory", "own_generator", "peak_memory", "pick_device", "pick_precision",
]  # fmt: skip

# what the allocators of CPU, CUDA and MPS say, and those of C++ and of the system
NO_MEMORY = ("out of memory", "allocate memory", "not enough memory", "bad_alloc", "bad allocation", "_ALLOC_FAILED")


def pick_device(name: str = "auto") -> torch.device:
    """The device of a name; "auto" is cuda if there is one, else cpu. ValueError where this machine has none such."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as e:
        reason = str(e).splitlines()[0]
        raise ValueError(f"device {name!r} cannot be used on this machine ({reason}): take 'auto' or 'cpu'") from e
    return device


def pick_precision(name: str, device: torch.device) -> str:
    """ "auto" is bfloat16 on a GPU that computes in it, not one that only emulates it (a T4); else float32."""
    if name != "auto":
        return name
    native = device.type == "cuda" and torch.cuda.get_device_capability(device)[0] >= 8
    return "bfloat16" if native else "float32"


def describe(device: torch.device) -> str:
    """What a record calls the device."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{device.type} ({platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads)"


def peak_memory(device: torch.device) -> int:
    """The most memory this process has held, in bytes: what torch took of a GPU, else what was resident; 0: unknown."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    try:
        import resource
    except ImportError:  # Windows
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def out_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or one that it was raised from, is that a CPU or a GPU has no room left."""
    if error is None:
        return False
    said = isinstance(error, RuntimeError | OSError) and any(words in str(error) for words in NO_MEMORY)
    return said or isinstance(error, MemoryError) or out_of_memory(error.__cause__)


def combine_seeds(*numbers: int) -> int:
    """One 32-bit seed from several whole numbers, so that neighbours give unrelated streams."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])


@contextmanager
def own_generator(device: torch.device) -> Iterator[torch.Generator]:
    """torch's global generator of a device, to be seeded at will; the caller's state returns at the end.

    Dropout draws from this generator and takes no other.
    """
    if device.type == "cuda":
        torch.cuda.init()
        index = torch.cuda.current_device() if device.index is None else device.index
        generator = torch.cuda.default_generators[index]
    elif device.type == "mps":
        generator = torch.mps._get_default_mps_generator()
    else:
        generator = torch.default_generator
    state = generator.get_state()
    try:
        yield generator
    finally:
        generator.set_state(state)
