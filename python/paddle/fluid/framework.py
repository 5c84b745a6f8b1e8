"""fluid.framework: programs, blocks, operators and variables.

Each class is a live view of what the library holds: nothing is kept twice, so
nothing has to be brought in step. Views are made without __init__; what they
carry of their own has its default in the class.
"""
import contextlib
import os
import sys
import textwrap

from . import _fluid, core, unique_name
from ._desc import BlockDesc, OpDesc, ProgramDesc, VarDesc
from ._index import get_item
from .core import AttrType, OpRole, VarType, suggest

__all__ = ["Program", "default_startup_program", "default_main_program",
           "program_guard", "name_scope", "cuda_places", "cpu_places",
           "cuda_pinned_places", "in_dygraph_mode", "is_compiled_with_cuda"]

EMPTY_VAR_NAME = core.kEmptyVarName()
TEMP_VAR_NAME = core.kTempVarName()
GRAD_VAR_SUFFIX = core.kGradVarSuffix()
ZERO_VAR_SUFFIX = core.kZeroVarSuffix()
CONTROL_DEP_VAR_PREFIX = core.kControlDepVarName()

convert_np_dtype_to_dtype_ = core.dtype_from_numpy
is_compiled_with_cuda = core.is_compiled_with_cuda


def grad_var_name(var_name):
    """The name of a variable's gradient."""
    return var_name + GRAD_VAR_SUFFIX


def dtype_is_floating(dtype):
    """Are these elements of floating point?"""
    return core.dtype_from_numpy(dtype) in (VarType.FP16, VarType.FP32,
                                            VarType.FP64)


def in_dygraph_mode():
    """No: there are only programs."""
    return False


def _current_expected_place():
    return core.CPUPlace()


def _enum_field(base, field, kind):
    """A field of a view as a member of its enumeration."""
    descriptor = getattr(base, field)
    return property(lambda self: kind(descriptor.__get__(self)),
                    descriptor.__set__, doc=descriptor.__doc__)


def _names(things):
    """Of variables and names."""
    return [t if isinstance(t, str) else t.name for t in things]


# --- variables ---------------------------------------------------------------

class Variable(_fluid.Variable):
    """A variable of a block; block.create_var makes one."""
    _DETAILS = ("error_clip", "stop_gradient")
    dtype = _enum_field(_fluid.Variable, "dtype", VarType)
    type = _enum_field(_fluid.Variable, "type", VarType)

    def __new__(cls, block, **kwargs):
        return block.create_var(**kwargs)

    def __init__(self, *args, **kwargs):
        """__new__ did all."""

    @property
    def desc(self):
        return VarDesc(self)

    def to_string(self, throw_on_error, with_details=False):
        """The VarDesc as text; with_details adds what it does not hold."""
        text = super().to_string()
        if with_details:
            text += "".join("%s: %s\n" % (k, getattr(self, k))
                            for k in self._DETAILS)
        return text

    def __repr__(self):
        return super().to_string()

    __str__ = __repr__

    def astype(self, dtype):
        """The same with its elements converted."""
        return _fluid.layer("cast", dict(x=self, dtype=dtype))

    def __getitem__(self, key):
        return get_item(self, key)

    __iter__ = None  # or else `for` would ask for items without end

    def _set_error_clip(self, error_clip):
        self.error_clip = error_clip

    def _clone(self, new_name=None):
        return self.block._clone_variable(self, name=new_name)

    __hash__ = object.__hash__


def _overload(op, reverse):
    """The method for x op y, or for y op x."""
    def method(self, other):
        if not isinstance(other, (_fluid.Variable, int, float)) and not (
                hasattr(other, "__float__") and hasattr(other, "dtype")):
            return NotImplemented
        return _fluid.var_math(op, self, other, reverse)
    return method


def _overload_all():
    for name, op in dict(add="+", sub="-", mul="*", truediv="/", pow="**",
                         floordiv="//", mod="%").items():
        setattr(Variable, "__%s__" % name, _overload(op, False))
        setattr(Variable, "__r%s__" % name, _overload(op, True))
    for name, op in dict(eq="==", ne="!=", lt="<", le="<=", gt=">",
                         ge=">=").items():
        setattr(Variable, "__%s__" % name, _overload(op, False))


