# SPDX-License-Identifier: Apache-2.0
"""paddle.v2.attr: what a layer is told about its parameters and itself."""
from ..fluid.core import spelled as _spelled

__all__ = ["Param", "ParamAttr", "ParameterAttribute", "Extra", "ExtraAttr",
           "ExtraLayerAttribute", "Hook", "HookAttr"]


@_spelled
class Hook:
    """What is done to a parameter before training: pruning, which would keep
    the smallest sparsity_ratio of its elements at zero. Param refuses it."""

    def __init__(self, type, sparsity_ratio=None):
        self.type = type
        self.sparsity_ratio = 0.6 if sparsity_ratio is None \
            else sparsity_ratio
        if type != "pruning":
            raise ValueError("attr.Hook: type is %r, expected 'pruning'"
                             % (type,))
        if not 0 <= self.sparsity_ratio <= 1:
            raise ValueError("attr.Hook: sparsity_ratio is %r, expected 0 to "
                             "1" % (sparsity_ratio,))


@_spelled
class Param:
    """Name, start and training of one parameter. With none of the four
    initial_* it starts from a normal distribution of deviation
    1 / sqrt(rows)."""

    def __init__(self, name=None, is_static=False, initial_std=None,
                 initial_mean=None, initial_max=None, initial_min=None,
                 l1_rate=None, l2_rate=None, learning_rate=None,
                 momentum=None, gradient_clipping_threshold=None,
                 sparse_update=False, update_hooks=None, initializer=None):
        if (initial_max is None) != (initial_min is None):
            raise ValueError("attr.Param: give both initial_max and "
                             "initial_min, or neither")
        if initial_max is not None and initial_max < initial_min:
            raise ValueError("attr.Param: initial_max is %r, below "
                             "initial_min %r" % (initial_max, initial_min))
        if update_hooks:
            raise NotImplementedError("attr.Param: update_hooks (pruning) is "
                                      "not in this version")
        if initializer is not None and not callable(initializer):
            raise ValueError("attr.Param: initializer must be a function of "
                             "a name that returns an array")
        self.name, self.is_static = name, bool(is_static)
        self.sparse_update, self.initializer = sparse_update, initializer
        self.gradient_clipping_threshold = gradient_clipping_threshold
        if is_static:
            l1_rate = l2_rate = learning_rate = momentum = None
        self.l1_rate, self.l2_rate = l1_rate, l2_rate
        self.learning_rate, self.momentum = learning_rate, momentum
        self.mean, self.std, self.uniform = initial_mean, initial_std, False
        if initial_max is not None:
            self.mean = (initial_max + initial_min) / 2
            self.std, self.uniform = self.mean - initial_min, True
        elif initial_mean is not None or initial_std is not None:
            self.mean = 0.0 if initial_mean is None else initial_mean
            self.std = 0.01 if initial_std is None else initial_std

    @property
    def smart(self):
        """Does the shape decide how it starts?"""
        return self.std is None


@_spelled
class Extra:
    """drop_rate: the share of the layer's output that training sets to zero;
    error_clipping_threshold: the largest gradient of its output. device is
    for GPUs and has no effect."""

    def __init__(self, error_clipping_threshold=None, drop_rate=None,
                 device=None):
        if drop_rate is not None and not 0 <= drop_rate <= 1:
            raise ValueError("attr.Extra: drop_rate is %r, expected 0 to 1"
                             % (drop_rate,))
        self.error_clipping_threshold = error_clipping_threshold
        self.drop_rate, self.device = drop_rate, device


ParamAttr = ParameterAttribute = Param
ExtraAttr = ExtraLayerAttribute = Extra
HookAttr = Hook
