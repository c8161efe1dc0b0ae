"""Older processors than this one, as torch and MKL imitate them: filters and models hold there too."""
import pytest
from instruction_sets import OLDEST, SETTINGS, run

pytestmark = pytest.mark.slow
HOLD = (
    "filters.py", "combinators.py", "channels.py", "model.py", "zoo.py::test_gradients_reach_every_learned_frequency",
)  # fmt: skip


def test_filters_and_models_hold_on_the_oldest_of_them():
    last, bad = run(OLDEST, [f"tests/test_{words}" for words in HOLD])
    assert bad == [] and " passed" in last


def test_a_setting_is_in_force_and_what_fails_is_named(tmp_path):
    source = "import os\n\ndef test_threads():\n    assert os.environ['OMP_NUM_THREADS'] == '1'"
    (tmp_path / "test_it.py").write_text(source)
    one, two = ({"OMP_NUM_THREADS": n} for n in "12")
    assert one in SETTINGS and two in SETTINGS
    assert run(one, [str(tmp_path)]) == ("1 passed", [])
    last, (bad,) = run(two, [str(tmp_path)])
    assert last.startswith("1 failed") and bad.endswith("test_it.py::test_threads")
