# SPDX-License-Identifier: Apache-2.0
"""What several kinds of layers are made of."""
from ... import fluid
from ..data_type import DataType

_F = fluid.layers


def as_lists(value, count, what):
    """One value for each of `count`: as given, or repeated."""
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise ValueError("%d values of %s for %d layers or inputs"
                         % (len(value), what, count))
    return list(value)


def product(me, index, x, size, attr):
    """x times a weight [x.size, size]. Of a sparse x only rows of the weight
    that its ids name are read."""
    dims = [x.size, size]
    weight = me.weight(index, dims, attr)
    if x.type is not None and x.type.sparse:
        sparse = bool(attr is not None and attr.sparse_update)
        return x.sparse_sum(_F.embedding(x.var, dims, is_sparse=sparse,
                                         param_attr=weight))
    if x.type is not None and x.type.type == DataType.Index:
        raise ValueError("layer %s: its input %s holds ids; use "
                         "layer.embedding first" % (me.name, x.name))
    return _F.mul(x.rows, me.make(weight, dims))


def total(parts):
    return parts[0] if len(parts) == 1 else _F.sums(parts)


def row_sum(x):
    return _F.reduce_sum(x, dim=1, keep_dim=True)


def look_up(me, index, input, size, attr):
    """The rows of a table that ids name."""
    sparse = input.type is not None and input.type.sparse
    if sparse or input.var.dtype != fluid.core.VarType.INT64:
        raise ValueError("layer %s: its input %s holds no ids; use "
                         "data_type.integer_value" % (me.name, input.name))
    dims = [input.size, size]
    return _F.embedding(
        input.var, dims, param_attr=me.weight(index, dims, attr),
        is_sparse=bool(attr is not None and attr.sparse_update))


def pair(x, y=None):
    """Sizes down and across, from (across, down) or one and maybe a second;
    Fluid has them the other way round."""
    if isinstance(x, (list, tuple)):
        x, y = x
    return [int(x if y is None else y), int(x)]


def convolve(me, index, input, filter_size, num_filters, num_channels, stride,
             padding, dilation, groups, trans, attr, bias=False):
    """A convolution or its reverse; its weight is `.w<index>`."""
    x = input.picture(me.name, num_channels)
    channels, kernel = x.shape[1], pair(*filter_size)
    shape = [channels, num_filters // groups] if trans \
        else [num_filters, channels // groups]
    weight = me.weight(
        index, shape + kernel, attr, config_dims=False,
        std=(2.0 / (kernel[1] ** 2 * channels)) ** 0.5)
    more = dict(num_filters=num_filters, filter_size=kernel,
                stride=pair(*stride), padding=pair(*padding),
                dilation=pair(*dilation), groups=groups, param_attr=weight,
                bias_attr=bias)
    me.num_filters = num_filters
    return _F.conv2d_transpose(x, **more) if trans else _F.conv2d(x, **more)
