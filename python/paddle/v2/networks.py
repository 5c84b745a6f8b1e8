# SPDX-License-Identifier: Apache-2.0
"""paddle.v2.networks: layers that are often used together."""
from .. import _absent, fluid
from . import activation, attr, config_base, layer, pooling
from .config_base import layer as _layer
from .layer._shared import as_lists

__all__ = ["simple_img_conv_pool", "img_conv_bn_pool", "img_conv_group",
           "small_vgg", "vgg_16_network", "sequence_conv_pool",
           "text_conv_pool", "dropout_layer", "simple_attention",
           "dot_product_attention"]


def _name(name, prefix):
    return name or config_base.graph.default_name(prefix)


def simple_img_conv_pool(input, filter_size, num_filters, pool_size,
                         name=None, pool_type=None, act=None, groups=1,
                         conv_stride=1, conv_padding=0, bias_attr=None,
                         num_channel=None, param_attr=None, shared_bias=True,
                         conv_layer_attr=None, pool_stride=1, pool_padding=0,
                         pool_layer_attr=None):
    """A convolution, NAME_conv, and a pool, NAME_pool."""
    name = _name(name, "conv_pool")
    conv = layer.img_conv(
        name=name + "_conv", input=input, filter_size=filter_size,
        num_filters=num_filters, num_channels=num_channel, act=act,
        groups=groups, stride=conv_stride, padding=conv_padding,
        bias_attr=bias_attr, param_attr=param_attr, shared_biases=shared_bias,
        layer_attr=conv_layer_attr)
    return layer.img_pool(
        name=name + "_pool", input=conv, pool_size=pool_size,
        pool_type=pool_type, stride=pool_stride, padding=pool_padding,
        layer_attr=pool_layer_attr)


def img_conv_bn_pool(input, filter_size, num_filters, pool_size, name=None,
                     pool_type=None, act=None, groups=1, conv_stride=1,
                     conv_padding=0, conv_bias_attr=None, num_channel=None,
                     conv_param_attr=None, shared_bias=True,
                     conv_layer_attr=None, bn_param_attr=None,
                     bn_bias_attr=None, bn_layer_attr=None, pool_stride=1,
                     pool_padding=0, pool_layer_attr=None):
    """A convolution, NAME_conv, batch_norm, NAME_bn, and a pool,
    NAME_pool."""
    name = _name(name, "conv_bn_pool")
    conv = layer.img_conv(
        name=name + "_conv", input=input, filter_size=filter_size,
        num_filters=num_filters, num_channels=num_channel,
        act=activation.Linear(), groups=groups, stride=conv_stride,
        padding=conv_padding, bias_attr=conv_bias_attr,
        param_attr=conv_param_attr, shared_biases=shared_bias,
        layer_attr=conv_layer_attr)
    norm = layer.batch_norm(
        name=name + "_bn", input=conv, act=act, bias_attr=bn_bias_attr,
        param_attr=bn_param_attr, layer_attr=bn_layer_attr)
    return layer.img_pool(
        name=name + "_pool", input=norm, pool_type=pool_type,
        pool_size=pool_size, stride=pool_stride, padding=pool_padding,
        layer_attr=pool_layer_attr)


def img_conv_group(input, conv_num_filter, pool_size, num_channels=None,
                   conv_padding=1, conv_filter_size=3, conv_act=None,
                   conv_with_batchnorm=False, conv_batchnorm_drop_rate=0,
                   pool_stride=1, pool_type=None, param_attr=None):
    """Convolutions in a row, each with batch_norm and dropout if asked for,
    then one pool. Settings may be lists, one for each convolution."""
    x, count = input, len(conv_num_filter)
    rows = zip(conv_num_filter, *(as_lists(v, count, n) for v, n in (
        (conv_padding, "conv_padding"), (conv_filter_size, "conv_filter_size"),
        (conv_act, "conv_act"), (conv_with_batchnorm, "conv_with_batchnorm"),
        (conv_batchnorm_drop_rate, "conv_batchnorm_drop_rate"))))
    for filters, padding, size, act, norm, drop in rows:
        act = act or activation.Relu()
        x = layer.img_conv(
            input=x, filter_size=size, num_filters=filters, padding=padding,
            num_channels=num_channels, param_attr=param_attr,
            act=activation.Linear() if norm else act)
        num_channels = None
        if norm:
            x = layer.batch_norm(input=x, act=act, layer_attr=attr.Extra(
                drop_rate=drop) if drop else None)
    return layer.img_pool(input=x, pool_size=pool_size, stride=pool_stride,
                          pool_type=pool_type or pooling.Max())


def small_vgg(input_image, num_channels, num_classes):
    """A VGG for small pictures."""
    x = input_image
    for filters, drops in ((64, [0.3, 0]), (128, [0.4, 0]),
                           (256, [0.4, 0.4, 0]), (512, [0.4, 0.4, 0])):
        x = img_conv_group(
            input=x, num_channels=num_channels, pool_size=2, pool_stride=2,
            conv_num_filter=[filters] * len(drops), conv_with_batchnorm=True,
            conv_batchnorm_drop_rate=drops)
        num_channels = None
    x = layer.img_pool(input=x, stride=2, pool_size=2,
                       pool_type=pooling.Max())
    x = layer.dropout(input=x, dropout_rate=0.5)
    x = layer.fc(input=x, size=512, act=activation.Linear(),
                 layer_attr=attr.Extra(drop_rate=0.5))
    x = layer.batch_norm(input=x, act=activation.Relu())
    return layer.fc(input=x, size=num_classes, act=activation.Softmax())


