"""Names beside what they name: apart from each other, in the plot, over nothing that is drawn, whatever the width."""
import numpy as np
import pytest

from fourierqk import figures
from fourierqk.figures import labels
from fourierqk.figures.labels import Curve
from fourierqk.filters import Gaussian, RandomBands

RNG = np.random.default_rng(0)


def test_spread_levels_are_apart_and_where_they_were_if_they_could():
    for _ in range(200):
        n = RNG.integers(1, 9)
        levels, gap = np.sort(RNG.normal(size=n)), RNG.uniform(0, 0.3)
        low, high = min(levels) - 0.1, max(levels) + 0.1 + gap * n
        spots = np.array(labels.spread(levels, gap, low, high))
        assert (np.diff(spots) >= gap - 1e-9).all() and low <= spots[0] and spots[-1] <= high
        if (np.diff(levels) >= gap).all():
            np.testing.assert_allclose(spots, levels)


def test_spread_levels_stay_below_the_top():
    assert labels.spread([0.9, 1.0], 0.5, 0, 1) == [0.5, 1.0]


@pytest.mark.parametrize("seed", range(8))
def test_free_spots_hide_nothing(seed):
    """Brute force: a name's box holds no point of 5000 along each curve, no other box, and lies in the plot."""
    rng, height = np.random.default_rng(seed), 220
    x = np.linspace(2, 5, 60)
    curves = {f"curve {i}": Curve([np.stack([x, rng.normal() + np.sin(rng.uniform(1, 3) * x)], 1)], "#123456")
              for i in range(4)} | {"_mark": Curve([np.array([[3.0, -9.0], [3.0, 9.0]])], "#123456")}  # fmt: skip
    spots = labels._free(height, curves, (2, 5), (-4, 4))
    assert {*spots} <= {*curves} - {"_mark"}
    for width in labels.WIDTHS:
        size, span, origin = np.array([width, height]), np.array([3, 8]), np.array([2, -4])
        boxes = [labels._box((at - origin) / span * size, side, name) for name, (at, side) in spots.items()]
        for i, (left, low, right, high) in enumerate(boxes):
            assert left >= 0 and low >= 0 and right <= width and high <= height
            for (line,), _ in curves.values():
                fine = np.linspace(0, len(line) - 1, 5000)
                u, v = ((np.interp(fine, range(len(line)), line[:, k]) - origin[k]) / span[k] * size[k] for k in (0, 1))
                assert not ((u > left) & (u < right) & (v > low) & (v < high)).any()
            assert not any(left < b[2] and b[0] < right and low < b[3] and b[1] < high for b in boxes[:i])


def test_names_near_their_lines_take_the_place_of_a_legend_where_there_is_room():
    few = figures.response({"slow": Gaussian(0.1, 0.02), "fast": Gaussian(0.35, 0.02)})
    assert [a.text.split("</span> ")[1] for a in few.layout.annotations] == ["slow", "fast"]
    assert few.layout.showlegend is False
    assert few.layout.annotations[0].x == pytest.approx(0.1, abs=0.03)
    many = figures.response({f"a long name, the {i}th": RandomBands(8, i) for i in range(6)})
    assert not many.layout.annotations and many.layout.showlegend is not False


def test_names_at_the_ends_of_lines_are_as_many_as_ends_and_in_their_order():
    fig = figures.loss_by_position({"low": np.ones(9), "high": np.full(9, 1.01), "top": np.full(9, 3.0)})
    ends = sorted(fig.layout.annotations, key=lambda a: a.y)
    assert [a.text.split("</span> ")[1] for a in ends] == ["low", "high", "top"]
    assert {a.name for a in ends} == {"end"} and fig.layout.showlegend is False  # the page knows them by this name
