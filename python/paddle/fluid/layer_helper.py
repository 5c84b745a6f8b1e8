# SPDX-License-Identifier: Apache-2.0
"""fluid.layer_helper: what a function needs to be a layer of its own.

    def scaled(input, param_attr=None, bias_attr=None, act=None, name=None):
        helper = LayerHelper("scaled", **locals())
        dtype = helper.input_dtype()
        w = helper.create_parameter(helper.param_attr, [1], dtype)
        out = helper.create_variable_for_type_inference(dtype)
        helper.append_op(type="elementwise_mul", inputs={"X": input, "Y": w},
                         outputs={"Out": out})
        return helper.append_activation(helper.append_bias_op(out))
"""
import copy

from . import layers, unique_name
from .framework import (Parameter, Variable, default_main_program,
                        default_startup_program)
from .initializer import Initializer
from .param_attr import ParamAttr
from .regularizer import WeightDecayRegularizer

__all__ = ["LayerHelper"]


def _to_attr(attr):
    """What a user may give for a ParamAttr, as one; False stays False."""
    if attr is None or attr is True:
        return ParamAttr()
    if attr is False or isinstance(attr, ParamAttr):
        return attr
    if isinstance(attr, str):
        return ParamAttr(name=attr)
    if isinstance(attr, Initializer):
        return ParamAttr(initializer=attr)
    if isinstance(attr, WeightDecayRegularizer):
        return ParamAttr(regularizer=attr)
    if isinstance(attr, (list, tuple)):
        return [_to_attr(a) for a in attr]
    raise TypeError("a parameter attribute is %r, expected a ParamAttr, a "
                    "name, an initializer, a regularizer or False" % (attr,))


