"""The README: its blocks of Python run as they stand, pasted one after the other."""
import re
from pathlib import Path

import pytest
import torch

README = (Path(__file__).resolve().parents[1] / "README.md").read_text("utf8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.slow
def test_the_blocks_run_one_after_the_other(capsys):
    torch.manual_seed(0)
    names: dict[str, object] = {}
    for block in BLOCKS:
        exec(compile(block.replace("steps=400", "steps=20"), "README.md", "exec"), names)  # as for a reader in a hurry
    assert len(BLOCKS) >= 3 and "LEAKS" in capsys.readouterr().out
