"""Every threshold of the audit in one table: its unit, whether it is derived, measured or chosen, and why.

Unit: `sd` is mean movement over its standard deviation from rounding to rounding, `rel` is movement before a cut over
movement after it, `ulp` is a unit in the last place. Derived: follows from arithmetic or statistics. Measured: lies in
a gap between what our clean and our leaking models show. Chosen: costs or catches a little more or less.
"""

# Round-off (rounding.py)
LOUDER = 8  # ulp, derived: noise that drowns frozen round-off. Library constants (twiddle factors, polynomials) err by
# up to 1 ulp, alike in every rounding; uniform noise of 8 ulp has a deviation of 4.6, so that the worst of thousands of
# numbers, at four deviations, has a frozen part of 4 / 4.6 < FROZEN.
HALF_PRECISION = 1e-4  # eps, derived: between bfloat16, float16 (8e-3, 1e-3) and float32 (1e-7). What is rounded that
# much needs no louder noise.

# A dependence or round-off (steadiness.py)
FROZEN = 1.0  # sd, derived: the most that round-off repeats, from LOUDER
DEPENDENCE = 4.0  # sd, measured: the least of a dependence. Leaks have 4.5 or more in bfloat16, 20 in float32.
FALSE_LEAK = 1e-6  # probability, chosen: that any movement of round-off is called a dependence, per question asked
MISSED_LEAK = 1e-3  # probability, chosen: that a movement of DEPENDENCE is called round-off
LOOKS = (6, 12, 24, 64)  # roundings, derived: with the last the two errors above leave no gap; the first are for speed
PLAIN = 16  # movements, chosen: the largest ones, which decide at the first look
EXACT = 1e-4  # rel, measured: what never scatters was computed out of our sight, and counts from here on. Round-off of
# float32 stays below 1e-5, the weakest leak of that kind is above 1e-3.
FOLLOWED = 4096  # movements, chosen: the largest, and as many of the largest beside the number that moved
VISIBLE = 30  # ulp of the number that moved, chosen: a smaller movement is lost in the rounding of the last few steps
HUGE = 1e100  # logits, chosen: stands for infinity, which has no mean

# Where nothing but size is known, because the operations cannot be rounded otherwise (examine.py)
ROUND_OFF = 1e-5  # rel, measured: float32 stays below (8.6e-6 for the worst transform)
LEAK = 1e-4  # rel, measured: the weakest leak of that kind we built has 2e-4

# What does not pass in silence (examine.py)
LOUD = 0.05  # rel, chosen: round-off that could hide a leak of this share of what moves after the cut
FLOAT64_ONLY = 1e-12  # rel, derived: a dependence of less, seen in float64 alone, is 1e-5 ulp of float32
OTHERWISE = 0.1  # share, chosen: copies in two precisions that differ by more compute two different things
TOLERANCE = 5  # deviations of round-off, chosen: less than this ahead of an edit is drawn as 0 in the map

# How many (examine.py, ways.py, bench.py)
ALL = 12  # probes, chosen: computed in other roundings before an acquittal
ALL_ALONE = 4  # probes, chosen: the same where each takes a forward pass of its own
FLOAT64 = 16  # probes, chosen: tried in float64 although nothing moved in float32
SHOWN = 4  # probes that moved most, chosen: looked at for an earlier module than the one that the plainest shows
OTHERS = 6  # probes, chosen: looked at likewise, whether they moved anything or not
CONFIRMED = 3  # probes, chosen: of those that seem to show one, computed in other roundings
ALONE = 32  # probes, chosen: run in a batch of one, although nothing asks for it
BATCHES = 3  # batches, chosen: in which all rows but the first are replaced
THROWS = 4  # seeds, chosen: of dropout and the like in training mode, each asked in full
MORE_THROWS = 28  # seeds, chosen: to glance at beside these. A leak in one throw of ten is in none of 32 by 3 %
WARM = 8  # calls, chosen: before the probes of a model that keeps state between calls
ROWS = 30  # texts of a batch, chosen: six of each of five bases
ELEMENTS = 2**24  # logits of a batch, chosen: 64 MB
UNIT_TEXTS = 8  # texts, chosen: enough to see which logits move far

# Controls (bench.py, movement.py)
SAME = 1e-5  # share, measured: two runs on the same text differ by less where the model repeats itself (float32: 1e-6)
FELT = 1e-3  # share, measured: the same between a text and a longer one, another shape and order of summation
ODD_ONE = 100  # times the median logit's movement, chosen: from here a logit is measured in a unit of its own
ALIVE = 0.1  # share of the median movement after the cuts, chosen: the least to compare a movement before one with