_overload_all()


class _OptimizeAttr(dict):
    """A parameter's optimize_attr: what is set here is set there."""

    def __init__(self, param):
        super().__init__(learning_rate=param.learning_rate)
        self._param = param

    def __setitem__(self, key, value):
        if key == "learning_rate":
            self._param.learning_rate = value
        super().__setitem__(key, value)


class Parameter(Variable):
    """A variable that is trained; block.create_parameter makes one."""
    _DETAILS = Variable._DETAILS + (
        "trainable", "optimize_attr", "regularizer", "gradient_clip_attr",
        "do_model_average")

    def __new__(cls, block, shape, dtype, **kwargs):
        return block.create_parameter(shape=shape, dtype=dtype, **kwargs)

    @property
    def optimize_attr(self):
        return _OptimizeAttr(self)

    @optimize_attr.setter
    def optimize_attr(self, attr):
        self.learning_rate = attr.get("learning_rate", 1.0)

    @property
    def gradient_clip_attr(self):
        return self.gradient_clip

    @gradient_clip_attr.setter
    def gradient_clip_attr(self, clip):
        self.gradient_clip = clip


# --- operators ---------------------------------------------------------------

class OpProtoHolder:
    """The proto of every operator, by its type."""
    _instance = None

    @classmethod
    def instance(cls):
        if cls._instance is None:
            cls._instance = cls()
        return cls._instance

    def __init__(self):
        self.op_proto_map = {p.type: p for p in core.get_all_op_protos()}

    def get_op_proto(self, type):
        """Its slots and attributes; ValueError if there is none."""
        if type not in self.op_proto_map:
            raise ValueError('Operator "%s" has not been registered%s' % (
                type, suggest(type, self.op_proto_map)))
        return self.op_proto_map[type]

    @staticmethod
    def generated_op_attr_names():
        """Attributes that every operator gets by itself."""
        return {"op_role", "op_role_var", "op_namescope", "op_callstack"}


class Operator(_fluid.Operator):
    """An operator of a block; block.append_op makes one."""

    @property
    def desc(self):
        return OpDesc(self)

    def to_string(self, throw_on_error):
        """The OpDesc as text."""
        return super().to_string()

    def __repr__(self):
        return super().to_string()

    __str__ = __repr__

    def attr_type(self, name):
        return AttrType(super().attr_type(name))

    def all_attrs(self):
        """Every attribute by name; of blocks the Block."""
        attrs = super().all_attrs()
        for name in attrs:
            if self.attr_type(name) in (AttrType.BLOCK, AttrType.BLOCKS):
                attrs[name] = self.attr(name)
        return attrs

    def _set_attr(self, name, val):
        self.set_attr(name, val)

    _update_desc_attr = _set_attr

    def _remove_attr(self, name):
        self.remove_attr(name)

    def _rename_input(self, old_name, new_name):
        self.rename_input(old_name, new_name)

    def _rename_output(self, old_name, new_name):
        self.rename_output(old_name, new_name)

    def _block_attr(self, name):
        return self.attr(name)

    def _block_attr_id(self, name):
        return super().all_attrs()[name]

    def _blocks_attr_ids(self, name):
        return list(super().all_attrs()[name])

    def _blocks_attr(self, name):
        program = self.block.program
        return [program.block(i) for i in self._blocks_attr_ids(name)]


# --- blocks ------------------------------------------------------------------

# What create_var and create_parameter set on the view after C made it.
_LATE = ("error_clip", "type", "lod_level", "stop_gradient", "trainable",
         "optimize_attr", "regularizer", "gradient_clip_attr",
         "do_model_average", "is_data")


