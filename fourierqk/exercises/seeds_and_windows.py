"""Checkers of the chapter on seeds and windows."""
import math

from fourierqk.exercises import Numeric, Whole, ruled

__all__ = ["far_apart", "half_width", "remain"]


@ruled
def half_width() -> Numeric:
    """Half of Student's 95 % interval of -0.05, -0.03, -0.01: 4.303 * 0.02 / sqrt(3)."""
    error = 0.02 / math.sqrt(3)
    wrong = {
        1.96 * error: "1.96 is the point of the normal distribution, right for many seeds. For three take 4.303.",
        4.303 * 0.02: "that is for one seed more. The mean of three varies less: divide by the square root of 3.",
        error: "that is the standard error of the mean. The interval is 4.303 times as wide.",
        4.303 * error * math.sqrt(2 / 3):
            "divide the squares by n - 1 = 2, since the mean was taken from the same three values.",
        2 * 4.303 * error: "that is the whole interval. To either side of the mean there is half of it.",
    }  # fmt: skip
    otherwise = "take 4.303 times the standard deviation over the square root of 3."
    return Numeric(4.303 * error, wrong, otherwise, rel_tol=0.01)


@ruled
def far_apart() -> Numeric:
    """The distance of 0.608 and 0.236 in standard deviations of 0.019: 19.6."""
    distance = 0.608 - 0.236
    wrong = {distance: "that is the distance in nats. Divide by the standard deviation."}
    right = (distance / 0.019, -distance / 0.019)
    return Numeric(right, wrong, "divide the distance of the two numbers by 0.019.", rel_tol=3e-2)


@ruled
def remain() -> Whole:
    """How many of the chances 0.001, 0.015, 0.03, 0.04 remain by Holm's method: 2."""
    wrong = {
        4: "that many are below 0.05, each taken alone.",
        1: "that many are below 0.05 / 4. After the first one three are left: compare the next with 0.05 / 3.",
        3: "the third is 0.03. With two left it must be below 0.05 / 2.",
    }
    return Whole(2, wrong, "compare with 0.05 / 4, 0.05 / 3, and so on, and stop at the first above.")
