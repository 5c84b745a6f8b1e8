# SPDX-License-Identifier: Apache-2.0
"""fluid.clip: limits on gradients."""
from .. import _absent
from . import _fluid
from .core import spelled

__all__ = ["ErrorClipByValue", "GradientClipByValue", "GradientClipByNorm",
           "GradientClipByGlobalNorm", "set_gradient_clip"]


class _Clip:
    """A clip as the C library expects it."""

    def __init__(self, kind, max, min=None, group=None):
        self._spec = {"what": "clip", "kind": kind, "max": float(max)}
        if kind == "value":
            self._spec["min"] = -float(max) if min is None else float(min)
        if group is not None:
            self._spec["group"] = group

    def _fluid_spec(self):
        return self._spec


class BaseErrorClipAttr(_Clip):
    """What may be set as the error_clip of a variable."""


class BaseGradientClipAttr(_Clip):
    """What may be set as the gradient_clip of a parameter."""


@spelled
class _ByValue:
    """Limit every element of a gradient to the range from min to max.

    Args:
        max (float): the upper bound.
        min (float): the lower bound; None: -max.
    """

    def __init__(self, max, min=None):
        super().__init__("value", max, min)
        self.max, self.min = self._spec["max"], self._spec["min"]

    def __str__(self):
        return "ByValue, min=%f, max=%f" % (self.min, self.max)


class ErrorClipByValue(_ByValue, BaseErrorClipAttr):
    """Limit the gradient of a variable while it flows back.

    Args:
        max (float): the upper bound.
        min (float): the lower bound; None: -max.
    """


class GradientClipByValue(_ByValue, BaseGradientClipAttr):
    """Limit every element of the gradient of a parameter before the update.

    Args:
        max (float): the upper bound.
        min (float): the lower bound; None: -max.
    """


@spelled
class GradientClipByNorm(BaseGradientClipAttr):
    """Scale a gradient down to norm clip_norm if its norm is larger.

    Args:
        clip_norm (float): the largest norm.
    """

    def __init__(self, clip_norm):
        super().__init__("norm", clip_norm)
        self.clip_norm = clip_norm

    def __str__(self):
        return "ByNorm, clip_norm=%f" % self.clip_norm


@spelled
class GradientClipByGlobalNorm(BaseGradientClipAttr):
    """Scale all gradients of a group by one factor, so that their common norm
    is at most clip_norm.

    Args:
        clip_norm (float): the largest common norm.
        group_name (str): parameters of one name are one group.
    """

    def __init__(self, clip_norm, group_name="default_group"):
        if not isinstance(group_name, str):
            raise TypeError("GradientClipByGlobalNorm: group_name is %s, "
                            "expected str" % type(group_name).__name__)
        super().__init__("global_norm", clip_norm, group=group_name)
        self.clip_norm, self.group_name = clip_norm, group_name

    def __str__(self):
        return "ByGlobalNorm, group_name=%s, clip_norm=%f" % (
            self.group_name, self.clip_norm)


def set_gradient_clip(clip, param_list=None, program=None):
    """Limit the gradients of parameters.

    Args:
        clip (GradientClip): how they are limited.
        param_list (list): parameters or names; None: all of the program.
        program (Program): the program; None: the default main program.
    """
    if not isinstance(clip, BaseGradientClipAttr):
        raise TypeError("set_gradient_clip: clip is %s, expected one of %s" % (
            type(clip).__name__, ", ".join(__all__[1:4])))
    names = None if param_list is None else [
        getattr(p, "name", p) for p in param_list]
    _fluid.set_gradient_clip(clip, program, names)


def append_gradient_clip_ops(param_grads):
    """Append the operators that clip gradients; minimize does it by itself.

    Args:
        param_grads (list): pairs of a parameter and its gradient.

    Returns:
        A list of pairs of a parameter and its clipped gradient, which is the
        gradient itself where the parameter has no clip.
    """
    return _fluid.clip_grads(param_grads)


def error_clip_callback(block, context):
    """A callback for append_backward; error clips work without it, too."""


_absent.answer_for(globals())
