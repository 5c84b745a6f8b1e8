# SPDX-License-Identifier: Apache-2.0
"""Layers over pictures: [batch, channels, height, width] in memory."""
from ... import fluid
from .. import activation, pooling
from ..config_base import layer
from ._shared import convolve, pair

_F = fluid.layers


@layer("conv", act=activation.Relu)
def img_conv(me, input, filter_size, num_filters, num_channels=None, groups=1,
             stride=1, padding=0, dilation=1, bias_attr=None, param_attr=None,
             shared_biases=True, filter_size_y=None, stride_y=None,
             padding_y=None, dilation_y=None, trans=False, layer_type=None):
    """act(input correlated with num_filters filters + bias). A pair as size
    is (across, down)."""
    bias = me.bias([num_filters, 1], bias_attr, [num_filters]) \
        if shared_biases else False
    out = convolve(me, 0, input, (filter_size, filter_size_y), num_filters,
                   num_channels, (stride, stride_y), (padding, padding_y),
                   (dilation, dilation_y), groups, trans, param_attr, bias)
    if shared_biases:
        return out
    size = out.shape[1] * out.shape[2] * out.shape[3]
    bias = me.bias([size, 1], bias_attr, [size])
    if bias is False:
        return out
    flat = _F.elementwise_add(_F.reshape(out, [-1, size]),
                              me.make(bias, [size]), axis=1)
    return _F.reshape(flat, [-1] + list(out.shape[1:]))


@layer("pool")
def img_pool(me, input, pool_size, num_channels=None, pool_type=None,
             stride=1, padding=0, pool_size_y=None, stride_y=None,
             padding_y=None, ceil_mode=True, exclude_mode=None):
    """The largest or the mean of each window. Sizes are rounded up unless
    ceil_mode is False."""
    kind = pooling.Max() if pool_type is None else pool_type
    if kind.window is None:
        raise NotImplementedError("layer.img_pool: pooling.%s is not in this "
                                  "version" % type(kind).__name__)
    x = input.picture(me.name, num_channels)
    me.num_filters = x.shape[1]
    return _F.pool2d(
        x, pool_size=pair(pool_size, pool_size_y), pool_type=kind.window,
        pool_stride=pair(stride, stride_y),
        pool_padding=pair(padding, padding_y), ceil_mode=ceil_mode,
        exclusive=kind.exclusive if exclude_mode is None else exclude_mode)


