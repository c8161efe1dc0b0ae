"""What torch puts around a model, and into the names of its weights: to compile it, or to spread it over devices."""
from torch import nn

__all__ = ["bare", "unwrapped"]

DATA_PARALLEL = (nn.DataParallel, nn.parallel.DistributedDataParallel)


def unwrapped(model: nn.Module) -> nn.Module:
    """The model itself, which shares its weights with whatever was put around it."""
    while True:
        inner = model.module if isinstance(model, DATA_PARALLEL) else getattr(model, "_orig_mod", None)
        if not isinstance(inner, nn.Module):
            return model
        model = inner


def bare(name: str) -> str:
    """The name of a weight or a module, within the model itself: a wrapped layer has a wrapper's name in its path."""
    return name.replace("_orig_mod.", "").removesuffix("._orig_mod").removeprefix("module.")
