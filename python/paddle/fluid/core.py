# SPDX-License-Identifier: Apache-2.0
"""fluid.core: values, places, enumerations and the tables of operators.

In the original this is the compiled half. Here the compiled half is _fluid,
and this module gives its parts the names that scripts and tests know.
"""
import enum
import functools
import inspect
import sys

import numpy as np

from .. import _absent
from .._absent import suggest
from . import _fluid
from ._fluid import EnforceNotMet, JobEnded, LoDTensor, Scope, SelectedRows

__all__ = ["CPUPlace", "CUDAPlace", "CUDAPinnedPlace", "EnforceNotMet",
           "EOFException", "JobEnded", "LoDTensor", "LoDTensorArray", "Scope",
           "SelectedRows", "VarDesc", "is_compiled_with_cuda"]


_told = set()


def tell_once(sentences):
    """Write each message to stderr, once in the life of this process."""
    for sentence in sentences:
        if sentence not in _told:
            _told.add(sentence)
            sys.stderr.write("%s\n" % sentence)


def check_keywords(what, known, given):
    """TypeError for a keyword that a call does not know."""
    for key in given:
        if key not in known:
            raise TypeError("%s() got an unexpected keyword argument '%s'%s"
                            % (what, key, suggest(key, known)))


def spelled(cls):
    """A class whose misspelt arguments get a suggestion."""
    init, known = cls.__init__, inspect.signature(cls.__init__).parameters

    @functools.wraps(init)
    def __init__(self, *args, **kwargs):
        check_keywords(type(self).__name__, known, kwargs)
        init(self, *args, **kwargs)
    cls.__init__ = __init__
    return cls


# --- enumerations ------------------------------------------------------------

class _Enum(enum.IntEnum):
    """Numbers of the file format that print as their names."""

    def __str__(self):
        return "%s.%s" % (type(self).__name__, self.name)


class VarType(_Enum):
    """Kinds of variables, and of the elements of tensors."""
    BOOL = 0
    INT16 = 1
    INT32 = 2
    INT64 = 3
    FP16 = 4
    FP32 = 5
    FP64 = 6
    LOD_TENSOR = 7
    SELECTED_ROWS = 8
    FEED_MINIBATCH = 9
    FETCH_LIST = 10
    STEP_SCOPES = 11
    LOD_RANK_TABLE = 12
    LOD_TENSOR_ARRAY = 13
    PLACE_LIST = 14
    READER = 15
    RAW = 17
    TUPLE = 18
    SIZE_T = 19
    UINT8 = 20
    INT8 = 21


class AttrType(_Enum):
    """Types of attributes."""
    INT = 0
    FLOAT = 1
    STRING = 2
    INTS = 3
    FLOATS = 4
    STRINGS = 5
    BOOL = 6
    BOOLS = 7
    BLOCK = 8
    LONG = 9
    BLOCKS = 10
    LONGS = 11


class OpRole(_Enum):
    """What part of training an operator has."""
    Forward = 0
    Backward = 1
    Optimize = 2
    RPC = 4
    Dist = 8
    LRSched = 16
    Loss = 256
    NotSpecified = 0x1000


class op_proto_and_checker_maker:
    """Names of the attributes that every operator has."""
    OpRole = OpRole

    @staticmethod
    def kOpRoleAttrName():
        return "op_role"

    @staticmethod
    def kOpRoleVarAttrName():
        return "op_role_var"

    @staticmethod
    def kOpNameScopeAttrName():
        return "op_namescope"

    @staticmethod
    def kOpCreationCallstackAttrName():
        return "op_callstack"


def kEmptyVarName():
    """The name in a slot that has no variable."""
    return "@EMPTY@"


def kTempVarName():
    return "@TEMP@"


def kGradVarSuffix():
    return "@GRAD"


def kZeroVarSuffix():
    return "@ZERO"


def kNewGradSuffix():
    return "@NEWGRAD@"


def kControlDepVarName():
    """Prefix of the names of variables that only order operators."""
    return "__control_var"


