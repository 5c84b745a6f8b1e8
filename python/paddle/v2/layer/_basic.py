# SPDX-License-Identifier: Apache-2.0
"""Layers that work on one row after another."""
import numpy as np

from ... import fluid
from .. import activation, config_base
from ..attr import Param
from ..config_base import Layer, as_list, layer
from ..data_type import DataType, InputType
from ._shared import as_lists, look_up, product, row_sum, total

_F = fluid.layers


def data(name, type, height=None, width=None, depth=None, layer_attr=None):
    """An input: what each run is fed under this name."""
    if not isinstance(type, InputType):
        raise TypeError("layer.data %s: type is %r, expected one of "
                        "paddle.v2.data_type" % (name, type))
    made = Layer(name, "data")
    made.type, made.size = type, int(np.prod(type.dim))
    made.depth = depth or 0
    level = type.seq_type + (1 if type.sparse else 0)
    with config_base.graph.building():
        if type.type == DataType.Dense:
            made.var = _F.data(name, [made.size], lod_level=level)
        else:
            made.var = _F.data(name, [1], dtype="int64", lod_level=level)
        if type.type == DataType.SparseValue:
            made.values = _F.data(name + ".values", [1], lod_level=level)
        if height and width:
            _shape_picture(made, height, width)
    config_base.graph.add_layer(made)
    return made


def _shape_picture(made, height, width):
    made.num_filters = made.size // (height * width)
    if made.num_filters * height * width != made.size:
        raise ValueError("layer.data %s: %d numbers are not pictures of %d x "
                         "%d" % (made.name, made.size, height, width))
    made.var = _F.reshape(made.var, [-1, made.num_filters, height, width])


@layer("fc_layer", act=activation.Tanh)
def fc(me, input, size, param_attr=None, bias_attr=None):
    """act(sum of input x weight + bias)."""
    inputs = as_list(input)
    attrs = as_lists(param_attr, len(inputs), "param_attr")
    parts = [product(me, i, x, size, a)
             for i, (x, a) in enumerate(zip(inputs, attrs))]
    return me.add_bias(total(parts), bias_attr)


@layer("selective_fc_layer", act=activation.Tanh)
def selective_fc(me, input, size, select=None, param_attr=None,
                 bias_attr=None, pass_generation=False,
                 has_selected_colums=True, mul_ratio=0.02):
    """fc whose weight is stored [out, in]; of its columns those that
    `select` has as 1, the others 0."""
    inputs = as_list(input)
    attrs = as_lists(param_attr, len(inputs), "param_attr")
    parts = []
    for i, (x, a) in enumerate(zip(inputs, attrs)):
        weight = me.make(me.weight(i, [size, x.size], a), [size, x.size])
        parts.append(_F.matmul(x.rows, weight, transpose_y=True))
    out = me.add_bias(total(parts), bias_attr)
    return out if select is None else _F.elementwise_mul(out, select.rows)


@layer("embedding")
def embedding(me, input, size, param_attr=None):
    """For each id the row of a table [ids, size]."""
    return look_up(me, 0, input, size, param_attr)


@layer("concat", act=activation.Linear)
def concat(me, input, bias_attr=None):
    """Layers, or projections, side by side."""
    parts = []
    for i, one in enumerate(as_list(input)):
        parts.append(one.rows if isinstance(one, Layer)
                     else one.build(me, i, one.size))
    return me.add_bias(_F.concat(parts, axis=1), bias_attr, default=False)


@layer("addto", act=activation.Linear)
def addto(me, input, bias_attr=None):
    """act(sum of inputs of one size + bias)."""
    inputs = as_list(input)
    me.num_filters = inputs[0].num_filters
    shapes = {tuple(x.dense.shape) for x in inputs}
    parts = [x.dense if len(shapes) == 1 else x.rows for x in inputs]
    return me.add_bias(total(parts), bias_attr, default=False)


@layer("dropout")
def dropout(me, input, dropout_rate):
    """Zeros at random places while training, each with dropout_rate."""
    me.num_filters = input.num_filters
    return _F.dropout(input.dense, dropout_prob=dropout_rate)


# --- arithmetic --------------------------------------------------------------

def _like(me, x):
    me.num_filters = x.num_filters
    return x.dense


@layer("slope_intercept_layer")
def slope_intercept(me, input, slope=1.0, intercept=0.0):
    """slope * x + intercept."""
    return _F.scale(_like(me, input), scale=slope, bias=intercept)


@layer("clip")
def clip(me, input, min, max):
    """x held between min and max."""
    return _F.clip(_like(me, input), min, max)


