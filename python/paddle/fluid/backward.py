# SPDX-License-Identifier: Apache-2.0
"""fluid.backward: gradients, appended to a program."""
from . import _fluid
from .clip import error_clip_callback
from .framework import Variable

__all__ = ["append_backward", "gradients"]


def _check_callbacks(callbacks):
    """Refuse callbacks, except that of error clips."""
    others = [c for c in callbacks or () if c is not error_clip_callback]
    if others:
        raise NotImplementedError(
            "append_backward: callbacks are not supported; change the ops "
            "after it returns, or set error_clip on a variable")


def append_backward(loss, parameter_list=None, no_grad_set=None,
                    callbacks=None):
    """Append the gradient of a loss to its program.

    Args:
        loss (Variable): what is differentiated; one number.
        parameter_list (list): parameters or names; None: all that are trained.
        no_grad_set (set): variables or names that get no gradient.
        callbacks (list): only clip.error_clip_callback is supported.

    Returns:
        A list of pairs (parameter, gradient).
    """
    if not isinstance(loss, Variable):
        raise TypeError("append_backward: loss is %s, expected a Variable"
                        % type(loss).__name__)
    _check_callbacks(callbacks)
    return _fluid.append_backward(loss, parameter_list, no_grad_set)


def _as_list(x):
    return list(x) if isinstance(x, (list, tuple)) else [x]


def gradients(targets, inputs, target_gradients=None, no_grad_set=None):
    """Append the gradients of targets with respect to inputs.

    Args:
        targets (Variable or list): what is differentiated.
        inputs (Variable or list): with respect to what.
        target_gradients (Variable or list): the gradients of the targets;
            None: ones.
        no_grad_set (set): variables or names that get no gradient.

    Returns:
        A list with the gradient of each input; None where there is none.
    """
    if target_gradients is not None:
        target_gradients = _as_list(target_gradients)
    return _fluid.gradients(_as_list(targets), _as_list(inputs),
                            target_gradients, no_grad_set)


def calc_gradient(targets, inputs, target_gradients=None, no_grad_set=None):
    """Like gradients; for a single input the gradient, not a list."""
    found = gradients(targets, inputs, target_gradients, no_grad_set)
    return found[0] if len(found) == 1 else found