@layer("spp")
def spp(me, input, num_channels=None, pool_type=None, pyramid_height=None):
    """Pools to 1 x 1, 2 x 2, 4 x 4 and so on, side by side."""
    kind = pooling.Max() if pool_type is None else pool_type
    x, parts = input.picture(me.name, num_channels), []
    for level in range(pyramid_height):
        bins = 2 ** level
        window = [-(-side // bins) for side in x.shape[2:]]
        padding = [(w * bins - side + 1) // 2
                   for w, side in zip(window, x.shape[2:])]
        pooled = _F.pool2d(x, pool_size=window, pool_type=kind.window,
                           pool_stride=window, pool_padding=padding)
        parts.append(_F.reshape(pooled, [-1, x.shape[1] * bins * bins]))
    return _F.concat(parts, axis=1)


@layer("batch_norm", act=activation.Relu)
def batch_norm(me, input, img3D=False, num_channels=None, bias_attr=None,
               param_attr=None, batch_norm_type=None, epsilon=1e-5,
               moving_average_fraction=0.9, use_global_stats=None,
               mean_var_names=None):
    """Each channel (of no picture each column) moved and scaled to mean 0 and
    variance 1 over the batch, times w0, plus a bias."""
    channels = num_channels or input.num_filters
    x = input.rows if channels is None else input.picture(me.name, channels)
    count, me.num_filters = x.shape[1], channels
    scale = me.weight(0, [1, count], param_attr, [count], config_dims=False,
                      mean=1.0, std=0.0)
    moving = mean_var_names or ["_%s.w%d" % (me.name, i) for i in (1, 2)]
    for name in moving:
        me.running(name, count)
    bias = me.bias([1, count], bias_attr, [count])
    return _F.batch_norm(
        x, param_attr=scale, bias_attr=bias, epsilon=epsilon,
        momentum=moving_average_fraction, moving_mean_name=moving[0],
        moving_variance_name=moving[1],
        use_global_stats=bool(use_global_stats))


@layer("crmnorm")
def img_cmrnorm(me, input, size, scale=0.0128, power=0.75,
                num_channels=None):
    """x (1 + scale / size * squares of the `size` channels around)^-power."""
    x = input.picture(me.name, num_channels)
    me.num_filters = x.shape[1]
    return _F.lrn(x, n=size, k=1.0, alpha=scale / size, beta=power)


@layer("cross_channel_norm")
def cross_channel_norm(me, input, param_attr=None):
    """The channels of each pixel over their length, times a factor each."""
    x = input.picture(me.name)
    channels = me.num_filters = x.shape[1]
    scale = me.make(me.weight(0, [channels, 1], param_attr, [channels]),
                    [channels])
    return _F.elementwise_mul(_F.l2_normalize(x, axis=1), scale, axis=1)


@layer("maxout_layer")
def maxout(me, input, groups, num_channels=None):
    """The largest of each `groups` channels next to each other."""
    x = input.picture(me.name, num_channels)
    me.num_filters = x.shape[1] // groups
    return _F.maxout(x, groups=groups)


@layer("bilinear_interp_layer")
def bilinear_interp(me, input, out_size_x=None, out_size_y=None):
    """Pictures of another size."""
    x = input.picture(me.name)
    me.num_filters = x.shape[1]
    return _F.resize_bilinear(x, out_shape=[out_size_y, out_size_x],
                              align_corners=True)


@layer("block_expand_layer")
def block_expand(me, input, block_x=0, block_y=0, stride_x=0, stride_y=0,
                 padding_x=0, padding_y=0, num_channels=None):
    """The windows of each picture as a sequence. The number of steps is
    rounded up: what lacks is padding below and to the right."""
    x = input.picture(me.name, num_channels)
    sizes = zip(x.shape[2:], (block_y, block_x), (stride_y or 1, stride_x or
                1), (padding_y, padding_x))
    more = [-(n + 2 * p - b) % s for n, b, s, p in sizes]
    return _F.im2sequence(
        x, filter_size=[block_y, block_x], stride=[stride_y or 1, stride_x
                                                   or 1],
        padding=[padding_y, padding_x, padding_y + more[0],
                 padding_x + more[1]])


@layer("pad")
def pad(me, input, pad_c=None, pad_h=None, pad_w=None):
    """Zeros around channels, rows and columns, each [before, after]."""
    x = input.picture(me.name)
    around = [0, 0]
    for each in (pad_c, pad_h, pad_w):
        around += list(each or [0, 0])
    me.num_filters = x.shape[1] + around[2] + around[3]
    return _F.pad(x, around)


@layer("crop_layer")
def crop(me, input, offset, axis=2, shape=None):
    """From offset on, in the dimensions from `axis`: as large as `shape`, or
    as a second input."""
    layers = input if isinstance(input, (list, tuple)) else [input]
    x = layers[0].picture(me.name)
    like = shape or list(layers[1].picture(me.name).shape)
    ends = [o + like[axis + i] for i, o in enumerate(offset)]
    out = _F.slice(x, list(range(axis, axis + len(offset))), list(offset),
                   ends)
    me.num_filters = out.shape[1]
    return out


@layer("rotate_layer")
def rotate(me, input, height, width):
    """Pictures turned by 90 degrees, clockwise."""
    channels = input.size // (height * width)
    x = _F.reshape(input.rows, [-1, channels, height, width])
    me.num_filters = channels
    return _F.reverse(_F.transpose(x, [0, 1, 3, 2]), [3])


@layer("switch_order_layer", act=activation.Linear)
def switch_order(me, input, reshape_axis=None):
    """Channels last."""
    return _F.transpose(input.picture(me.name), [0, 2, 3, 1])
