# SPDX-License-Identifier: Apache-2.0
"""fluid.nets: small networks made of layers."""
from .. import _absent
from . import layers

__all__ = ["simple_img_conv_pool", "sequence_conv_pool", "glu",
           "scaled_dot_product_attention", "img_conv_group"]


def simple_img_conv_pool(input, num_filters, filter_size, pool_size,
                         pool_stride, pool_padding=0, pool_type="max",
                         global_pooling=False, conv_stride=1, conv_padding=0,
                         conv_dilation=1, conv_groups=1, param_attr=None,
                         bias_attr=None, act=None, use_cudnn=True):
    """A convolution, then a pool.

    Args:
        input (Variable): pictures, [batch, channels, height, width].
        num_filters (int): the number of filters.
        filter_size (int or list): height and width of a filter.
        pool_size (int or list): height and width of the pool's window.
        pool_stride (int or list): the distance between two windows of the
            pool.
        pool_padding (int): accepted and, as in Fluid, not used.
        pool_type (str): 'max' or 'avg'.
        global_pooling (bool): the pool's window is the whole picture.
        conv_stride (int or list): the distance between two windows of the
            convolution.
        conv_padding (int or list): zeros on each side of the picture.
        conv_dilation (int or list): the distance between elements of a filter.
        conv_groups (int): groups that the channels are divided into.
        param_attr (ParamAttr): how the weights are named, initialised and
            trained.
        bias_attr (ParamAttr): how the bias is named, initialised and trained;
            False: none.
        act (str): the activation, as 'relu'; None: none.
        use_cudnn (bool): accepted and ignored.

    Returns:
        A Variable.
    """
    conv = layers.conv2d(
        input=input, num_filters=num_filters, filter_size=filter_size,
        stride=conv_stride, padding=conv_padding, dilation=conv_dilation,
        groups=conv_groups, param_attr=param_attr, bias_attr=bias_attr,
        act=act, use_cudnn=use_cudnn)
    return layers.pool2d(
        input=conv, pool_size=pool_size, pool_type=pool_type,
        pool_stride=pool_stride, global_pooling=global_pooling,
        use_cudnn=use_cudnn)


def _each(value, count, what):
    """One value for every convolution: as given, or repeated."""
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise ValueError("img_conv_group: %d values of %s for %d convolutions"
                         % (len(value), what, count))
    return value


def img_conv_group(input, conv_num_filter, pool_size, conv_padding=1,
                   conv_filter_size=3, conv_act=None, param_attr=None,
                   conv_with_batchnorm=False, conv_batchnorm_drop_rate=0.0,
                   pool_stride=1, pool_type="max", use_cudnn=True):
    """Several convolutions, each with batch_norm and dropout if asked for,
    then one pool.

    Args:
        input (Variable): pictures, [batch, channels, height, width].
        conv_num_filter (list of int): the number of filters of each
            convolution.
        pool_size (int): height and width of the pool's window.
        conv_padding (int or list): zeros on each side of the picture.
        conv_filter_size (int or list): height and width of a filter.
        conv_act (str): the activation of the convolutions.
        param_attr (ParamAttr): how the weights are named, initialised and
            trained.
        conv_with_batchnorm (bool or list): whether batch_norm follows.
        conv_batchnorm_drop_rate (float or list): the probability of dropout
            after batch_norm.
        pool_stride (int): the distance between two windows of the pool.
        pool_type (str): 'max' or 'avg'.
        use_cudnn (bool): accepted and ignored.

    Returns:
        A Variable.
    """
    count = len(conv_num_filter)
    norms = _each(conv_with_batchnorm, count, "conv_with_batchnorm")
    drops = _each(conv_batchnorm_drop_rate, count, "conv_batchnorm_drop_rate")
    columns = zip(conv_num_filter, norms, drops,
                  _each(conv_filter_size, count, "conv_filter_size"),
                  _each(conv_padding, count, "conv_padding"),
                  _each(param_attr, count, "param_attr"))
    x = input
    for filters, norm, drop, size, padding, attr in columns:
        x = layers.conv2d(input=x, num_filters=filters, filter_size=size,
                          padding=padding, param_attr=attr,
                          act=None if norm else conv_act, use_cudnn=use_cudnn)
        if norm:
            x = layers.batch_norm(input=x, act=conv_act, in_place=True)
            if abs(drop) > 1e-5:
                x = layers.dropout(x=x, dropout_prob=drop)
    return layers.pool2d(input=x, pool_size=pool_size, pool_type=pool_type,
                         pool_stride=pool_stride, use_cudnn=use_cudnn)


