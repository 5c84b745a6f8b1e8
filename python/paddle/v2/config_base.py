# SPDX-License-Identifier: Apache-2.0
"""Layers as objects, and the one graph that they are built into.

A layer is built at once: its function composes `fluid.layers` in the graph's
Fluid program. Nothing is trained or run there; a Topology takes out of it
what some layers need.
"""
import contextlib
import inspect
import math
import zlib

import numpy as np

from .. import fluid
from ..fluid.layers import _table
from . import _flags, activation as activations
from ._param_config import ParameterConfig
from .attr import Extra, Param

__all__ = ["Layer"]


class Graph:
    """Every layer that was made, in order, and their Fluid program."""

    def __init__(self):
        self.main, self.startup = fluid.Program(), fluid.Program()
        self._names = fluid.unique_name.UniqueNameGenerator()
        self._counts = {}
        self.layers = {}  # name: Layer
        self.configs = {}  # name: ParameterConfig
        self.shapes = {}  # name: the parameter's shape in Fluid
        self.starts = {}  # name: function that gives a parameter its values
        self.evaluators = []

    @contextlib.contextmanager
    def building(self, main=None, startup=None):
        """Within `with`, Fluid's layers append to these programs, the graph's
        own by default."""
        with fluid.program_guard(main or self.main, startup or self.startup), \
                fluid.unique_name.guard(self._names):
            yield

    def default_name(self, prefix):
        """__prefix_0__, then __prefix_1__ and so on."""
        count = self._counts.get(prefix, 0)
        self._counts[prefix] = count + 1
        return "__%s_%d__" % (prefix, count)

    def add_layer(self, layer):
        if layer.name in self.layers:
            raise ValueError("layer %s: there is another one of this name"
                             % layer.name)
        self.layers[layer.name] = layer

    def add_parameter(self, layer, config, shape, start):
        """A parameter of a layer, which may be known already."""
        known = self.configs.setdefault(config.name, config)
        if known.shape != config.shape:
            raise ValueError(
                "layer %s: parameter %s has the shape %s, but another layer "
                "uses it with %s" % (layer, config.name, config.shape,
                                     known.shape))
        if config.sparse_update:
            known.sparse_update = known.sparse_remote_update = 1
        self.shapes.setdefault(config.name, tuple(shape))
        if start is not None:
            self.starts[config.name] = start


graph = Graph()


def reset():
    """Forget every layer; names are counted from 0 again."""
    global graph
    graph = Graph()


# --- layers ------------------------------------------------------------------