@layer("scale_shift")
def scale_shift(me, input, param_attr=None, bias_attr=None):
    """w x + b with one w and one b."""
    w = me.make(me.weight(0, [1, 1], param_attr), [1, 1])
    out = _F.matmul(_F.reshape(input.rows, [-1, 1]), w)
    bias = me.bias([1, 1], bias_attr, [1])
    if bias is not False:
        out = _F.elementwise_add(out, me.make(bias, [1]), axis=1)
    return _F.reshape(out, [-1, input.size])


def _weigh(x, weight):
    """Each row of x times its number of weight."""
    return _F.elementwise_mul(x, _F.reshape(weight.rows, [-1]), axis=0)


@layer("scaling_layer")
def scaling(me, input, weight):
    """Row by row weight * x, where weight has size 1."""
    return _weigh(input.rows, weight)


@layer("power_layer")
def power(me, input, weight):
    """Row by row x to the power of weight, which has size 1."""
    return _F.elementwise_pow(input.rows, _F.reshape(weight.rows, [-1]),
                              axis=0)


@layer("interpolation_layer")
def interpolation(me, input, weight):
    """w a + (1 - w) b for input [a, b] and a weight of size 1."""
    a, b = input
    return _F.elementwise_add(_weigh(_F.elementwise_sub(a.rows, b.rows),
                                     weight), b.rows)


@layer("cos_sim")
def cos_sim(me, a, b, scale=1, size=1):
    """scale times the cosine between rows of a and b. With size > 1 a row of
    b holds that many vectors."""
    if size == 1:
        return _F.scale(_F.cos_sim(a.rows, b.rows), scale=float(scale))
    parts = _F.split(b.rows, size, dim=1)
    return _F.scale(_F.concat([_F.cos_sim(a.rows, p) for p in parts], axis=1),
                    scale=float(scale))


@layer("l2_distance_layer")
def l2_distance(me, x, y):
    """How far rows of x and y are apart."""
    return _F.sqrt(row_sum(_F.square(_F.elementwise_sub(x.rows, y.rows))))


@layer("dot_prod_layer")
def dot_prod(me, input1, input2):
    """The sum of products of two rows."""
    return row_sum(_F.elementwise_mul(input1.rows, input2.rows))


@layer("out_prod_layer")
def out_prod(me, input1, input2):
    """All products of an element of each row."""
    n, m = input1.size, input2.size
    out = _F.matmul(_F.reshape(input1.rows, [-1, n, 1]),
                    _F.reshape(input2.rows, [-1, 1, m]))
    return _F.reshape(out, [-1, n * m])


@layer("linear_comb_layer")
def linear_comb(me, weights, vectors, size=None):
    """The sum of `size` wide vectors, each times its weight."""
    size = size or vectors.size // weights.size
    out = _F.matmul(_F.reshape(weights.rows, [-1, 1, weights.size]),
                    _F.reshape(vectors.rows, [-1, weights.size, size]))
    return _F.reshape(out, [-1, size])


convex_comb = linear_comb


@layer("conv_shift_layer")
def conv_shift(me, a, b):
    """c_i = sum over j of a_(i+j) b_j, in a circle; b has an odd size and
    its middle is j = 0."""
    half, n = b.size // 2, a.size
    around = _F.concat([_F.slice(a.rows, [1], [n - half], [n]), a.rows,
                        _F.slice(a.rows, [1], [0], [half])], axis=1) \
        if half else a.rows
    parts = []
    for j, weight in enumerate(_F.split(b.rows, b.size, dim=1)):
        part = _F.slice(around, [1], [j], [j + n])
        parts.append(_F.elementwise_mul(part, _F.reshape(weight, [-1]),
                                        axis=0))
    return total(parts)


@layer("tensor_layer", act=activation.Linear)
def tensor(me, a, b, size, param_attr=None, bias_attr=None):
    """y_i = a W_i b for `size` matrices W_i."""
    dims = [a.size, b.size, size]
    weight = me.make(me.weight(0, dims, param_attr), dims)
    across = _F.matmul(a.rows, _F.reshape(weight, [a.size, b.size * size]))
    out = _F.matmul(_F.reshape(b.rows, [-1, 1, b.size]),
                    _F.reshape(across, [-1, b.size, size]))
    return me.add_bias(_F.reshape(out, [-1, size]), bias_attr)


@layer("sum_to_one_norm_layer")
def sum_to_one_norm(me, input):
    """A row over its sum."""
    whole = _F.reduce_sum(input.rows, dim=1)
    return _F.elementwise_div(input.rows, whole, axis=0)


