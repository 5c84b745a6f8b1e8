# SPDX-License-Identifier: Apache-2.0
"""paddle.v2.optimizer: how parameters follow their gradients.

The gradient is the sum over the batch. Each class names an optimizer of Fluid
that computes the original's formula; parameters that differ in momentum or
decay are updated by optimizers of their own, with one learning rate.
"""
from .. import fluid
from ..fluid.core import check_keywords as _check_keywords

__all__ = ["Optimizer", "Momentum", "Adam", "Adamax", "AdaGrad",
           "DecayedAdaGrad", "AdaDelta", "RMSProp", "ModelAverage",
           "L2Regularization", "BaseRegularization"]


class BaseRegularization:
    """What keeps parameters small."""
    rate = 0.0


class L2Regularization(BaseRegularization):
    """Adds rate * w to the gradient of every parameter that has no l2_rate
    of its own."""

    def __init__(self, rate):
        self.rate = float(rate)


class ModelAverage:
    """Parameters are saved as their mean over the last updates: over at
    least average_window of all, at most max_average_window."""

    def __init__(self, average_window, max_average_window=None,
                 do_average_in_cpu=False):
        self.average_window = average_window
        self.max_average_window = max_average_window


# --- learning rates ----------------------------------------------------------

def _steps(args):
    """[(count, rate)] of 'n1:r1,n2:r2'."""
    try:
        rows = [tuple(map(float, row.split(":"))) for row in args.split(",")]
        return [(n, r) for n, r in rows]
    except ValueError:
        raise ValueError("learning_rate_args is %r, expected "
                         "'count:rate,count:rate'" % (args,)) from None


# The formulas are the operator v2_schedule's.
_SCHEDULES = ("constant", "poly", "caffe_poly", "exp", "discexp", "linear",
              "manual", "pass_manual")

_COMMON = {
    "learning_rate": 1e-3, "learning_rate_decay_a": 0.0,
    "learning_rate_decay_b": 0.0, "learning_rate_schedule": "poly",
    "learning_rate_args": "", "regularization": None, "is_async": False,
    "model_average": None, "gradient_clipping_threshold": None,
    "batch_size": None}


class Optimizer:
    """What all optimizers share. All take learning_rate=1e-3,
    learning_rate_decay_a=0, learning_rate_decay_b=0,
    learning_rate_schedule='poly', learning_rate_args='',
    regularization=None, is_async=False, model_average=None and
    gradient_clipping_threshold=None; batch_size has no effect."""
    momentum = 0.0
    _decays = True  # does the method know decay?
    _scheduled = True  # does the method follow a schedule?

    def __init__(self, **kwargs):
        _check_keywords(type(self).__name__, _COMMON, kwargs)
        given = {**_COMMON, **kwargs}
        self.learning_rate = float(given["learning_rate"])
        self._a = float(given["learning_rate_decay_a"])
        self._b = float(given["learning_rate_decay_b"])
        self._schedule = given["learning_rate_schedule"] or "constant"
        self._args = given["learning_rate_args"]
        self.is_async = bool(given["is_async"])
        self.model_average = given["model_average"]
        self.clipping = given["gradient_clipping_threshold"]
        if self._schedule not in _SCHEDULES:
            raise ValueError("%s: learning_rate_schedule is %r, expected one "
                             "of %s" % (type(self).__name__, self._schedule,
                                        ", ".join(_SCHEDULES)))
        if self._schedule in ("manual", "pass_manual"):
            _steps(self._args)
        decay = given["regularization"]
        if decay is not None and not isinstance(decay, BaseRegularization):
            raise TypeError("%s: regularization is %r, expected "
                            "L2Regularization" % (type(self).__name__, decay))
        self.decay = decay.rate if decay is not None else 0.0
        if self.model_average is not None and not isinstance(
                self.model_average, ModelAverage):
            raise TypeError("%s: model_average is %r, expected ModelAverage"
                            % (type(self).__name__, self.model_average))

    @property
    def constant(self):
        """Does the learning rate never change?"""
        return not self._scheduled or self._schedule == "constant" or (
            self._schedule == "poly" and (self._a == 0 or self._b == 0))

    # --- for the trainer ---

    def configure(self, config):
        """Write what it decides for a parameter into its config."""
        if config.is_static:
            return
        if not config.momentum and self.momentum:
            config.momentum = self.momentum
        if not config.decay_rate and self.decay:
            config.decay_rate = self.decay
        if not config.gradient_clipping_threshold and self.clipping:
            config.gradient_clipping_threshold = self.clipping

    def minimize(self, loss, configs):
        """Append gradients and updates to the program of a loss. configs: by
        the names of parameters. Gives the variable that gets [samples, pass,
        1] before each batch; None: the learning rate is constant."""
        rate, progress = self._rate()
        first = fluid.optimizer.SGD(learning_rate=rate)
        groups = {}
        for param, grad in first.backward(loss):
            config = configs[param.name]
            limit = config.gradient_clipping_threshold
            if limit:
                param.gradient_clip = fluid.clip.GradientClipByValue(limit)
            key = (config.momentum or 0.0, config.decay_rate or 0.0,
                   config.decay_rate_l1 or 0.0)
            groups.setdefault(key, []).append((param, grad))
        for (mu, l2, l1), pairs in groups.items():
            self._update(rate, mu, l2, l1).apply_gradients(pairs)
        return progress

    def _rate(self):
        """Variables of the learning rate and of what it follows."""
        if self.constant:
            return fluid.layers.create_global_var(
                [1], self.learning_rate, "float32", persistable=True,
                name=fluid.unique_name.generate("learning_rate")), None
        steps = _steps(self._args) if "manual" in self._schedule else []
        return fluid.layers.v2_learning_rate(
            self.learning_rate, self._schedule, self._a, self._b,
            [n for n, _ in steps], [r for _, r in steps])

    def _no_updater(self, *args, **kwargs):
        raise NotImplementedError(
            "%s: updaters are objects of the original's engine, which this "
            "version does not have; trainer.SGD(update_equation=...) updates "
            "parameters" % type(self).__name__)

    enable_types = create_updater = _no_updater
    create_local_updater = create_remote_updater = _no_updater

    def _update(self, rate, mu, l2, l1):
        """The Fluid optimizer of parameters with one momentum and decay."""
        raise NotImplementedError


