# SPDX-License-Identifier: Apache-2.0
"""Python functions made from the layers of C: names, signatures, docstrings.

Fluid spreads its layers over modules; MODULES says which are where. A layer
that no row names belongs to nn.
"""
import ast
import inspect

from ... import _absent
from .. import _fluid
from ..core import check_keywords
from ..initializer import Constant

MODULES = {
    "io": "data",
    "tensor":
        "argmax argmin argsort assign cast concat create_global_var "
        "create_parameter create_tensor fill_constant "
        "fill_constant_batch_size_like has_inf has_nan isfinite linspace "
        "ones range reverse sums tensor_array_to_tensor zeros zeros_like",
    "control_flow":
        "Print equal greater_equal greater_than increment is_empty "
        "less_equal less_than not_equal",
    "ops":
        "_scale abs acos asin atan ceil cos cumsum exp floor hard_shrink "
        "logsigmoid reciprocal round rsqrt sigmoid sin softplus softshrink "
        "softsign sqrt square tanh tanh_shrink thresholded_relu "
        "uniform_random",
    "metric_op": "accuracy auc",
    "collective":
        "_allreduce _broadcast _c_allgather _c_allreduce _c_broadcast "
        "_c_reducescatter _c_sync_calc_stream _c_sync_comm_stream",
    "learning_rate_scheduler":
        "cosine_decay exponential_decay inverse_time_decay linear_lr_warmup "
        "natural_exp_decay noam_decay piecewise_decay polynomial_decay",
}


def signature(spec):
    """The inspect.Signature of a row of a C table."""
    def parameter(argument):
        default = inspect.Parameter.empty if argument.default is None \
            else ast.literal_eval(argument.default)
        return inspect.Parameter(
            argument.name, inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=default)

    return inspect.Signature([parameter(a) for a in spec.arguments])


def _returned(names):
    """What a layer returns: nothing said, one; "a, b": several; "[a]": the
    rest as a list."""
    if not names:
        return "A Variable."
    if names.startswith("["):
        return "A list of Variables: %s." % names.strip("[]")
    return "Several Variables, in this order: %s." % names.replace(
        "[", "a list of ").replace("]", "")


def _wrap(text, indent="", more=""):
    """Lines of at most 76 columns. textwrap takes a tenth of an import."""
    lines, line = [], indent
    for word in text.split():
        if len(line) + len(word) > 76 and line.strip():
            lines.append(line.rstrip())
            line = more
        line += word + " "
    return [*lines, line.rstrip()] if line.strip() else lines


def document(spec, returns=None):
    """A docstring: the table's sentences, the arguments, what is returned."""
    lines = _wrap(spec.doc) + ["", "Args:"]
    for a in spec.arguments:
        default = "" if a.default is None else ", default %s" % a.default
        lines += _wrap(
            "%s (%s%s): %s." % (a.name, a.type, default, a.doc), "    ",
            "        ")
    return "\n".join(lines + ["", "Returns:", "    " + (
        returns or _returned(spec.returns)), ""])


def bind(name, sig, args, kwargs):
    """The arguments of a call by name, as given."""
    check_keywords(name, sig.parameters, kwargs)
    try:
        return sig.bind(*args, **kwargs).arguments
    except TypeError as e:
        raise TypeError("%s(): %s" % (name, e)) from None


def _free_dims(arguments):
    """A dimension of None is a free one."""
    shape = arguments["shape"]
    if not isinstance(shape, int):
        arguments["shape"] = [-1 if d is None else d for d in shape]


def _summaries(arguments):
    """Start values by name become three initializers."""
    starts = arguments.get("param_attr")
    if isinstance(starts, dict):
        arguments["param_attr"] = [
            Constant(float(starts.get(name, value))) for name, value in (
                ("batch_size", 1e4), ("batch_sum", 0), ("batch_square", 1e4))]


_PREPARE = {"data": _free_dims, "data_norm": _summaries}


def _function(spec):
    sig, prepare = signature(spec), _PREPARE.get(spec.name)

    def layer(*args, **kwargs):
        arguments = bind(spec.name, sig, args, kwargs)
        if prepare:
            prepare(arguments)
        return _fluid.layer(spec.name, arguments)

    layer.__name__ = layer.__qualname__ = spec.name
    layer.__doc__ = document(spec)
    layer.__signature__ = sig
    return layer


def _home(name):
    for module, names in MODULES.items():
        if name in names.split():
            return module
    return "nn"


FUNCTIONS = {spec.name: _function(spec) for spec in _fluid.layer_table()}


def publish(scope, *others):
    """Put the layers of a module into its globals, and into its __all__ with
    what else it has."""
    module = scope["__name__"].rpartition(".")[2]
    mine = [n for n in FUNCTIONS if _home(n) == module]
    for name in mine:
        FUNCTIONS[name].__module__ = scope["__name__"]
        scope[name] = FUNCTIONS[name]
    scope["__all__"] = [n for n in mine if not n.startswith("_")] + list(
        others)
    _absent.answer_for(scope)