class Block(_fluid.Block):
    """Variables and operators; a program has one or more."""

    @property
    def desc(self):
        return BlockDesc(self)

    def to_string(self, throw_on_error, with_details=False):
        """The BlockDesc as text; with_details adds what it does not hold."""
        if not with_details:
            return super().to_string()
        parts = ["idx: %d\nparent_idx: %d\n" % (self.idx, self.parent_idx)]
        for kind, things in (("vars", self.vars.values()), ("ops", self.ops)):
            for thing in things:
                details = (True,) if kind == "vars" else ()
                text = thing.to_string(throw_on_error, *details)
                parts.append("%s {\n%s}\n" % (kind,
                                              textwrap.indent(text, "  ")))
        return "".join(parts)

    def __repr__(self):
        return super().to_string()

    __str__ = __repr__

    def var(self, name):
        """The variable of this block; ValueError if there is none."""
        if not isinstance(name, str):
            raise TypeError("a variable is found by its name, a str, not %s"
                            % type(name).__name__)
        found = self.find_var(name)
        if found is None:
            raise ValueError("var %s not in this block%s"
                             % (name, suggest(name, self.vars)))
        return found

    def has_var(self, name):
        return self.find_var(name) is not None

    def _find_var_recursive(self, name):
        """Of this block or those it may see; None if there is none."""
        return self.find_var_recursive(name)

    def _var_recursive(self, name):
        found = self.find_var_recursive(name)
        if found is None:
            raise ValueError("Var %s is not found recursively" % name)
        return found

    def all_parameters(self):
        return list(self.iter_parameters())

    def iter_parameters(self):
        return (v for v in self.vars.values() if v.is_parameter)

    def create_var(self, name=None, initializer=None, error_clip=None,
                   capacity=None, **kwargs):
        """A new variable, or the one of that name if it agrees."""
        if name is None:
            name = unique_name.generate("_generated_var")
        var = super().create_var(name=name, **kwargs)
        if error_clip is not None:
            var.error_clip = error_clip
        if initializer is not None:
            initializer(var, self)
        return var

    def create_parameter(self, shape, dtype, name=None, initializer=None,
                         **kwargs):
        """A new parameter, of the global block as all are."""
        if name is None:
            name = unique_name.generate("_generated_var")
        if not shape or any(d < 0 for d in shape):
            raise ValueError("parameter %s: its shape is %s, but it needs "
                             "one that is known" % (name, tuple(shape)))
        unknown = set(kwargs) - set(_LATE) - {"persistable", "attr"}
        if unknown:
            raise TypeError("create_parameter has no argument %s%s" % (
                min(unknown), suggest(min(unknown), _LATE)))
        param = _fluid.Block.create_parameter(
            self.program.global_block(), name, shape, dtype,
            kwargs.pop("attr", None))
        for key in _LATE:
            if kwargs.get(key) is not None:
                setattr(param, key, kwargs[key])
        if initializer is not None:
            initializer(param, self)
        return param

    def append_op(self, type=None, inputs=None, outputs=None, attrs=None,
                  stop_gradient=False):
        """A new operator at the end."""
        return super().append_op(type, inputs, outputs, attrs)

    def _insert_op(self, index, type=None, inputs=None, outputs=None,
                   attrs=None):
        return self.insert_op(index, type, inputs, outputs, attrs)

    def _prepend_op(self, type=None, inputs=None, outputs=None, attrs=None):
        return self.insert_op(0, type, inputs, outputs, attrs)

    def _remove_op(self, index):
        self.remove_op(index)

    def _slice_ops(self, start, end):
        return self.ops[start:end]

    def _remove_var(self, name):
        self.remove_var(name)

    def _rename_var(self, name, new_name):
        """The variable under its new name, also in operators."""
        if not self.has_var(name):
            raise ValueError("var %s is not in current block" % name)
        return self.rename_var(name, new_name)

    def _clone_variable(self, var, force_persistable=True, name=None):
        """A variable like one of another block."""
        tensor = var.type in (VarType.LOD_TENSOR, VarType.SELECTED_ROWS,
                              VarType.LOD_TENSOR_ARRAY)
        known = dict(shape=var.shape, dtype=var.dtype) if tensor else {}
        if var.type == VarType.LOD_TENSOR:
            known.update(lod_level=var.lod_level, is_data=var.is_data)
        return self.create_var(
            name=name or var.name, type=var.type,
            persistable=True if force_persistable else var.persistable,
            **known)

    def _set_forward_block_idx(self, idx):
        self.forward_block_idx = idx

    def _sync_with_cpp(self):
        """Nothing: the views are live."""


