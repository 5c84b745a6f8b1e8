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
    """A convolution and a pool. pool_padding is taken and, as in Fluid, not
    used."""
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
    """Convolutions in a row, each with batch_norm and dropout if asked for,
    then one pool."""
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
    """A convolution along sequences, then one row for each of them."""
    conv = layers.sequence_conv(
        input=input, num_filters=num_filters, filter_size=filter_size,
        param_attr=param_attr, bias_attr=bias_attr, act=act)
    return layers.sequence_pool(input=conv, pool_type=pool_type)


def glu(input, dim=-1):
    """One half of the input, let through by the sigmoid of the other."""
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
    """Values averaged for each query, by how well their keys match it."""
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
