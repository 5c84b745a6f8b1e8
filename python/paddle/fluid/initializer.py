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
    """What all initializers are; override __call__ in one of your own."""

    def __call__(self, param, block):
        raise NotImplementedError("%s must define __call__(param, block)"
                                  % type(self).__name__)


class _Known(Initializer):
    """One that the C library knows: its kind and numbers."""

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
    """Every element is value."""

    def __init__(self, value=0.0, force_cpu=False):
        super().__init__("constant", a=value)


@spelled
class UniformInitializer(_Known):
    """Any number from low to high is as likely as any other."""

    def __init__(self, low=-1.0, high=1.0, seed=0):
        super().__init__("uniform", a=low, b=high, seed=seed)


@spelled
class NormalInitializer(_Known):
    """The normal distribution around loc with deviation scale."""

    def __init__(self, loc=0.0, scale=1.0, seed=0):
        super().__init__("normal", a=loc, b=scale, seed=seed)


@spelled
class TruncatedNormalInitializer(_Known):
    """The normal distribution without what is over two deviations away."""

    def __init__(self, loc=0.0, scale=1.0, seed=0):
        super().__init__("truncated_normal", a=loc, b=scale, seed=seed)


@spelled
class XavierInitializer(_Known):
    """A spread by inputs and outputs, so that signals keep their size."""

    def __init__(self, uniform=True, fan_in=None, fan_out=None, seed=0):
        super().__init__("xavier", gaussian=not uniform, fan_in=fan_in,
                         fan_out=fan_out, seed=seed)


@spelled
class MSRAInitializer(_Known):
    """A spread by the inputs alone, made for networks of relu."""

    def __init__(self, uniform=True, fan_in=None, seed=0):
        super().__init__("msra", gaussian=not uniform, fan_in=fan_in,
                         seed=seed)


@spelled
class BilinearInitializer(_Known):
    """Kernels that enlarge a picture, for transposed convolutions."""

    def __init__(self):
        super().__init__("bilinear")


@spelled
class NumpyArrayInitializer(_Known):
    """The elements of an array."""

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
    """Whether initializers are bound to the CPU; they run nowhere else."""
    return False


@contextlib.contextmanager
def init_on_cpu():
    """A `with` block that changes nothing: there is only the CPU."""
    yield


_absent.answer_for(globals())