def _no_l1(who, l1):
    if l1:
        raise NotImplementedError("%s: l1_rate is not in this version" % who)


class Momentum(Optimizer):
    """v = momentum v - lr (g + d w); w += v. Without momentum it is plain
    SGD."""

    def __init__(self, momentum=None, sparse=False, **kwargs):
        super().__init__(**kwargs)
        self.momentum = float(momentum or 0.0)

    def _update(self, rate, mu, l2, l1):
        if not (mu or l2 or l1):
            return fluid.optimizer.SGD(learning_rate=rate)
        return fluid.optimizer.V2Momentum(rate, momentum=mu, l2=l2, l1=l1)


class AdaGrad(Optimizer):
    """s += g^2; v = mu v - lr (g + d w) / sqrt(s + 1e-6); w += v. The
    learning rate is not scheduled."""
    _scheduled = False

    def _update(self, rate, mu, l2, l1):
        return fluid.optimizer.V2AdaGrad(rate, momentum=mu, l2=l2, l1=l1)


class _Running(Optimizer):
    """An optimizer with a running mean of squares."""
    _cls = None

    def __init__(self, rho=0.95, epsilon=1e-6, **kwargs):
        super().__init__(**kwargs)
        self.rho, self.epsilon = float(rho), float(epsilon)

    def _update(self, rate, mu, l2, l1):
        return getattr(fluid.optimizer, self._cls)(
            rate, momentum=mu, l2=l2, l1=l1, rho=self.rho,
            epsilon=self.epsilon)


class DecayedAdaGrad(_Running):
    """s = rho s + (1 - rho) g^2, at first g^2; v = mu v - lr (g + d w) /
    sqrt(s + epsilon); w += v."""
    _cls = "V2DecayedAdaGrad"


class AdaDelta(_Running):
    """s = rho s + (1 - rho) g^2; r = sqrt((u + epsilon) / (s + epsilon));
    u = rho u + (1 - rho) (g r)^2; v = mu v - lr r (g + d w); w += v."""
    _cls = "V2AdaDelta"


class RMSProp(_Running):
    """s as DecayedAdaGrad; f = rho f + (1 - rho) g; v = mu v - lr (g + d w) /
    sqrt(s - f^2 + epsilon); w += v."""
    _cls = "V2RMSProp"


class Adam(Optimizer):
    """Adam; it knows no decay."""

    def __init__(self, beta1=0.9, beta2=0.999, epsilon=1e-8, **kwargs):
        super().__init__(**kwargs)
        self._numbers = dict(beta1=float(beta1), beta2=float(beta2),
                             epsilon=float(epsilon))

    def _update(self, rate, mu, l2, l1):
        _no_l1("Adam", l1)
        return fluid.optimizer.Adam(rate, **self._numbers)


class Adamax(Optimizer):
    """Adam with the largest gradient in place of the mean square; it knows
    neither decay nor schedules."""
    _scheduled = False

    def __init__(self, beta1=0.9, beta2=0.999, **kwargs):
        super().__init__(**kwargs)
        self._numbers = dict(beta1=float(beta1), beta2=float(beta2))

    def _update(self, rate, mu, l2, l1):
        _no_l1("Adamax", l1)
        return fluid.optimizer.Adamax(rate, **self._numbers)
