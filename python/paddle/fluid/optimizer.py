# SPDX-License-Identifier: Apache-2.0
"""fluid.optimizer: what minimises a loss.

The classes are made from the table of the C library, which appends their
updates. One of your own derives from Optimizer and defines
_append_optimize_op, and if it needs them _create_accumulators and
_finish_update; the library calls them while it updates.
"""
import inspect
import warnings
import weakref

from .. import _absent
from . import _fluid
from .backward import _check_callbacks
from .framework import Variable, default_main_program, program_guard
from .layers import _table
from .regularizer import append_regularization_ops  # noqa: F401


class _Hooks:
    """What C calls of an optimizer of the user's own."""

    def __init__(self, optimizer):
        self._optimizer = weakref.proxy(optimizer)  # which owns this

    def create_accumulators(self, block, parameters):
        self._optimizer._create_accumulators(block, parameters)

    def append_op(self, block, param_and_grad):
        self._optimizer._append_optimize_op(block, param_and_grad)

    def finish(self, block, parameters_and_grads):
        self._optimizer._finish_update(block, parameters_and_grads)


class Optimizer:
    """What all optimizers share, and what one of your own derives from.

    Args:
        learning_rate (float or Variable): the step size.
        regularization (WeightDecayRegularizer): for parameters that have none
            of their own.
        name (str): goes into the names of accumulators.
    """

    def __init__(self, learning_rate, regularization=None, name=None):
        self._start(None, {"learning_rate": learning_rate,
                           "regularization": regularization, "name": name})

    def _start(self, known, arguments):
        """known: the name in C's table; None: one of the user's own."""
        rate = arguments["learning_rate"]
        if not isinstance(rate, (float, Variable)):
            raise TypeError("learning rate should be float or Variable, got "
                            "%s here" % type(rate))
        self._learning_rate = rate
        self.regularization = arguments["regularization"]
        self._name = arguments["name"]
        self._spec = known, arguments, (
            _Hooks(self) if known is None or self._overrides() else None)
        self._of = {}  # program -> C's optimizer for it
        self._c = _fluid.Optimizer(*self._spec)  # in use, for one of them

    def _turn_to(self, program):
        """The learning rate and accumulators are variables of a program, so
        each program has an optimizer of C to itself."""
        if program not in self._of:
            self._of[program] = _fluid.Optimizer(*self._spec) if self._of \
                else self._c
        self._c = self._of[program]

    # --- use ---

    def minimize(self, loss, startup_program=None, parameter_list=None,
                 no_grad_set=None, grad_clip=None):
        """Append gradients of a loss and updates of the parameters to its
        program.

        Args:
            loss (Variable): what is minimised; one number.
            startup_program (Program): where accumulators are initialised;
                None: the default startup program.
            parameter_list (list): parameters or names; None: all that are
                trained.
            no_grad_set (set): variables or names that get no gradient.
            grad_clip: accepted and ignored; see clip.set_gradient_clip.

        Returns:
            The operators of the update, and pairs (parameter, gradient).
        """
        if grad_clip is not None:
            warnings.warn("minimize: grad_clip is for dygraph and does "
                          "nothing here; call fluid.clip.set_gradient_clip",
                          stacklevel=2)
        params_grads = self.backward(loss, startup_program, parameter_list,
                                     no_grad_set)
        ops = self.apply_optimize(loss, startup_program, params_grads)
        return ops, params_grads

    def backward(self, loss, startup_program=None, parameter_list=None,
                 no_grad_set=None, callbacks=None):
        """The first half of minimize: [(parameter, gradient)]."""
        _check_callbacks(callbacks)
        if not isinstance(loss, Variable):
            raise TypeError("%s: loss is %s, expected a Variable" % (
                type(self).__name__, type(loss).__name__))
        self._turn_to(loss.block.program)
        return self._c.backward(loss, startup_program, parameter_list,
                                no_grad_set)

    def apply_gradients(self, params_grads):
        """The second half, in the default programs: the ops of the update.
        Gradients are clipped first, then decay is added."""
        self._turn_to(default_main_program())
        return self._c.apply_gradients(params_grads)

    def apply_optimize(self, loss, startup_program, params_grads):
        """The second half, in the program of a loss."""
        with program_guard(loss.block.program, startup_program):
            return self.apply_gradients(params_grads)

    # --- for optimizers of one's own ---

    def _create_accumulators(self, block, parameters):
        """Add accumulators; nothing is added unless it is overridden."""

    def _append_optimize_op(self, block, param_and_grad):
        """Append the op that updates one parameter, and return it."""
        raise NotImplementedError("%s must define _append_optimize_op(block, "
                                  "param_and_grad)" % type(self).__name__)

    def _finish_update(self, block, parameters_and_grads):
        """Append what comes after all updates; nothing by default."""

    def _add_accumulator(self, name, param, dtype=None, fill_value=0.0,
                         shape=None):
        """A variable of the parameter's shape that lives from step to step;
        its dtype is the parameter's."""
        return self._c.accumulator(name, param, fill_value, shape)

    def _get_accumulator(self, name, param):
        """The variable that _add_accumulator made."""
        found = self._c.get_accumulator(name, param)
        if found is None:
            raise ValueError("parameter %s has no accumulator %s"
                             % (param.name, name))
        return found

    @property
    def _accumulators(self):
        """{kind: {name of the parameter: variable}} of the program in use."""
        return self._c.accumulators()

    def _global_learning_rate(self, program=None):
        """The variable of the learning rate; None before minimize."""
        made = self._of.get(program or default_main_program())
        return made and made.rate

    def _create_param_lr(self, param_and_grad):
        """The learning rate of one parameter."""
        return self._c.param_rate(param_and_grad[0])


class _Known(Optimizer):
    """One of C's table. Where a class of the user's own derives from it, C
    calls these, which say what the table says."""

    def _create_accumulators(self, block, parameters):
        self._c.create_accumulators(parameters)

    def _append_optimize_op(self, block, param_and_grad):
        return self._c.append_op(param_and_grad)

    def _finish_update(self, block, parameters_and_grads):
        self._c.finish(parameters_and_grads)

    def _overrides(self):
        return any(getattr(type(self), h) is not getattr(_Known, h) for h in (
            "_create_accumulators", "_append_optimize_op", "_finish_update"))


def _class(spec):
    """The class of a row of C's table."""
    signature = _table.signature(spec)
    name = spec.name + "Optimizer"

    def __init__(self, *args, **kwargs):
        arguments = _table.bind(name, signature, args, kwargs)
        self._start(spec.name, {
            **{p.name: p.default for p in signature.parameters.values()},
            **arguments})

    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    __init__.__signature__ = inspect.Signature(
        [this, *signature.parameters.values()])
    return type(name, (_Known,), {
        "__init__": __init__, "__doc__": _table.document(
            spec, "An optimizer; call minimize(loss)."),
        "__module__": __name__})


_CLASSES = {spec.name: _class(spec) for spec in _fluid.optimizer_table()}
__all__ = ["Optimizer", *_CLASSES, *(n + "Optimizer" for n in _CLASSES)]
globals().update(_CLASSES)
globals().update((n + "Optimizer", c) for n, c in _CLASSES.items())


_absent.answer_for(globals())