# --- programs ----------------------------------------------------------------

# What a program carries for distributed training and for optimisers.
_DISTRIBUTED = ("_is_distributed", "_is_chief", "_parameters_on_pservers",
                "_endpoints", "_ps_endpoint", "_distributed_lookup_table",
                "_trainers_endpoints", "_nccl_comm_num")


class Program(_fluid.Program):
    """What is run: blocks of operators, and the variables they work on."""
    _is_distributed = False
    _is_chief = False
    _parameters_on_pservers = None
    _endpoints = ()
    _ps_endpoint = None
    _trainers_endpoints = ()
    _distributed_lookup_table = None
    _nccl_comm_num = 1
    _is_mem_optimized = False
    _fleet_opt = None
    _pipeline_opt = None
    _program_config = None
    _use_lamb = False
    _sync_with_cpp = Block._sync_with_cpp

    @property
    def desc(self):
        return ProgramDesc(self)

    def to_string(self, throw_on_error, with_details=False):
        """The ProgramDesc as text; with_details adds what it does not hold."""
        if not isinstance(throw_on_error, bool):
            raise TypeError("throw_on_error must be a bool, not %s"
                            % type(throw_on_error).__name__)
        if not with_details:
            return super().to_string()
        return "".join("blocks {\n%s}\n" % textwrap.indent(
            b.to_string(throw_on_error, True), "  ") for b in self.blocks)

    def __repr__(self):
        return super().to_string()

    __str__ = __repr__

    @property
    def blocks(self):
        return [self.block(i) for i in range(self.num_blocks)]

    def global_block(self):
        return self.block(0)

    def current_block(self):
        return self.block(self.current_block_idx)

    def list_vars(self):
        """Every variable of every block."""
        for block in self.blocks:
            yield from block.vars.values()

    def clone(self, for_test=False):
        """A copy; for_test sets is_test where operators have it. Nothing is
        left out: clone before optimizer.minimize to test."""
        copy = super().clone(for_test)
        copy._copy_dist_param_info_from(self)
        return copy

    def _create_block(self, parent_idx=None):
        """A new block, which becomes the current one."""
        parent = self.current_block_idx if parent_idx is None else parent_idx
        block = self.create_block(parent)
        self.current_block_idx = block.idx
        return block

    def _rollback(self):
        """The parent is current again."""
        self.current_block_idx = self.current_block().parent_idx

    def _prune(self, targets):
        """A new program with only what the targets need."""
        if not isinstance(targets, (list, tuple)):
            targets = [targets]
        names = []
        for target in targets:
            names += (target.output_arg_names
                      if isinstance(target, _fluid.Operator)
                      else _names([target]))
        return self.prune(names)

    def _inference_optimize(self, prune_read_op=True):
        """A copy for inference."""
        return self.clone(for_test=True)

    @property
    def _op_role(self):
        return self.op_role

    @_op_role.setter
    def _op_role(self, role):
        self.op_role = int(role)

    @property
    def _op_role_var(self):
        return self.op_role_vars

    @_op_role_var.setter
    def _op_role_var(self, names):
        self.op_role_vars = list(names)

    @contextlib.contextmanager
    def _role_guard(self, role, names=()):
        """Within `with`, operators get this role and these variables."""
        old = self.op_role, self.op_role_vars
        self.op_role, self.op_role_vars = int(role), _names(names)
        try:
            yield
        finally:
            self.op_role, self.op_role_vars = old

    def _optimized_guard(self, param_and_grads):
        """Operators that update a parameter."""
        return self._role_guard(OpRole.Optimize, param_and_grads)

    _optimized_guard_ = _optimized_guard

    def _lr_schedule_guard(self, is_with_opt=False):
        """Operators that compute a learning rate."""
        role = int(OpRole.LRSched)
        if is_with_opt:
            role |= OpRole.Optimize
        return self._role_guard(role)

    def _backward_role_guard(self):
        """Operators that compute gradients."""
        return self._role_guard(OpRole.Backward)

    def _copy_dist_param_info_from(self, other):
        """What the other knows of distributed training."""
        if not isinstance(other, Program):
            raise TypeError("_copy_dist_param_info_from takes a Program, not "
                            "%s" % type(other).__name__)
        for name in _DISTRIBUTED:
            setattr(self, name, getattr(other, name))