@layer("row_l2_norm_layer")
def row_l2_norm(me, input):
    """A row over its length."""
    return _F.l2_normalize(input.rows, axis=1)


@layer("multiplex_layer")
def multiplex(me, input):
    """Row i of the layer that input[0] names for it."""
    index, *rest = input
    ids = _F.cast(index.var, "int32")
    return _F.multiplex([x.rows for x in rest], ids)


@layer("repeat_layer", act=activation.Linear)
def repeat(me, input, num_repeats, as_row_vector=True):
    """A row num_repeats times; or else each of its elements."""
    if as_row_vector:
        return _F.expand(input.rows, [1, num_repeats])
    each = _F.expand(_F.reshape(input.rows, [-1, input.size, 1]),
                     [1, 1, num_repeats])
    return _F.reshape(each, [-1, input.size * num_repeats])


@layer("trans_layer")
def trans(me, input):
    """The whole batch as a matrix, transposed."""
    me.size = input.size
    return _F.transpose(input.rows, [1, 0])


@layer("resize")
def resize(me, input, size):
    """The whole batch in rows of `size`."""
    return _F.reshape(input.rows, [-1, size])


@layer("maxid_layer")
def max_id(me, input):
    """Where the largest element of a row stands."""
    me.size = input.size
    me.values = _F.reduce_max(input.rows, dim=1, keep_dim=True)
    return _F.reshape(_F.argmax(input.rows, axis=1), [-1, 1])


@layer("sampling_id_layer")
def sampling_id(me, input):
    """An id, as likely as its number in the row says."""
    me.size = input.size
    return _F.reshape(_F.sampling_id(input.rows), [-1, 1])


@layer("eos_layer")
def eos(me, input, eos_id):
    """1 where the id is eos_id."""
    same = _F.fill_constant_batch_size_like(input.var, [-1, 1], "int64",
                                            eos_id)
    return _F.cast(_F.equal(input.var, same), "int64")


@layer("gated_unit_layer")
def gated_unit(me, input, size, act=None, gate_attr=None,
               gate_param_attr=None, gate_bias_attr=None, inproj_attr=None,
               inproj_param_attr=None, inproj_bias_attr=None):
    """act(x W + b), let through by sigmoid(x V + c)."""
    half = fc(input=input, size=size, act=act or activation.Linear(),
              name=me.name + "_input_proj", layer_attr=inproj_attr,
              param_attr=inproj_param_attr, bias_attr=inproj_bias_attr)
    gate = fc(input=input, size=size, act=activation.Sigmoid(),
              name=me.name + "_gate", layer_attr=gate_attr,
              param_attr=gate_param_attr, bias_attr=gate_bias_attr)
    return _F.elementwise_mul(half.var, gate.var)


@layer("factorization_machine", act=activation.Linear)
def factorization_machine(me, input, factor_size, param_attr=None):
    """The sum over pairs of columns of <v_i, v_j> x_i x_j."""
    dims = [input.size, factor_size]
    v = me.make(me.weight(0, dims, param_attr), dims)
    both = _F.square(_F.mul(input.rows, v))
    own = _F.mul(_F.square(input.rows), _F.square(v))
    return _F.scale(row_sum(_F.elementwise_sub(both, own)), scale=0.5)


@layer("prelu_layer")
def prelu(me, input, partial_sum=1, channel_shared=None, num_channels=None,
          param_attr=None):
    """x where positive, else x times a slope that partial_sum neighbours
    share; channel_shared: True one for all, False one for each channel."""
    channels = num_channels or input.num_filters
    if channel_shared is not None:
        partial_sum = input.size if channel_shared \
            else input.size // (channels or 1)
    count = input.size // partial_sum
    attr = param_attr or Param(initial_mean=0.25, initial_std=0.0)
    slope = me.make(me.weight(0, [1, count], attr, [count]), [count])
    x = _F.reshape(input.rows, [-1, count, partial_sum])
    below = _F.elementwise_mul(_F.scale(_F.relu(_F.scale(x, scale=-1.0)),
                                        scale=-1.0), slope, axis=1)
    me.num_filters = input.num_filters
    out = _F.elementwise_add(_F.relu(x), below)
    return _F.reshape(out, [-1] + list(input.var.shape[1:]))


@layer("print")
def printer(me, input, format=None):
    """The input unchanged; its value goes to stderr whenever it runs."""
    first = as_list(input)[0]
    me.num_filters = first.num_filters
    return _F.Print(first.var, message=format or first.name)
