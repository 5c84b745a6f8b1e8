# SPDX-License-Identifier: Apache-2.0
"""fluid.average: a weighted mean."""
import numbers

import numpy as np

__all__ = ["WeightedAverage"]


def _is_number(x):
    return isinstance(x, numbers.Number) or (
        isinstance(x, np.ndarray) and x.size == 1)


class WeightedAverage:
    """sum(value * weight) / sum(weight) of all that was added."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.numerator = None
        self.denominator = None

    def add(self, value, weight):
        """`value` is a number or an array, `weight` a number."""
        if not isinstance(value, (numbers.Number, np.ndarray)):
            raise ValueError("WeightedAverage.add: value must be a number or "
                             "an array, not %s" % type(value).__name__)
        if not _is_number(weight):
            raise ValueError("WeightedAverage.add: weight must be a number, "
                             "not %s" % type(weight).__name__)
        if self.numerator is None:
            self.numerator = self.denominator = 0
        self.numerator = self.numerator + value * weight
        self.denominator = self.denominator + weight

    def eval(self):
        if self.numerator is None or self.denominator == 0:
            raise ValueError("WeightedAverage.eval: nothing with a weight "
                             "was added")
        return self.numerator / self.denominator
