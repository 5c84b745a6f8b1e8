# SPDX-License-Identifier: Apache-2.0
"""Costs: one number for each row.

Training follows the gradient of their sum over the batch; a cost that is
reported is the sum over the number of samples. coeff scales the gradient and
not what is reported.
"""
from ... import fluid
from .. import activation, config_base
from ..config_base import layer
from ..data_type import DataType
from ._shared import row_sum

_F = fluid.layers


def _weighed(me, cost, coeff, weight):
    me.coeff = float(coeff)
    if weight is None:
        return cost
    return _F.elementwise_mul(cost, weight.rows)


def _labels(me, label):
    """Ids, or a distribution over the classes."""
    ids = label.type is None or label.type.type == DataType.Index
    return (label.var, False) if ids else (label.rows, True)


def _cross_entropy(me, input, label):
    ids, soft = _labels(me, label)
    return _F.cross_entropy(input.rows, ids, soft_label=soft)


def classification_cost(input, label, weight=None, name=None, top_k=None,
                        evaluator="classification_error", layer_attr=None,
                        coeff=1.0):
    """Cross entropy of a layer with softmax, with an evaluator of how many
    rows are wrong."""
    from .. import evaluator as evaluators
    if not isinstance(input.activation, activation.Softmax):
        raise ValueError("classification_cost: its input %s has the "
                         "activation %r, expected Softmax()"
                         % (input.name, input.activation))
    if label.layer_type != "data":
        raise ValueError("classification_cost: its label %s is not a data layer"
                         % label.name)
    made = _classification_cost(
        input=input, label=label, weight=weight, coeff=coeff,
        name=name, layer_attr=layer_attr)
    for one in config_base.as_list(evaluator):
        if one is None:
            continue
        function = getattr(evaluators, one) if isinstance(one, str) else one
        more = {} if top_k is None else {"top_k": top_k}
        function(input=input, label=label, weight=weight,
                 name=function.__name__ + "_evaluator", **more)
    return made


@layer("cost", layer_type="multi-class-cross-entropy")
def _classification_cost(me, input, label, weight=None, coeff=1.0):
    return _weighed(me, _cross_entropy(me, input, label), coeff, weight)


@layer("cross_entropy", layer_type="multi-class-cross-entropy")
def cross_entropy_cost(me, input, label, coeff=1.0, weight=None):
    """-ln of the probability that input gives to the label."""
    return _weighed(me, _cross_entropy(me, input, label), coeff, weight)


@layer("cross_entropy_with_selfnorm")
def cross_entropy_with_selfnorm_cost(me, input, label, coeff=1.0,
                                     softmax_selfnorm_alpha=0.1):
    """-ln x[label] + ln Z + alpha (ln Z)^2, where Z is the row's sum."""
    z = _F.log(row_sum(input.rows))
    more = _F.elementwise_add(z, _F.scale(_F.square(z),
                                          scale=softmax_selfnorm_alpha))
    cost = _F.elementwise_add(_cross_entropy(me, input, label), more)
    return _weighed(me, cost, coeff, None)


@layer("multi_binary_label_cross_entropy")
def multi_binary_label_cross_entropy_cost(me, input, label, coeff=1.0):
    """-ln x of every label that is set, -ln(1 - x) of every other."""
    y = _F.one_hot(label.var, input.size) if label.type is not None and \
        label.type.type == DataType.Index else label.rows
    off = _F.elementwise_mul(_F.scale(y, scale=-1.0, bias=1.0), _F.log(
        _F.scale(input.rows, scale=-1.0, bias=1.0)))
    on = _F.elementwise_mul(y, _F.log(input.rows))
    cost = _F.scale(row_sum(_F.elementwise_add(on, off)), scale=-1.0)
    return _weighed(me, cost, coeff, None)


@layer("square_error_cost")
def square_error_cost(me, input, label, weight=None, coeff=1.0):
    """The sum of squared differences."""
    cost = row_sum(_F.square_error_cost(input.rows, label.rows))
    return _weighed(me, cost, coeff, weight)


regression_cost = mse_cost = square_error_cost


@layer("smooth_l1_cost")
def smooth_l1_cost(me, input, label, coeff=1.0):
    """The sum of d^2 / 2 up to a difference of 1, of d - 1 / 2 beyond."""
    return _weighed(me, _F.smooth_l1(input.rows, label.rows), coeff, None)


@layer("huber_regression_cost")
def huber_regression_cost(me, input, label, delta=1.0, coeff=1.0):
    """The sum of d^2 / 2 up to delta, linear beyond."""
    cost = row_sum(_F.huber_loss(input.rows, label.rows, delta))
    return _weighed(me, cost, coeff, None)


@layer("huber_classification_cost")
def huber_classification_cost(me, input, label, coeff=1.0):
    """With a = x (2 label - 1): -4 a below -1, (1 - a)^2 up to 1, then 0."""
    y = _F.scale(_F.cast(label.var, "float32"), scale=2.0, bias=-1.0)
    a = _F.scale(_F.elementwise_mul(input.rows, y), scale=-1.0)
    cost = _F.elementwise_sub(
        _F.square(_F.relu(_F.scale(a, bias=1.0))),
        _F.square(_F.relu(_F.scale(a, bias=-1.0))))
    return _weighed(me, cost, coeff, None)


huber_cost = huber_classification_cost


@layer("rank_cost")
def rank_cost(me, left, right, label, weight=None, coeff=1.0):
    """ln(1 + e^o) - label o for o = left - right."""
    y = label.rows if label.type is None or \
        label.type.type == DataType.Dense else _F.cast(label.var, "float32")
    return _weighed(me, _F.rank_loss(y, left.rows, right.rows), coeff, weight)


@layer("sum_cost")
def sum_cost(me, input):
    """The sum of a row."""
    return row_sum(input.rows)