NUMPY = {VarType.BOOL: np.bool_, VarType.INT16: np.int16,
          VarType.INT32: np.int32, VarType.INT64: np.int64,
          VarType.FP16: np.float16, VarType.FP32: np.float32,
          VarType.FP64: np.float64, VarType.UINT8: np.uint8,
          VarType.INT8: np.int8}
_VAR_TYPES = {np.dtype(v): k for k, v in NUMPY.items()}
_VAR_TYPES[np.dtype(np.uint16)] = VarType.INT16  # as the original has it


def dtype_to_numpy(dtype):
    """The numpy dtype of a VarType."""
    return np.dtype(NUMPY[dtype])


def dtype_from_numpy(dtype):
    """The VarType of a numpy dtype, its name, or a VarType."""
    if isinstance(dtype, VarType):
        return dtype
    try:
        return _VAR_TYPES[np.dtype(dtype)]
    except (KeyError, TypeError):
        raise ValueError("Not supported numpy dtype %s" % (dtype,)) from None


# --- places ------------------------------------------------------------------

class EOFException(Exception):
    """A reader is at its end."""


class CPUPlace:
    """The processor: where everything runs."""

    def __repr__(self):
        return "CPUPlace"

    def __eq__(self, other):
        return isinstance(other, CPUPlace)

    def __hash__(self):
        return hash(CPUPlace)


class CUDAPlace:
    """A GPU. It can be named, but nothing runs on it here.

    Args:
        device_id (int): the number of the GPU.
    """

    def __init__(self, device_id=0):
        self.device_id = device_id

    def __repr__(self):
        return "CUDAPlace(%d)" % self.device_id


class CUDAPinnedPlace:
    """Host memory that a GPU reads. It can be named, but not used here."""

    def __repr__(self):
        return "CUDAPinnedPlace"


def no_gpu(what, instead="fluid.CPUPlace()"):
    """The error for everything that needs a GPU."""
    return RuntimeError("%s needs a GPU, and this build has no GPU kernels; "
                        "use %s" % (what, instead))


def check_place(place):
    """`place`, if it is one on which something can run."""
    if isinstance(place, (CUDAPlace, CUDAPinnedPlace)):
        raise no_gpu(place)
    if place is not None and not isinstance(place, CPUPlace):
        raise TypeError("a place is fluid.CPUPlace(), not %s"
                        % type(place).__name__)
    return place


def is_compiled_with_cuda():
    """Whether there are GPU kernels.

    Returns:
        False.
    """
    return False


def is_compiled_with_mkldnn():
    """No: programs need no mkldnn attributes; oneDNN is used by itself."""
    return False


def is_compiled_with_dist():
    """Yes: trainers and servers are always there."""
    return True


def is_compiled_with_brpc():
    """No: servers talk gRPC."""
    return False


def get_cuda_device_count():
    return 0


def op_support_gpu(op_type):
    """Can this operator run on a GPU? None can."""
    return False


def _nothing(*args, **kwargs):
    """Does nothing: the library needs no such set-up."""


init_gflags = init_glog = init_devices = _nothing


# --- values ------------------------------------------------------------------

_Scope, Tensor = Scope, LoDTensor


class LoDTensorArray(list):
    """A list of tensors."""


def _tensor_text(tensor):
    """The lengths of its sequences, its shape and its values."""
    if not tensor._is_initialized():
        return "LoDTensor(empty)"
    return "lod: %s\nshape: %s\ndtype: %s\ndata: %s" % (
        tensor.lod(), tensor.shape(), VarType(tensor._dtype()),
        np.asarray(tensor))


def _dense(rows):
    """Selected rows as the whole matrix; those that repeat are added up."""
    values = np.asarray(rows.get_tensor())
    whole = np.zeros((rows.height(),) + values.shape[1:], values.dtype)
    np.add.at(whole, rows.rows(), values)
    return whole


