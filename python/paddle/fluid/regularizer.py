# SPDX-License-Identifier: Apache-2.0
"""fluid.regularizer: what is added to gradients to keep parameters small.

One of your own derives from WeightDecayRegularizer and, when it is called
with (param, grad, block), returns the variable to add to the gradient.
"""
from . import _fluid
from .core import spelled

__all__ = ["L1Decay", "L2Decay", "L1DecayRegularizer", "L2DecayRegularizer"]


class WeightDecayRegularizer:
    """What all regularizers are; override __call__ in one of your own."""

    def __call__(self, param, grad, block):
        raise NotImplementedError("%s must define __call__(param, grad, block)"
                                  % type(self).__name__)


@spelled
class _Decay(WeightDecayRegularizer):
    """One that the C library knows: its kind and strength."""
    _kind = None

    def __init__(self, regularization_coeff=0.0):
        self._regularization_coeff = regularization_coeff

    def _fluid_spec(self):
        return {"what": "regularizer", "kind": self._kind,
                "coeff": self._regularization_coeff}

    def __str__(self):
        return "%sDecay, regularization_coeff=%f" % (
            self._kind.upper(), self._regularization_coeff)


class L2DecayRegularizer(_Decay):
    """Adds coeff * param, which pulls large parameters hardest."""
    _kind = "l2"


class L1DecayRegularizer(_Decay):
    """Adds coeff * sign(param), which makes small parameters zero."""
    _kind = "l1"


def append_regularization_ops(parameters_and_grads, regularization=None):
    """Append the operators that add weight decay to gradients; minimize does
    it by itself.

    Args:
        parameters_and_grads (list): pairs of a parameter and its gradient.
        regularization (WeightDecayRegularizer): for parameters that have none
            of their own; None: they stay as they are.

    Returns:
        A list of pairs of a parameter and its new gradient.
    """
    return _fluid.decay_grads(parameters_and_grads, regularization)


L1Decay = L1DecayRegularizer
L2Decay = L2DecayRegularizer