def vgg_16_network(input_image, num_channels, num_classes=1000):
    """The VGG of 16 layers."""
    x = input_image
    for filters, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        x = img_conv_group(input=x, num_channels=num_channels, pool_size=2,
                           pool_stride=2, conv_num_filter=[filters] * count)
        num_channels = None
    for _ in range(2):
        x = layer.fc(input=x, size=4096, act=activation.Relu(),
                     layer_attr=attr.Extra(drop_rate=0.5))
    return layer.fc(input=x, size=num_classes, act=activation.Softmax())


@_layer("fc_layer", act=activation.Tanh, layer_type="fc")
def _sequence_conv(me, input, context_len, size, param_attr=None,
                   bias_attr=None):
    """A context projection of the default start and an fc, as one."""
    dims = [input.size * context_len, size]
    out = fluid.layers.sequence_conv(
        input.rows, num_filters=size, filter_size=context_len,
        param_attr=me.weight(0, dims, param_attr), bias_attr=False)
    return me.add_bias(out, bias_attr)


def sequence_conv_pool(input, context_len, hidden_size, name=None,
                       context_start=None, pool_type=None,
                       context_proj_layer_name=None,
                       context_proj_param_attr=False, fc_layer_name=None,
                       fc_param_attr=None, fc_bias_attr=None, fc_act=None,
                       pool_bias_attr=None, fc_attr=None, context_attr=None,
                       pool_attr=None):
    """Each row of a sequence with its neighbours through an fc, NAME_conv_fc,
    then one row for each sequence, NAME."""
    name = _name(name, "sequence_conv_pooling")
    fc_name = fc_layer_name or name + "_conv_fc"
    if context_start is None and context_proj_param_attr is False:
        fc = _sequence_conv(
            name=fc_name, input=input, context_len=context_len,
            size=hidden_size, act=fc_act, layer_attr=fc_attr,
            param_attr=fc_param_attr, bias_attr=fc_bias_attr)
    else:
        context = layer.mixed(
            name=context_proj_layer_name or name + "_conv_proj",
            input=layer.context_projection(
                input, context_len=context_len, context_start=context_start,
                padding_attr=context_proj_param_attr),
            layer_attr=context_attr)
        fc = layer.fc(name=fc_name, input=context, size=hidden_size,
                      act=fc_act, layer_attr=fc_attr,
                      param_attr=fc_param_attr, bias_attr=fc_bias_attr)
    return layer.pooling(name=name, input=fc, pooling_type=pool_type,
                         bias_attr=pool_bias_attr, layer_attr=pool_attr)


text_conv_pool = sequence_conv_pool
dropout_layer = layer.dropout


def simple_attention(encoded_sequence, encoded_proj, decoder_state,
                     transform_param_attr=None, softmax_param_attr=None,
                     weight_act=None, name=None):
    """The rows of encoded_sequence, weighed by how encoded_proj and the
    decoder's state match, added up."""
    name = _name(name, "simple_attention")
    state = layer.mixed(
        size=encoded_proj.size, name=name + "_transform",
        input=layer.full_matrix_projection(decoder_state,
                                           param_attr=transform_param_attr))
    expanded = layer.expand(input=state, expand_as=encoded_sequence,
                            name=name + "_expand")
    combined = layer.mixed(
        size=encoded_proj.size, act=weight_act or activation.Tanh(),
        name=name + "_combine",
        input=[layer.identity_projection(expanded),
               layer.identity_projection(encoded_proj)])
    weight = layer.fc(input=combined, size=1, bias_attr=False,
                      act=activation.SequenceSoftmax(),
                      param_attr=softmax_param_attr, name=name + "_softmax")
    scaled = layer.scaling(weight=weight, input=encoded_sequence,
                           name=name + "_scaling")
    return layer.pooling(input=scaled, pooling_type=pooling.Sum(),
                         name=name + "_pooling")


def dot_product_attention(encoded_sequence, attended_sequence,
                          transformed_state, softmax_param_attr=None,
                          name=None):
    """The rows of attended_sequence, weighed by the products of
    encoded_sequence and transformed_state, added up."""
    name = _name(name, "dot_product_attention")
    expanded = layer.expand(input=transformed_state,
                            expand_as=encoded_sequence,
                            name=name + "_expand")
    product = layer.dot_prod(input1=expanded, input2=encoded_sequence,
                             name=name + "_dot-product")
    weight = layer.fc(input=product, size=1, bias_attr=False,
                      act=activation.SequenceSoftmax(),
                      param_attr=softmax_param_attr, name=name + "_softmax")
    scaled = layer.scaling(weight=weight, input=attended_sequence,
                           name=name + "_scaling")
    return layer.pooling(input=scaled, pooling_type=pooling.Sum(),
                         name=name + "_pooling")


_absent.answer_for(globals())