class LayerHelper:
    """Makes the parameters, variables and operators of one layer.

    Args:
        layer_type (str): the kind of the layer; its name is made from it.
        name (str): the name of this layer; made if it is not given.
        input: the variable, or the list of variables, that it reads.
        param_attr (ParamAttr): of its weights; bias_attr: of its bias.
        act (str): the activation that append_activation appends.

    Further arguments are kept in `kwargs`.
    """

    def __init__(self, layer_type, **kwargs):
        self.kwargs = kwargs
        self.layer_type = layer_type
        if kwargs.get("name") is None:
            kwargs["name"] = unique_name.generate(layer_type)

    name = property(lambda self: self.kwargs["name"])
    main_program = property(lambda self: default_main_program())
    startup_program = property(lambda self: default_startup_program())
    param_attr = property(lambda self: _to_attr(self.kwargs.get("param_attr")))
    bias_attr = property(lambda self: _to_attr(self.kwargs.get("bias_attr")))

    # --- what the layer was given ---

    def multiple_input(self, input_param_name="input"):
        """The variables of an argument, as a list."""
        given = self.kwargs.get(input_param_name, [])
        return list(given) if isinstance(given, (list, tuple)) else [given]

    def input(self, input_param_name="input"):
        """The only variable of an argument."""
        given = self.multiple_input(input_param_name)
        if len(given) != 1:
            raise ValueError("%s layer needs one %s, got %d" % (
                self.layer_type, input_param_name, len(given)))
        return given[0]

    def multiple_param_attr(self, length):
        """One ParamAttr for each of `length` inputs."""
        attr = self.param_attr
        if not isinstance(attr, list):
            attr = [attr]
        if len(attr) == 1:
            attr += [copy.deepcopy(attr[0]) for _ in range(length - 1)]
        if len(attr) != length:
            raise ValueError("%s layer has %d param_attr and %d inputs" % (
                self.layer_type, len(attr), length))
        return attr

    def iter_inputs_and_params(self, input_param_name="input"):
        """Pairs of an input and the ParamAttr of its weight."""
        inputs = self.multiple_input(input_param_name)
        return zip(inputs, self.multiple_param_attr(len(inputs)))

    def input_dtype(self, input_param_name="input"):
        """The element type that all variables of an argument have."""
        dtypes = {v.dtype for v in self.multiple_input(input_param_name)}
        if len(dtypes) != 1:
            raise ValueError("%s layer: the variables of %s have %d element "
                             "types, expected one" % (
                                 self.layer_type, input_param_name,
                                 len(dtypes)))
        return dtypes.pop()

    def is_instance(self, param_name, cls):
        """Refuse an argument that is of another class."""
        given = self.kwargs.get(param_name)
        if not isinstance(given, cls):
            raise TypeError("%s layer: %s is %s, expected %s" % (
                self.layer_type, param_name, type(given).__name__,
                getattr(cls, "__name__", cls)))

    # --- parameters and variables ---

    def create_parameter(self, attr, shape, dtype=None, is_bias=False,
                         default_initializer=None):
        """A new parameter, or None where attr is False."""
        attr = copy.copy(_to_attr(attr))
        if attr is False:
            return None
        if attr.name is None:
            attr.name = unique_name.generate(
                "%s.%s" % (self.name, "b" if is_bias else "w"))
        return layers.create_parameter(
            shape=list(shape), dtype="float32" if dtype is None else dtype,
            attr=attr, is_bias=is_bias,
            default_initializer=default_initializer)

    def get_parameter(self, name):
        """The parameter of that name."""
        var = self.main_program.global_block().var(name)
        if not isinstance(var, Parameter):
            raise ValueError("variable %s is not a parameter" % name)
        return var

    def create_variable_for_type_inference(self, dtype, stop_gradient=False):
        """A variable for an operator's output, which gives it its shape."""
        return self.create_variable(
            name=unique_name.generate(self.name + ".tmp"), dtype=dtype,
            persistable=False, stop_gradient=stop_gradient)

    create_tmp_variable = create_variable_for_type_inference  # before 1.3

    def create_variable(self, *args, **kwargs):
        """A variable of the current block; see Block.create_var."""
        return self.main_program.current_block().create_var(*args, **kwargs)

    def create_global_variable(self, persistable=False, *args, **kwargs):
        """A variable of the global block; by default its name is generated."""
        return self.main_program.global_block().create_var(
            *args, persistable=persistable, **kwargs)

    def create_or_get_global_variable(self, name, *args, **kwargs):
        """The global variable of that name, made if it is not there."""
        block = self.main_program.global_block()
        if block.has_var(name):
            return block.var(name)
        return self.create_global_variable(*args, name=name, **kwargs)

    def set_variable_initializer(self, var, initializer):
        """Let the startup program initialise a variable."""
        if not isinstance(var, Variable):
            raise TypeError("set_variable_initializer: %r is not a Variable"
                            % (var,))
        block = self.startup_program.global_block()
        return block.create_var(
            name=var.name, type=var.type, dtype=var.dtype, shape=var.shape,
            persistable=True, initializer=initializer)

    # --- operators ---

    def append_op(self, *args, **kwargs):
        """An operator at the end of the current block."""
        return self.main_program.current_block().append_op(*args, **kwargs)

    def append_bias_op(self, input_var, dim_start=1, dim_end=None):
        """The input plus a bias of the shape of its dimensions from dim_start
        to dim_end; the input itself where bias_attr is False."""
        attr = self.bias_attr
        if attr is False:
            return input_var
        bias = self.create_parameter(
            attr, input_var.shape[dim_start:dim_end], input_var.dtype,
            is_bias=True)
        return layers.elementwise_add(input_var, bias, axis=dim_start)

    def append_activation(self, input_var):
        """The activation `act` of the input; the input where there is none.
        `act` is the type of an operator, or a dict with it as "type" and the
        operator's attributes."""
        act = self.kwargs.get("act")
        if act is None:
            return input_var
        attrs = {"type": act} if isinstance(act, str) else dict(act)
        out = self.create_variable_for_type_inference(input_var.dtype)
        self.append_op(type=attrs.pop("type"), inputs={"X": [input_var]},
                       outputs={"Out": [out]}, attrs=attrs)
        return out