def sequence_conv_pool(input, num_filters, filter_size, param_attr=None,
                       act="sigmoid", pool_type="max", bias_attr=None):
    """A convolution along sequences, then one row for each of them.

    Args:
        input (Variable): sequences of rows.
        num_filters (int): the number of filters.
        filter_size (int): the number of rows of a filter.
        param_attr (ParamAttr): how the weights are named, initialised and
            trained.
        act (str): the activation, as 'relu'; None: none.
        pool_type (str): 'max', 'average', 'sum', 'sqrt', 'last' or 'first'.
        bias_attr (ParamAttr): how the bias is named, initialised and trained;
            False: none.

    Returns:
        A Variable.
    """
    conv = layers.sequence_conv(
        input=input, num_filters=num_filters, filter_size=filter_size,
        param_attr=param_attr, bias_attr=bias_attr, act=act)
    return layers.sequence_pool(input=conv, pool_type=pool_type)


def glu(input, dim=-1):
    """A gated linear unit: one half of the input times the sigmoid of the
    other half.

    Args:
        input (Variable): what is cut into two halves.
        dim (int): the dimension that is cut.

    Returns:
        A Variable.
    """
    a, gate = layers.split(input, num_or_sections=2, dim=dim)
    return layers.elementwise_mul(x=a, y=layers.sigmoid(x=gate))


def _split_heads(x, heads):
    """[batch, length, width] to [batch, heads, length, width / heads]."""
    if heads == 1:
        return x
    x = layers.reshape(x=x, shape=list(x.shape[:-1])
                       + [heads, x.shape[-1] // heads])
    return layers.transpose(x=x, perm=[0, 2, 1, 3])


def _join_heads(x):
    """The reverse."""
    if len(x.shape) == 3:
        return x
    x = layers.transpose(x, perm=[0, 2, 1, 3])
    return layers.reshape(x=x, shape=[0, 0, x.shape[2] * x.shape[3]])


def _check_attention(queries, keys, values, heads):
    if not len(queries.shape) == len(keys.shape) == len(values.shape) == 3:
        raise ValueError("scaled_dot_product_attention: queries, keys and "
                         "values must have three dimensions")
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError("scaled_dot_product_attention: queries are %d wide, "
                         "keys %d" % (queries.shape[-1], keys.shape[-1]))
    if keys.shape[-2] != values.shape[-2]:
        raise ValueError("scaled_dot_product_attention: %d keys, %d values"
                         % (keys.shape[-2], values.shape[-2]))
    for name, x in (("keys", keys), ("values", values)):
        if x.shape[-1] % heads:
            raise ValueError("scaled_dot_product_attention: %s are %d wide, "
                             "which is not a multiple of num_heads %d"
                             % (name, x.shape[-1], heads))


def scaled_dot_product_attention(queries, keys, values, num_heads=1,
                                 dropout_rate=0.0):
    """Attention: the mean of the values, weighted for each query by how well
    their keys match it.

    Args:
        queries (Variable): [batch, length, width].
        keys (Variable): [batch, length of values, width].
        values (Variable): [batch, length of values, width of values].
        num_heads (int): the number of heads.
        dropout_rate (float): the probability of dropout of a weight.

    Returns:
        A Variable.
    """
    _check_attention(queries, keys, values, num_heads)
    if num_heads > 1:
        queries, keys, values = (
            layers.fc(input=x, size=x.shape[-1], num_flatten_dims=2)
            for x in (queries, keys, values))
    q, k, v = (_split_heads(x, num_heads) for x in (queries, keys, values))
    q = layers.scale(x=q, scale=(keys.shape[-1] // num_heads) ** -0.5)
    product = layers.matmul(x=q, y=k, transpose_y=True)
    weights = layers.reshape(
        x=layers.reshape(x=product, shape=[-1, product.shape[-1]],
                         act="softmax"), shape=product.shape)
    if dropout_rate:
        weights = layers.dropout(weights, dropout_prob=dropout_rate,
                                 is_test=False)
    return _join_heads(layers.matmul(weights, v))


_absent.answer_for(globals())
