# SPDX-License-Identifier: Apache-2.0
"""layer.mixed: a sum of projections, each made for the sum it is part of."""
import numpy as np

from ... import fluid
from .. import activation, config_base
from ..config_base import Layer
from ._shared import convolve, look_up, product, total

_F = fluid.layers


class _Projection:
    """What mixed and concat add up: build(layer, index, size) gives the
    Fluid variable; size is None if the sum decides it."""

    def __init__(self, origins, build, size=None):
        self.origins = [origins] if isinstance(origins, Layer) \
            else list(origins)
        self.build, self.size = build, size or None


def full_matrix_projection(input, size=0, param_attr=None):
    """x W."""
    return _Projection(input, lambda me, i, n: product(me, i, input, n,
                                                      param_attr), size)


def trans_full_matrix_projection(input, size=0, param_attr=None):
    """x times the transpose of W, which is [size, in]."""
    def build(me, i, n):
        w = me.make(me.weight(i, [n, input.size], param_attr),
                    [n, input.size])
        return _F.matmul(input.rows, w, transpose_y=True)
    return _Projection(input, build, size)


def table_projection(input, size=0, param_attr=None):
    """The rows of a table that ids name."""
    return _Projection(input, lambda me, i, n: look_up(me, i, input, n,
                                                      param_attr), size)


def identity_projection(input, offset=None, size=None):
    """x, or `size` columns of it from offset on."""
    if offset is None:
        return _Projection(input, lambda me, i, n: input.rows, input.size)
    end = input.size if size is None else offset + size
    return slice_projection(input, [(offset, end)])


def slice_projection(input, slices):
    """Columns from a to b of x for each (a, b) of slices; of a picture,
    channels."""
    unit = input.size // input.num_filters if input.num_filters else 1
    cuts = [(a * unit, b * unit) for a, b in slices]
    for a, b in cuts:
        if not 0 <= a < b <= input.size:
            raise ValueError("slice_projection: (%d, %d) is not a slice of the "
                             "%d columns of %s" % (a, b, input.size,
                                                   input.name))

    def build(me, i, n):
        parts = [_F.slice(input.rows, [1], [a], [b]) for a, b in cuts]
        return parts[0] if len(parts) == 1 else _F.concat(parts, axis=1)
    return _Projection(input, build, sum(b - a for a, b in cuts))


def scaling_projection(input, param_attr=None):
    """w x with one number w."""
    def build(me, i, n):
        w = me.make(me.weight(i, [1, 1], param_attr), [1, 1])
        x = _F.matmul(_F.reshape(input.rows, [-1, 1]), w)
        return _F.reshape(x, [-1, input.size])
    return _Projection(input, build, input.size)


def dotmul_projection(input, param_attr=None):
    """w x, element by element."""
    def build(me, i, n):
        w = me.weight(i, [1, input.size], param_attr, [input.size])
        return _F.elementwise_mul(input.rows, me.make(w, [input.size]),
                                  axis=1)
    return _Projection(input, build, input.size)


def context_projection(input, context_len, context_start=None,
                       padding_attr=False):
    """Each row of a sequence with its neighbours side by side: rows
    context_start .. context_start + context_len - 1 away; zeros beyond the
    ends."""
    start = -((context_len - 1) // 2 + (context_len - 1) % 2) \
        if context_start is None else context_start
    if padding_attr is not False:
        raise NotImplementedError("context_projection: rows beyond the ends "
                                  "are zeros; learned ones (padding_attr) "
                                  "are not in this version")
    if input.var.lod_level == 0:
        raise ValueError("context_projection: its input %s is not a sequence"
                         % input.name)
    size = input.size * context_len

    def build(me, i, n):
        return _shift_rows(input.rows, start, context_len)
    return _Projection(input, build, size)


def _shift_rows(x, start, count):
    """Rows start .. start + count - 1 away from each row, side by side."""
    parts = [_shifted(x, start + k) for k in range(count)]
    return parts[0] if count == 1 else _F.concat(parts, axis=1)


def _shifted(x, offset):
    """The row `offset` further on in the sequence, or zeros: a look-ahead
    convolution whose weights are 0 but for one, forwards or on the reversed
    sequence."""
    if offset == 0:
        return x
    width, away = x.shape[1], abs(offset)
    backwards = offset < 0
    x = _F.sequence_reverse(x) if backwards else x
    fixed = fluid.ParamAttr(
        trainable=False, initializer=fluid.initializer.NumpyArrayInitializer(
            _one_row(away, width)))
    x = _F.row_conv(x, future_context_size=away, param_attr=fixed)
    return _F.sequence_reverse(x) if backwards else x


def _one_row(away, width):
    weights = np.zeros((away + 1, width), "float32")
    weights[away] = 1
    return weights


def conv_projection(input, filter_size, num_filters, num_channels=None,
                    stride=1, padding=0, filter_size_y=None, stride_y=None,
                    padding_y=None, groups=1, param_attr=None, trans=False):
    """A convolution without bias."""
    def build(me, i, n):
        out = convolve(me, i, input, (filter_size, filter_size_y),
                       num_filters, num_channels, (stride, stride_y),
                       (padding, padding_y), (1, None), groups, trans,
                       param_attr)
        return _F.reshape(out, [-1, out.shape[1] * out.shape[2]
                                * out.shape[3]])
    return _Projection(input, build)


def dotmul_operator(a=None, b=None, scale=1, **kwargs):
    """scale a b, element by element."""
    a, b = kwargs.get("x", a), kwargs.get("y", b)
    return _Projection([a, b], lambda me, i, n: _F.scale(
        _F.elementwise_mul(a.rows, b.rows), scale=float(scale)), a.size)


class _MixedLayer(Layer):
    """A mixed layer; within `with` projections are added to it."""

    def __init__(self, name, size, act, bias_attr, extra):
        super().__init__(name, "mixed", (), act)
        self._parts, self._bias, self._extra = [], bias_attr, extra
        self._asked = size

    def __iadd__(self, projection):
        if self.var is not None:
            raise ValueError("mixed %s: it is complete, nothing can be added"
                             % self.name)
        if not isinstance(projection, _Projection):
            raise TypeError("mixed %s: %r is not a projection"
                            % (self.name, projection))
        self._parts.append(projection)
        return self

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.complete()

    def complete(self):
        """Build the sum."""
        if not self._parts:
            raise ValueError("mixed %s: it has no input" % self.name)
        self.parents = [x for p in self._parts for x in p.origins]
        size = self._asked or next(
            (p.size for p in self._parts if p.size), None)
        with config_base.graph.building():
            parts = [p.build(self, i, size)
                     for i, p in enumerate(self._parts)]
            for p, part in zip(self._parts, parts):
                if part.shape[1] != parts[0].shape[1] or \
                        size not in (None, part.shape[1]):
                    raise ValueError(
                        "mixed %s: the projection of %s is %d wide, expected "
                        "%d" % (self.name, p.origins[0].name, part.shape[1],
                                size or parts[0].shape[1]))
            out = self.add_bias(total(parts), self._bias, default=False)
            config_base.finish(self, out, self.activation, self._extra)
        config_base.graph.add_layer(self)


def mixed(size=0, input=None, name=None, act=None, bias_attr=False,
          layer_attr=None):
    """act(sum of projections + bias): of `input`, or of what is added within
    `with mixed(size=n) as m: m += ...`."""
    made = _MixedLayer(name or config_base.graph.default_name("mixed"), size,
                      act or activation.Linear(), bias_attr, layer_attr)
    if input is None:
        return made
    for one in config_base.as_list(input):
        made += one
    made.complete()
    return made
