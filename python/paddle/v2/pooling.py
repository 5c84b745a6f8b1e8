# SPDX-License-Identifier: Apache-2.0
"""paddle.v2.pooling: how rows of a sequence, or a window, become one."""

__all__ = ["BasePoolingType", "Max", "MaxWithMask", "Avg", "Sum",
           "SquareRootN", "CudnnMax", "CudnnAvg", "CudnnAvgInclPad"]


class BasePoolingType:
    """What all kinds of pooling are."""
    name = None  # the original's
    sequence = None  # Fluid's, for sequences
    window = None  # Fluid's, for pictures
    exclusive = True  # padding does not count for a mean


class Max(BasePoolingType):
    """The largest; with output_max_index where it stands instead."""
    name = sequence = window = "max"

    def __init__(self, output_max_index=None):
        self.output_max_index = output_max_index


class MaxWithMask(Max):
    """The largest of a window, and where it stands."""
    name, window = "max-pool-with-mask", None


class CudnnMax(Max):
    """As Max."""


class Avg(BasePoolingType):
    """The mean; by strategy the sum, or the sum over the root of the
    length."""
    name, window = "average", "avg"
    _STRATEGIES = {"average": "average", "sum": "sum", "squarerootn": "sqrt"}

    def __init__(self, strategy="average"):
        if strategy not in self._STRATEGIES:
            raise ValueError("pooling.Avg: strategy is %r, expected one of %s"
                             % (strategy, ", ".join(self._STRATEGIES)))
        self.strategy = strategy
        self.sequence = self._STRATEGIES[strategy]


class CudnnAvg(Avg):
    """As Avg."""


class CudnnAvgInclPad(Avg):
    """The mean, padding counted."""
    exclusive = False


class Sum(Avg):
    """The sum."""

    def __init__(self):
        super().__init__("sum")


class SquareRootN(Avg):
    """The sum over the root of the length."""

    def __init__(self):
        super().__init__("squarerootn")
