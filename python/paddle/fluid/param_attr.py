# SPDX-License-Identifier: Apache-2.0
"""fluid.param_attr: what a layer is told about a parameter."""
from .core import spelled

__all__ = ["ParamAttr", "WeightNormParamAttr"]


@spelled
class ParamAttr:
    """Name, start value, speed, decay and clip of one parameter.

    Where a layer takes a ParamAttr, a name, an initializer, a regularizer,
    None (the defaults) or False (no such parameter) will do as well.

    Args:
        name (str): its name; None: made.
        initializer (Initializer): how it starts; None: the layer decides.
        learning_rate (float): multiplies the optimizer's learning rate.
        regularizer (WeightDecayRegularizer): its weight decay; None: the
            optimizer's.
        trainable (bool): whether it is updated.
        gradient_clip (GradientClip): how its gradient is limited; None: not at
            all.
        do_model_average (bool): kept for scripts that have it.
    """

    def __init__(self, name=None, initializer=None, learning_rate=1.0,
                 regularizer=None, trainable=True, gradient_clip=None,
                 do_model_average=True):
        self.name = name
        self.initializer = initializer
        self.learning_rate = learning_rate
        self.regularizer = regularizer
        self.trainable = trainable
        self.gradient_clip = gradient_clip
        self.do_model_average = do_model_average

    def _fluid_spec(self):
        return {"what": "param", **vars(self)}


@spelled
class WeightNormParamAttr(ParamAttr):
    """A weight kept as a direction, name_v, and a length, name_g: one length
    for each index of dimension dim, or one for all.

    Args:
        dim (int): one length for each index of this dimension; None: one for
            all.
        name (str): its name; None: made.
        initializer (Initializer): how it starts; None: the layer decides.
        learning_rate (float): multiplies the optimizer's learning rate.
        regularizer (WeightDecayRegularizer): its weight decay; None: the
            optimizer's.
        trainable (bool): whether it is updated.
        gradient_clip (GradientClip): how its gradient is limited; None: not at
            all.
        do_model_average (bool): kept for scripts that have it.
    """

    def __init__(self, dim=None, name=None, initializer=None,
                 learning_rate=1.0, regularizer=None, trainable=True,
                 gradient_clip=None, do_model_average=False):
        super().__init__(name, initializer, learning_rate, regularizer,
                         trainable, gradient_clip, do_model_average)
        self.dim = dim

    def _fluid_spec(self):
        return {**super()._fluid_spec(), "weight_norm": True}
