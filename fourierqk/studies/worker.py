"""A process that carries out one run of a study; `pool.BEGIN` is how it begins.

Its order, one line of JSON (`pool.order`), comes through the standard input, which stays open as long as the study is
at work. The exit status is 0, BUSY, or 1; then the last line of the standard error says why the run failed.
"""
import contextlib
import json
import os
import sys
import threading

import torch

from fourierqk.storage import Busy
from fourierqk.studies.design import Run
from fourierqk.studies.pool import BUSY
from fourierqk.studies.runs import reason, run_in_study

__all__ = ["work"]


def work(folder: str) -> int:
    """Do what is ordered, in the folder of the study -> exit status."""
    todo = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_follow, daemon=True).start()
    torch.set_num_threads(todo["threads"])
    try:
        run_in_study(folder, Run.from_dict(todo["run"]), todo["compiled"])
    except Busy:
        return BUSY
    except Exception as e:
        print(reason(e), file=sys.stderr)
        return 1
    return 0


def _follow() -> None:
    """End with the study: when it is gone, however it went, the pipe from it closes."""
    with contextlib.suppress(OSError):
        while os.read(0, 1):  # past sys.stdin, whose lock a waiting thread would hold when the interpreter ends
            pass
    os._exit(1)
