# SPDX-License-Identifier: Apache-2.0
"""fluid.framework: programs, and where layers append now.

Each class is a live view of what the library holds: nothing is kept twice, so
nothing has to be brought in step. Views are made without __init__; what they
carry of their own has its default in the class.
"""
import contextlib
import os
import sys
import textwrap

from . import _fluid, core
from ._block import Block
from ._desc import ProgramDesc
from ._operator import Operator, OpProtoHolder
from ._variable import Parameter, Variable
from .core import OpRole, VarType

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
    """Whether dygraph is in use.

    Returns:
        False: there are only programs.
    """
    return False


def _current_expected_place():
    return core.CPUPlace()


def _names(things):
    """The names of variables; names stay as they are."""
    return [t if isinstance(t, str) else t.name for t in things]


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
    _readers = ()  # readers from which Executor.run gets batches
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
        copy._readers = self._readers
        copy._copy_dist_param_info_from(self)
        return copy

    def _create_block(self, parent_idx=None):
        """A new block, which becomes the current one."""
        parent = self.current_block_idx if parent_idx is None else parent_idx
        block = self.create_block(parent)
        self.current_block_idx = block.idx
        return block

    def _rollback(self):
        """Return to the parent block."""
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
        """Copy the settings of distributed training from another program."""
        if not isinstance(other, Program):
            raise TypeError("_copy_dist_param_info_from takes a Program, not "
                            "%s" % type(other).__name__)
        for name in _DISTRIBUTED:
            setattr(self, name, getattr(other, name))


_fluid.set_classes(program=Program, block=Block, operator=Operator,
                   variable=Variable, parameter=Parameter)


# --- current programs --------------------------------------------------------

_fluid.switch_main_program(Program())
_fluid.switch_startup_program(Program())


def default_main_program():
    """The program to which layers append their operators.

    Returns:
        A Program.
    """
    return _fluid.main_program()


def default_startup_program():
    """The program to which layers append what initialises parameters.

    Returns:
        A Program.
    """
    return _fluid.startup_program()


def _check_program(program, what):
    if not isinstance(program, _fluid.Program):
        raise TypeError("%s must be a Program, not %s"
                        % (what, type(program).__name__))
    return program


def switch_main_program(program):
    """Set the main program; returns the old one."""
    return _fluid.switch_main_program(_check_program(program, "program"))


def switch_startup_program(program):
    """Set the startup program; returns the old one."""
    return _fluid.switch_startup_program(_check_program(program, "program"))


@contextlib.contextmanager
def program_guard(main_program, startup_program=None):
    """A `with` block in which layers append to other programs.

    Args:
        main_program (Program): in place of the default main program.
        startup_program (Program): in place of the default startup program;
            None: that one stays.

    Returns:
        A context manager.
    """
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
    """A `with` block whose operators carry its name in op_namescope.

    Args:
        prefix (str): the name.

    Returns:
        A context manager.
    """
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
        raise ValueError("CPU_NUM is %r, expected a whole number above 0"
                         % os.environ["CPU_NUM"])
    return count


def cpu_places(device_count=None):
    """A list of places on the CPU.

    Args:
        device_count (int): how many; None: CPU_NUM of the environment.

    Returns:
        A list of CPUPlace.
    """
    return [core.CPUPlace() for _ in range(device_count or _cpu_num())]


def cuda_places(device_ids=None):
    """RuntimeError: there are no GPU kernels.

    Args:
        device_ids (list of int): the numbers of GPUs.
    """
    raise core.no_gpu("fluid.cuda_places")


def cuda_pinned_places(device_count=None):
    """RuntimeError: there are no GPU kernels.

    Args:
        device_count (int): how many.
    """
    raise core.no_gpu("fluid.cuda_pinned_places")