class Layer:
    """What a layer function returns."""
    outputs = ["default"]
    reverse = None
    coeff = 1.0  # a cost's: the share of its gradient
    depth = 0

    def __init__(self, name, layer_type, parents=(), act=None):
        self.name, self.layer_type = name, layer_type
        self.parents, self.activation = list(parents), act
        self.var = None  # Fluid's; ids, for an input of ids
        self.values = None  # Fluid's, beside the ids of (id, value) pairs
        self.type = None  # a data layer's InputType
        self.num_filters = None  # channels, of a picture
        self._size = None
        self._flat = None

    @property
    def full_name(self):
        return self.name

    @property
    def size(self):
        """Numbers in a row; of an input of ids, how many ids there are."""
        if self._size is None:
            self._size = int(np.prod(self.var.shape[1:]))
        return self._size

    @size.setter
    def size(self, size):
        self._size = size

    def _side(self, axis):
        return self.var.shape[axis] if len(self.var.shape) == 4 else 0

    @property
    def height(self):
        return self._side(2)

    @property
    def width(self):
        return self._side(3)

    def __repr__(self):
        return "<%s layer %s>" % (self.layer_type, self.name)

    # --- for those who build on it ---

    @property
    def rows(self):
        """The Fluid variable as a matrix: a row of `size` numbers each."""
        if self._flat is None:
            self._flat = self._make_rows()
        return self._flat

    @property
    def dense(self):
        """The Fluid variable as numbers: pictures as they are, else rows."""
        return self.var if len(self.var.shape) > 2 else self.rows

    def _make_rows(self):
        if self.type is not None and self.type.sparse:
            return self.sparse_sum(fluid.layers.one_hot(self.var, self.size))
        if len(self.var.shape) > 2:
            return fluid.layers.reshape(self.var, [-1, self.size])
        return self.var

    def sparse_sum(self, rows):
        """For each sparse row the sum of what `rows` has for its ids."""
        if self.values is not None:
            rows = fluid.layers.elementwise_mul(rows, self.values, axis=0)
        return fluid.layers.sequence_pool(rows, "sum")

    def picture(self, who, channels=None):
        """The Fluid variable as pictures [batch, channels, height, width]."""
        if len(self.var.shape) == 4:
            if channels not in (None, self.var.shape[1]):
                raise ValueError("%s: its input %s has %d channels, not %d" % (
                    who, self.name, self.var.shape[1], channels))
            return self.var
        channels = channels or self.num_filters
        if channels is None:
            raise ValueError("%s: num_channels is needed, since its input %s "
                             "is not a picture" % (who, self.name))
        side = math.isqrt(self.size // channels)
        if side * side * channels != self.size:
            raise ValueError(
                "%s: its input %s of %d numbers makes no square picture of "
                "%d channels; give height and width to layer.data" % (
                    who, self.name, self.size, channels))
        return fluid.layers.reshape(self.rows, [-1, channels, side, side])

    # --- for the function that makes it ---

    def weight(self, index, dims, attr=None, shape=None, std=None, mean=None,
               config_dims=True):
        """The Fluid attribute of a new weight. dims: as the original has
        them; shape: as Fluid does, where it differs; std, mean: how it starts
        unless `attr` says so; config_dims: whether a tar records the dims."""
        attr = Param() if attr is None else attr
        name = attr.name or "_%s.w%s" % (self.name, index)
        return self._attribute(name, dims, attr, shape, std, mean,
                               config_dims)

    def bias(self, dims, attr=None, shape=None, default=True):
        """The Fluid attribute of a bias, or False; with default=False it has
        to be asked for."""
        if attr is False or (attr is None and not default):
            return False
        if attr is None or attr is True:
            attr = Param(initial_mean=0.0, initial_std=0.0)
        name = attr.name or "_%s.wbias" % self.name
        return self._attribute(name, dims, attr, shape, None, None, True)

    def _attribute(self, name, dims, attr, shape, std, mean, config_dims):
        if not isinstance(attr, Param):
            raise TypeError("layer %s: the attribute of parameter %s is %r, "
                            "expected attr.Param" % (self.name, name, attr))
        size = int(np.prod(dims))
        smart = attr.smart and std is None and mean is None
        if attr.smart:
            mean = 0.0 if mean is None else mean
            if std is None:
                std = (dims[0] if config_dims else size) ** -0.5
        else:
            mean, std = attr.mean, attr.std
        config = ParameterConfig(
            name=name, size=size, learning_rate=attr.learning_rate,
            momentum=attr.momentum, initial_mean=mean, initial_std=std,
            decay_rate=attr.l2_rate, decay_rate_l1=attr.l1_rate,
            dims=dims if config_dims else (),
            initial_strategy=int(attr.uniform), initial_smart=int(smart),
            gradient_clipping_threshold=attr.gradient_clipping_threshold,
            is_static=1 if attr.is_static else None,
            sparse_update=1 if attr.sparse_update else None,
            sparse_remote_update=1 if attr.sparse_update else None)
        shape = tuple(dims if shape is None else shape)
        graph.add_parameter(self.name, config, shape, attr.initializer)
        return fluid.ParamAttr(
            name=name, initializer=_initializer(name, mean, std, attr.uniform),
            learning_rate=1.0 if attr.learning_rate is None
            else attr.learning_rate, trainable=not attr.is_static)

    def running(self, name, count):
        """A value that training keeps beside the parameters, zero at first:
        it is saved, and no gradient reaches it."""
        config = ParameterConfig(
            name=name, size=count, initial_mean=0.0, initial_std=0.0,
            dims=[1, count], initial_strategy=0, initial_smart=0,
            is_static=1, is_shared=1)
        graph.add_parameter(self.name, config, [count], lambda _:
                            np.zeros((1, count), "float32"))

    def make(self, attribute, shape):
        """The Fluid parameter of an attribute that weight or bias gave."""
        return fluid.layers.create_parameter(list(shape), "float32",
                                             attr=attribute)

    def add_bias(self, x, attr, default=True):
        """x plus a number for each column, if there is a bias."""
        size = int(np.prod(x.shape[1:]))
        attribute = self.bias([1, size], attr, [size], default)
        if attribute is False:
            return x
        return fluid.layers.elementwise_add(
            x, self.make(attribute, [size]), axis=1)


def _initializer(name, mean, std, uniform):
    """Parameters of one script start alike in every run: each draws from
    the setting `seed` and its name."""
    seed = _flags.get("seed")
    if seed:
        seed = (zlib.crc32(name.encode()) + seed) % ((1 << 31) - 1) + 1
    if uniform:
        return fluid.initializer.Uniform(mean - std, mean + std, seed)
    if std == 0:
        return fluid.initializer.Constant(mean)
    return fluid.initializer.Normal(mean, std, seed)


# --- functions that make them ------------------------------------------------

def inputs_of(value):
    """The layers in an argument: one, of a list, or of a projection."""
    if isinstance(value, Layer):
        return [value]
    if isinstance(value, (list, tuple)):
        return [layer for one in value for layer in inputs_of(one)]
    return list(getattr(value, "origins", ()))


def as_list(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def finish(layer, var, act=None, extra=None):
    """Activation, clipping and dropout at the end of a layer."""
    if act is not None:
        var = act.apply(var)
    if extra is not None and extra.error_clipping_threshold:
        var.error_clip = fluid.clip.ErrorClipByValue(
            float(extra.error_clipping_threshold))
    if extra is not None and extra.drop_rate:
        if isinstance(act, activations.Softmax):
            raise ValueError("layer %s: a layer with softmax activation "
                             "cannot have a drop_rate" % layer.name)
        var = fluid.layers.dropout(var, dropout_prob=extra.drop_rate)
    layer.var = var


def _check_common(layer, act, extra):
    if act is not None and not isinstance(act, activations.Base):
        raise TypeError("layer %s: act is %r, expected one of "
                        "paddle.v2.activation, as Relu()" % (layer, act))
    if extra is not None and not isinstance(extra, Extra):
        raise TypeError("layer %s: layer_attr is %r, expected attr.Extra"
                        % (layer, extra))


_COMMON = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=None)
           for n in ("name", "act", "layer_attr")]


def layer(prefix, act=None, layer_type=None):
    """Make a layer function of one that composes Fluid's layers: it is given
    the new Layer and the arguments, and returns a Fluid variable. act: the
    default activation; a layer that has none takes none."""
    def decorate(build):
        own = list(inspect.signature(build).parameters.values())[1:]
        common = [p for p in _COMMON if act is not None or p.name != "act"]
        signature = inspect.Signature(own + common)

        def function(*args, **kwargs):
            given = _table.bind(build.__name__, signature, args, kwargs)
            name = given.pop("name", None)
            used = given.pop("act", None) if act is not None else None
            extra = given.pop("layer_attr", None)
            name = name or graph.default_name(prefix)
            _check_common(name, used, extra)
            if used is None and act is not None:
                used = act()
            made = Layer(name, layer_type or build.__name__,
                         inputs_of(list(given.values())), used)
            with graph.building():
                finish(made, build(made, **given), used, extra)
            graph.add_layer(made)
            return made

        function.__name__ = function.__qualname__ = build.__name__
        function.__doc__, function.__signature__ = build.__doc__, signature
        function.__module__ = build.__module__
        return function
    return decorate
