# SPDX-License-Identifier: Apache-2.0
"""fluid.initializer: how parameters start.

The classes say what is wanted; the C library puts the op into the startup
program. One of your own derives from Initializer and appends what it likes
when it is called with (variable, block of the startup program).
"""
import contextlib

import numpy as np

from .. import _absent
from . import _fluid
from .core import spelled

__all__ = ["Initializer", "Constant", "Uniform", "Normal", "TruncatedNormal",
           "Xavier", "Bilinear", "MSRA", "force_init_on_cpu", "init_on_cpu",
           "ConstantInitializer", "UniformInitializer", "NormalInitializer",
           "TruncatedNormalInitializer", "XavierInitializer",
           "BilinearInitializer", "MSRAInitializer", "NumpyArrayInitializer"]


class Initializer:
    """Base class of initializers; override __call__ in your own."""

    def __call__(self, param, block):
        raise NotImplementedError("%s must define __call__(param, block)"
                                  % type(self).__name__)


class _Known(Initializer):
    """An initializer of the C library: its kind and numbers."""

    def __init__(self, kind, **numbers):
        self._spec = dict(numbers, what="init", kind=kind)

    def _fluid_spec(self):
        return self._spec

    def __call__(self, param, block):
        before = _fluid.switch_startup_program(block.program)
        try:
            _fluid.initialize(param, self)
        finally:
            _fluid.switch_startup_program(before)


@spelled
class ConstantInitializer(_Known):
    """Set every element to one value.

    Args:
        value (float): the value.
        force_cpu (bool): accepted and ignored.
    """

    def __init__(self, value=0.0, force_cpu=False):
        super().__init__("constant", a=value)


@spelled
class UniformInitializer(_Known):
    """Draw elements uniformly between low and high.

    Args:
        low (float): the lower bound.
        high (float): the upper bound.
        seed (int): the seed of the random numbers; 0: the program's.
    """

    def __init__(self, low=-1.0, high=1.0, seed=0):
        super().__init__("uniform", a=low, b=high, seed=seed)


@spelled
class NormalInitializer(_Known):
    """Draw elements from a normal distribution.

    Args:
        loc (float): the mean.
        scale (float): the standard deviation.
        seed (int): the seed of the random numbers; 0: the program's.
    """

    def __init__(self, loc=0.0, scale=1.0, seed=0):
        super().__init__("normal", a=loc, b=scale, seed=seed)


@spelled
class TruncatedNormalInitializer(_Known):
    """Draw elements from a normal distribution without the values beyond two
    standard deviations.

    Args:
        loc (float): the mean.
        scale (float): the standard deviation.
        seed (int): the seed of the random numbers; 0: the program's.
    """

    def __init__(self, loc=0.0, scale=1.0, seed=0):
        super().__init__("truncated_normal", a=loc, b=scale, seed=seed)


@spelled
class XavierInitializer(_Known):
    """Xavier (Glorot) initialisation: the deviation follows from the numbers
    of inputs and outputs.

    Args:
        uniform (bool): a uniform distribution rather than a normal one.
        fan_in (int): the number of inputs; None: from the shape.
        fan_out (int): the number of outputs; None: from the shape.
        seed (int): the seed of the random numbers; 0: the program's.
    """

    def __init__(self, uniform=True, fan_in=None, fan_out=None, seed=0):
        super().__init__("xavier", gaussian=not uniform, fan_in=fan_in,
                         fan_out=fan_out, seed=seed)


@spelled
class MSRAInitializer(_Known):
    """MSRA (He) initialisation, for networks of relu: the deviation follows
    from the number of inputs.

    Args:
        uniform (bool): a uniform distribution rather than a normal one.
        fan_in (int): the number of inputs; None: from the shape.
        seed (int): the seed of the random numbers; 0: the program's.
    """

    def __init__(self, uniform=True, fan_in=None, seed=0):
        super().__init__("msra", gaussian=not uniform, fan_in=fan_in,
                         seed=seed)


@spelled
class BilinearInitializer(_Known):
    """Fill the filters of a transposed convolution so that it enlarges
    pictures by bilinear interpolation.
    """

    def __init__(self):
        super().__init__("bilinear")


@spelled
class NumpyArrayInitializer(_Known):
    """Take the elements of an array.

    Args:
        value (numpy.ndarray): the elements.
    """

    def __init__(self, value):
        if not isinstance(value, np.ndarray):
            raise TypeError("NumpyArrayInitializer: value is %s, expected "
                            "numpy.ndarray" % type(value).__name__)
        super().__init__("array", array=np.ascontiguousarray(value))


Constant = ConstantInitializer
Uniform = UniformInitializer
Normal = NormalInitializer
TruncatedNormal = TruncatedNormalInitializer
Xavier = XavierInitializer
MSRA = MSRAInitializer
Bilinear = BilinearInitializer


def force_init_on_cpu():
    """Whether initializers are bound to the CPU.

    Returns:
        False: they run nowhere else.
    """
    return False


@contextlib.contextmanager
def init_on_cpu():
    """A `with` block that changes nothing: there is only the CPU."""
    yield


_absent.answer_for(globals())