def _rows_text(rows):
    return "rows: %s\nheight: %s\n%s" % (rows.rows(), rows.height(),
                                         rows.get_tensor())


def _set_tensor(tensor, array, place=None, plain=LoDTensor.set):
    """Copy an array in, of any layout; uint16 are the bits of float16."""
    check_place(place)
    if type(array) is not np.ndarray or not array.flags.c_contiguous:
        array = np.array(array, order="C")
    if array.dtype == np.uint16:
        array = array.view(np.float16)
    plain(tensor, array)


def _holds_int(value):
    """Whether set_int was the last to write a scope's variable."""
    if value.type != VarType.LOD_TENSOR:
        return False
    tensor = value.get_tensor()
    return tensor._is_initialized() and tensor.shape() == [1] and \
        tensor._dtype() == VarType.INT32


def set_feed_variable(scope, tensor, var_name, index):
    """Keep a tensor in a scope as column `index` of a feed.

    Args:
        scope (Scope): where it is kept.
        tensor (LoDTensor): what is kept; it is copied.
        var_name (str): the feed, usually "feed".
        index (int): the column.
    """
    held = scope.var("%s.%d" % (var_name, index)).get_tensor()
    held.set(np.asarray(tensor))
    held.set_lod(tensor.lod())


def get_fetch_variable(scope, var_name, index):
    """The tensor that set_feed_variable kept.

    Args:
        scope (Scope): where it is kept.
        var_name (str): the feed or fetch, as it was kept.
        index (int): the column.

    Returns:
        A LoDTensor.
    """
    held = scope.find_var("%s.%d" % (var_name, index))
    if held is None:
        raise EnforceNotMet("the scope has no column %d of %s"
                            % (index, var_name))
    return held.get_tensor()


def __unittest_throw_exception__():
    """Raise an EnforceNotMet, for tests of what catches it."""
    raise EnforceNotMet("This is a test of exception")


def _attach_presentation():
    """Add methods to values that are other names for the same thing."""
    LoDTensor.set = _set_tensor
    for kind in ("float", "double"):
        setattr(LoDTensor, "_get_%s_element" % kind, LoDTensor._get_element)
        setattr(LoDTensor, "_set_%s_element" % kind, LoDTensor._set_element)
        setattr(LoDTensor, "_alloc_%s" % kind, lambda self, place=None, t=(
            "float32" if kind == "float" else "float64"): self._alloc(t))
    LoDTensor._alloc_int = lambda self, place=None: self._alloc("int32")
    LoDTensor._place = lambda self: CPUPlace()
    LoDTensor._get_dims = LoDTensor.shape
    LoDTensor.__getitem__ = lambda self, key: np.asarray(self)[key]
    LoDTensor.__str__ = LoDTensor.__repr__ = _tensor_text
    for kind, number in (("int", int), ("float", float)):
        setattr(_fluid.Value, "get_" + kind, lambda self, number=number:
                number(self.get_tensor()[0]))
        setattr(_fluid.Value, "set_" + kind, lambda self, value, t=(
            "int32" if kind == "int" else "float32"):
                self.get_tensor().set(np.array([value], t)))
    _fluid.Value.is_int = _holds_int
    SelectedRows.sync_index = _nothing
    SelectedRows.numpy = _dense
    SelectedRows.__str__ = SelectedRows.__repr__ = _rows_text
    SelectedRows.numel = lambda self: int(
        np.prod(self.get_tensor().shape(), dtype=np.int64))


_attach_presentation()


# --- operators ---------------------------------------------------------------

def get_all_op_protos():
    """The proto of every operator, by type."""
    return _fluid.op_table()


# --- what is made of the parts above, loaded when it is named ----------------

_absent.answer_for(globals(), late={
    **dict.fromkeys(("BlockDesc", "OpDesc", "ProgramDesc", "VarDesc",
                     "get_grad_op_desc"), "_desc"),
    **dict.fromkeys(("AnalysisConfig", "PaddleDType", "PaddleTensor",
                     "create_paddle_predictor"), "_predictor")})