_fluid.set_classes(program=Program, block=Block, operator=Operator,
                   variable=Variable, parameter=Parameter)


# --- the programs of now -----------------------------------------------------

_fluid.switch_main_program(Program())
_fluid.switch_startup_program(Program())


def default_main_program():
    """Where layers append their operators."""
    return _fluid.main_program()


def default_startup_program():
    """Where layers append what gives parameters their first values."""
    return _fluid.startup_program()


def _check_program(program, what):
    if not isinstance(program, _fluid.Program):
        raise TypeError("%s must be a Program, not %s"
                        % (what, type(program).__name__))
    return program


def switch_main_program(program):
    """Another main program; gives back what it was."""
    return _fluid.switch_main_program(_check_program(program, "program"))


def switch_startup_program(program):
    """Another startup program; gives back what it was."""
    return _fluid.switch_startup_program(_check_program(program, "program"))


@contextlib.contextmanager
def program_guard(main_program, startup_program=None):
    """Within `with`, layers append to these programs."""
    _check_program(main_program, "main_program")
    if startup_program is not None:
        _check_program(startup_program, "startup_program")
    main = _fluid.switch_main_program(main_program)
    if startup_program is not None:
        startup = _fluid.switch_startup_program(startup_program)
    try:
        yield
    finally:
        _fluid.switch_main_program(main)
        if startup_program is not None:
            _fluid.switch_startup_program(startup)


def _get_var(name, program=None):
    """A variable of a program's global block."""
    program = default_main_program() if program is None else program
    assert isinstance(name, str)
    assert isinstance(program, _fluid.Program)
    return program.global_block().var(name)


class _NameScope:
    """A level of name_scope: how often each name was used in it."""

    def __init__(self, path="/"):
        self.path, self.children = path, {}

    def child(self, prefix):
        used = self.children.setdefault(prefix, [])
        name = "%s_%d" % (prefix, len(used)) if used else prefix
        used.append(_NameScope("%s%s/" % (self.path, name)))
        return used[-1]


_name_scope = _NameScope()


@contextlib.contextmanager
def name_scope(prefix=None):
    """Operators say in op_namescope that they were made within this."""
    global _name_scope
    assert prefix, "namescope prefix cannot be empty."
    outer = _name_scope
    _name_scope = outer.child(prefix)
    _fluid.switch_name_scope(_name_scope.path)
    try:
        yield
    finally:
        _name_scope = outer
        _fluid.switch_name_scope(outer.path)


# --- places ------------------------------------------------------------------

def _cpu_num():
    """How many places there are: CPU_NUM, or one."""
    if "CPU_NUM" not in os.environ:
        print("CPU_NUM is not set: fluid.cpu_places() is one place",
              file=sys.stderr)
        os.environ["CPU_NUM"] = "1"
    try:
        count = int(os.environ["CPU_NUM"])
    except ValueError:
        count = 0
    if count < 1:
        raise ValueError("CPU_NUM is %r, which is no number of places"
                         % os.environ["CPU_NUM"])
    return count


def cpu_places(device_count=None):
    """That many CPUPlaces, or CPU_NUM of them."""
    return [core.CPUPlace() for _ in range(device_count or _cpu_num())]


def cuda_places(device_ids=None):
    """There are none: RuntimeError."""
    raise core.no_gpu("fluid.cuda_places")


def cuda_pinned_places(device_count=None):
    """There are none: RuntimeError."""
    raise core.no_gpu("fluid.cuda_pinned_places")
