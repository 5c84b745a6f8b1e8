# SPDX-License-Identifier: Apache-2.0
"""_fluid: programs, networks, values and runs of the C library.

Program, Block, Operator and Variable are live views: they hold no copy, and
keep their program alive. The same C object is the same Python object for as
long as the program lives, so attributes set on a view stay. Views that C makes
do not pass through __init__: let class attributes hold the defaults.

Kinds and dtypes are Paddle's numbers (VarType); where one is taken, a name
("float32"), a numpy dtype or anything with __index__ will do.

Wherever an initializer, regularizer, clip or parameter attribute is taken, C
asks the object for _fluid_spec(), a dict:
    initializer  what="init", kind, a, b, gaussian, fan_in, fan_out, seed, array
    regularizer  what="regularizer", kind ("l1", "l2"), coeff
    clip         what="clip", kind ("value", "norm", "global_norm"), max, min,
                 group
    attribute    what="param", name, initializer, learning_rate, regularizer,
                 trainable, gradient_clip, do_model_average
Keys that are absent or None are defaults. A callable without _fluid_spec is
of the user's own: an initializer is called with (var, block), a regularizer
with (param, grad, block) and returns the term to add. A parameter attribute
may also be None or True (defaults), False (no parameter), a name, or any
object whose _fluid_spec says "init" or "regularizer".

Errors: ValueError (a wrong argument; an unknown op, layer or variable),
TypeError (an object that cannot be converted), EnforceNotMet (shapes, running,
files), JobEnded, MemoryError, KeyboardInterrupt (Ctrl-C in a run).
"""
from typing import (Any, Callable, Dict, Iterable, List, Mapping, NamedTuple,
                    Optional, Sequence, Tuple, Type, Union)

DType = Union[int, str, Any]
Names = Union[str, "Variable", Sequence[Union[str, "Variable"]]]


class EnforceNotMet(RuntimeError):
    """What running operators, shapes and files raise; core.EnforceNotMet."""


class JobEnded(EnforceNotMet):
    """The job of this process has ended, and not because of it; core.JobEnded.
    `code` is the exit code of a process that does not catch it."""
    code: int


def version() -> str:
    """Of the library: "0.1.0"."""


def set_classes(*, program: Type["Program"] = ..., block: Type["Block"] = ...,
                operator: Type["Operator"] = ...,
                variable: Type["Variable"] = ...,
                parameter: Type["Variable"] = ...) -> None:
    """The subclasses of which C makes views from now on."""


# --- programs ----------------------------------------------------------------

class Program:
    """A program; Program() is empty but for its global block."""
    num_blocks: int  # read only
    version: int  # read only: counts changes
    random_seed: int
    current_block_idx: int  # where layers append
    op_role: int  # stamped on what is appended
    op_role_vars: List[str]  # at most two: parameter, gradient

    def block(self, index: int) -> "Block":
        """IndexError if there is none."""
    def create_block(self, parent_idx: int) -> "Block":
        """A new block; the current one stays current."""
    def clone(self, for_test: bool = False) -> "Program":
        """A copy with parameters and flags; is_test is set for_test."""
    def prune(self, targets: Sequence[str]) -> "Program":
        """A new program with only what the named variables need."""
    def inference(self, feeds: Sequence[str],
                  targets: Sequence[str]) -> "Program":
        """A new program as save_inference_model writes it."""
    def take(self, other: "Program") -> None:
        """Become what other is; other is empty afterwards. Views follow: a
        Variable by its name, a Block by its index; an Operator is gone."""
    def verify(self) -> None:
        """ValueError says which rule between ops and vars is broken."""
    def serialize_to_string(self) -> bytes:
        """Paddle's ProgramDesc, as in a __model__ file."""
    @classmethod
    def parse_from_string(cls, data: bytes, name: str = "program") -> "Program":
        """A ProgramDesc read back; name is for sentences."""
    def to_string(self) -> str:
        """The ProgramDesc in protobuf's text format."""
    def to_text(self) -> str:
        """The library's own readable form."""


class Block:
    """A block of a program."""
    program: Program  # read only, as all here but forward_block_idx
    idx: int
    parent_idx: int  # -1: none
    forward_block_idx: int  # the block that this is the gradient of, or -1
    vars: Dict[str, "Variable"]  # a fresh dict, in order of creation
    ops: List["Operator"]  # a fresh list
    num_ops: int

    def find_var(self, name: str) -> Optional["Variable"]:
        """The variable of this block."""
    def find_var_recursive(self, name: str) -> Optional["Variable"]:
        """Of this block, the block it is the gradient of, or the parents."""
    def create_var(self, name: Optional[str] = None, type: Optional[int] = None,
                   dtype: Optional[DType] = None,
                   shape: Optional[Sequence[int]] = None,
                   lod_level: Optional[int] = None,
                   persistable: Optional[bool] = None,
                   stop_gradient: bool = False,
                   is_data: bool = False) -> "Variable":
        """New, or the existing one if what is given agrees (ValueError)."""
    def create_parameter(self, name: str, shape: Sequence[int], dtype: DType,
                         attr: Any = None) -> "Variable":
        """A parameter without a start op; attr as everywhere (its name and
        initializer are not read)."""
    def append_op(self, type: str, inputs: Optional[Mapping[str, Names]] = None,
                  outputs: Optional[Mapping[str, Names]] = None,
                  attrs: Optional[Mapping[str, Any]] = None) -> "Operator":
        """Checked and inferred; attributes of value None are left out."""
    def insert_op(self, index: int, type: str,
                  inputs: Optional[Mapping[str, Names]] = None,
                  outputs: Optional[Mapping[str, Names]] = None,
                  attrs: Optional[Mapping[str, Any]] = None) -> "Operator":
        """The same at a place; 0 prepends."""
    def remove_op(self, index: int) -> None:
        """IndexError if there is none."""
    def remove_var(self, name: str) -> bool:
        """Was it there?"""
    def rename_var(self, old: str, new: str) -> "Variable":
        """In the ops of this block and of its sub-blocks too."""
    def to_string(self) -> str:
        """The BlockDesc in protobuf's text format."""


class Operator:
    """An operator of a block."""
    block: Block
    type: str
    idx: int  # its place now; -1: removed
    input_names: List[str]  # slots
    output_names: List[str]
    input_arg_names: List[str]  # variables
    output_arg_names: List[str]
    attr_names: List[str]

    def input(self, slot: str) -> List[str]:
        """Names in a slot; [] for an empty one, ValueError if unknown."""
    def output(self, slot: str) -> List[str]:
        """The same of an output."""
    def has_attr(self, name: str) -> bool: ...
    def attr(self, name: str) -> Any:
        """Its value; of a BLOCK attribute the Block. ValueError if absent."""
    def attr_type(self, name: str) -> int:
        """Paddle's AttrType: 0 int, 1 float, 2 string, 3 ints ..."""
    def all_attrs(self) -> Dict[str, Any]:
        """Every attribute by name; of blocks the index."""
    def set_attr(self, name: str, value: Any) -> None:
        """Converted to the type of the table, or of the value it has."""
    def remove_attr(self, name: str) -> None: ...
    def rename_input(self, old: str, new: str) -> None: ...
    def rename_output(self, old: str, new: str) -> None: ...
    def infer_shape(self) -> None:
        """Run the shape rule again."""
    def grads(self, no_grad: Names) -> List[Tuple[str, Dict[str, List[str]],
                                                  Dict[str, List[str]],
                                                  Dict[str, Any]]]:
        """Its gradient operators: type, inputs, outputs and attributes."""
    def to_string(self) -> str:
        """The OpDesc in protobuf's text format."""


class Variable:
    """A variable of a block. == and hash are by identity."""
    block: Block  # read only
    name: str  # read only: rename with Block.rename_var
    type: int
    dtype: int
    shape: Tuple[int, ...]
    lod_level: int
    persistable: bool
    stop_gradient: bool
    is_data: bool
    error_clip: Any
    op: Optional[Operator]  # read only: the last op of its block to write it
    is_parameter: bool  # read only; the rest is for parameters only
    trainable: bool
    learning_rate: float
    regularizer: Any
    gradient_clip: Any
    do_model_average: bool

    def to_string(self) -> str:
        """The VarDesc in protobuf's text format."""


# --- tables ------------------------------------------------------------------

class Argument(NamedTuple):
    name: str
    type: str  # "variable", "list of ints", ...: for documentation
    default: Optional[str]  # Python text: "1", "'relu'", "None"; None: required
    doc: str  # what it means


class Signature(NamedTuple):
    name: str
    doc: str
    returns: Optional[str]  # None: one variable; "a, b": several; "[a]": list
    arguments: Tuple[Argument, ...]


class Slot(NamedTuple):
    name: str
    duplicable: bool
    dispensable: bool
    intermediate: bool
    no_grad: bool


class Attribute(NamedTuple):
    name: str
    type: int  # AttrType
    required: bool
    default: Any


class OpProto(NamedTuple):
    type: str
    inputs: Tuple[Slot, ...]
    outputs: Tuple[Slot, ...]
    attrs: Tuple[Attribute, ...]
    differentiable: bool


def layer_table() -> Tuple[Signature, ...]:
    """Every layer, those that are one operator too."""


def optimizer_table() -> Tuple[Signature, ...]:
    """Every optimiser under Fluid's class name without "Optimizer"."""


def op_table() -> Tuple[OpProto, ...]:
    """Every operator that may stand in a program, gradients too."""


# --- building ----------------------------------------------------------------

class NameGenerator:
    """Counters by key: NameGenerator()("fc") is fc_0, then fc_1."""
    def __init__(self, prefix: str = "") -> None: ...
    def __call__(self, key: str) -> str: ...


def switch_main_program(program: Program) -> Program:
    """Where layers append from now on; gives back what it was."""


def switch_startup_program(program: Program) -> Program: ...


def main_program() -> Program: ...


def startup_program() -> Program: ...


def switch_names(names: NameGenerator) -> NameGenerator:
    """The generator from now on; gives back what it was."""


def generate_name(key: str) -> str:
    """By the generator of now."""


def switch_name_scope(scope: str) -> str:
    """op_namescope from now on ("/" at the start, "/a/b/" within)."""


def layer(name: str, arguments: Mapping[str, Any]) -> Any:
    """Append a layer to the current block of the main program. One variable,
    a tuple of several or a list, as the signature's `returns` says."""


def var_math(op: str, x: Variable, y: Union[Variable, float],
             reversed: bool = False) -> Variable:
    """x op y, op as in Python; reversed: y op x."""


class Switch:
    """with-blocks are Python's; this emits what they stand for."""
    def case(self, condition: Optional[Variable]) -> None:
        """Open a case (None: the default): its block becomes current."""
    def end(self) -> None:
        """Close the open case: the parent is current again."""


def create_parameter(layer: str, shape: Sequence[int], dtype: DType,
                     attr: Any = None, is_bias: bool = False,
                     default_initializer: Any = None) -> Optional[Variable]:
    """In main and startup, started there; None where attr says False."""


def initialize(var: Variable, initializer: Any) -> None:
    """Declare var in the startup program and put its start op there."""


def append_backward(loss: Variable,
                    parameter_list: Optional[Iterable[Names]] = None,
                    no_grad_set: Optional[Iterable[Names]] = None
                    ) -> List[Tuple[Variable, Optional[Variable]]]:
    """The gradient of loss, appended to its program."""


def gradients(targets: Sequence[Variable], inputs: Sequence[Variable],
              target_gradients: Optional[Sequence[Optional[Variable]]] = None,
              no_grad_set: Optional[Iterable[Names]] = None
              ) -> List[Optional[Variable]]: ...


def set_gradient_clip(clip: Any, program: Optional[Program] = None,
                      param_names: Optional[Sequence[str]] = None) -> None:
    """Of these parameters, or of all; None takes it away."""


ParamsGrads = List[Tuple[Variable, Optional[Variable]]]


def clip_grads(params_grads: "ParamsGrads") -> "ParamsGrads":
    """Append what clips gradients, as each parameter says."""


def decay_grads(params_grads: "ParamsGrads",
                regularization: Any = None) -> "ParamsGrads":
    """Append what adds weight decay; regularization is for parameters that
    have none of their own."""


class Optimizer:
    """An optimiser of the table, or one of the user's own.

    name "SGD" and so on with the arguments of its signature; or None with
    learning_rate, regularization and name, and `hooks`, an object whose
    methods C calls while it updates: create_accumulators(block, params),
    append_op(block, (param, grad)), finish(block, params_grads). Both: the
    hooks take the place of what the table says, and may ask for it. Programs:
    those of the loss, of now else."""
    def __new__(cls, name: Optional[str], arguments: Mapping[str, Any],
                hooks: Any = None) -> "Optimizer": ...
    rate: Optional[Variable]  # read only: None before it is made

    def minimize(self, loss: Variable, startup: Optional[Program] = None,
                 parameter_list: Optional[Iterable[Names]] = None,
                 no_grad_set: Optional[Iterable[Names]] = None
                 ) -> Tuple[List[Operator], ParamsGrads]: ...
    def backward(self, loss: Variable, startup: Optional[Program] = None,
                 parameter_list: Optional[Iterable[Names]] = None,
                 no_grad_set: Optional[Iterable[Names]] = None
                 ) -> ParamsGrads: ...
    def apply_gradients(self, params_grads: Sequence[Tuple[
            Variable, Optional[Variable]]],
                        startup: Optional[Program] = None
                        ) -> List[Operator]: ...
    def param_rate(self, param: Variable) -> Variable:
        """The learning rate of this parameter."""
    def accumulator(self, kind: str, param: Variable, fill_value: float = 0.0,
                    shape: Optional[Sequence[int]] = None) -> Variable:
        """A new one; ValueError if the parameter has one of that kind."""
    def get_accumulator(self, kind: str,
                        param: Variable) -> Optional[Variable]: ...
    def accumulators(self) -> Dict[str, Dict[str, Variable]]:
        """By kind and the name of the parameter."""
    def create_accumulators(self, params: Sequence[Variable]) -> None:
        """What the table says, for hooks; so the two below."""
    def append_op(self, param_and_grad: Tuple[Variable, Variable]
                  ) -> Operator: ...
    def finish(self, params_grads: ParamsGrads) -> None: ...


# --- values ------------------------------------------------------------------

class LoDTensor:
    """A tensor. LoDTensor() is one of its own; those of scopes show what the
    scope holds now. It has the buffer protocol: numpy.asarray(t) shares the
    memory of a tensor of its own (fetched ones too) and copies a scope's."""
    def set(self, array: Any, place: Any = None) -> None:
        """Copy any C-contiguous buffer in."""
    def share(self, array: Any) -> None:
        """Use the memory of an array without a copy; the array is kept. Not
        for a tensor of a scope."""
    def shape(self) -> List[int]: ...
    def lod(self) -> List[List[int]]:
        """Offsets."""
    def set_lod(self, lod: Sequence[Sequence[int]]) -> None:
        """ValueError unless it is one, and fits the rows."""
    def recursive_sequence_lengths(self) -> List[List[int]]: ...
    def set_recursive_sequence_lengths(
            self, lengths: Sequence[Sequence[int]]) -> None: ...
    def has_valid_recursive_sequence_lengths(self) -> bool: ...
    def _dtype(self) -> int: ...
    def _is_initialized(self) -> bool: ...
    def _set_dims(self, shape: Sequence[int]) -> None: ...
    def _alloc(self, dtype: DType) -> None:
        """Memory for its dims, zeroed."""
    def _clear(self) -> None: ...
    def _get_element(self, index: int) -> float: ...
    def _set_element(self, index: int, value: float) -> None: ...
    def __array__(self, dtype: Any = None) -> Any:
        """A numpy array; RuntimeError if nothing is in it."""


class SelectedRows:
    """Some rows of a tall matrix."""
    def __init__(self, rows: Sequence[int] = (), height: int = 0) -> None: ...
    def rows(self) -> List[int]: ...
    def set_rows(self, rows: Sequence[int]) -> None: ...
    def height(self) -> int: ...
    def set_height(self, height: int) -> None: ...
    def get_tensor(self) -> LoDTensor:
        """The values, a view: row i belongs to rows()[i]."""


class Value:
    """What a scope holds under a name."""
    name: str
    type: int  # kind; 0: nothing yet
    def get_tensor(self) -> LoDTensor:
        """A view; an empty value becomes a tensor. EnforceNotMet: another
        kind."""
    def get_selected_rows(self) -> SelectedRows: ...
    def get_lod_tensor_array(self) -> List[LoDTensor]: ...


class Scope:
    """Names and what they hold; views of it keep it alive."""
    def var(self, name: str) -> Value:
        """Here; made if new."""
    def find_var(self, name: str) -> Optional[Value]:
        """Here or in the parents."""
    def erase(self, names: Sequence[str]) -> None: ...
    def new_scope(self) -> "Scope":
        """A child; it ends with drop_kids or with its parent."""
    def drop_kids(self) -> None: ...
    def local_var_names(self) -> List[str]: ...


# --- running and saving ------------------------------------------------------

class ProfileRow(NamedTuple):
    type: str
    calls: int
    total_ns: int
    max_ns: int
    min_ns: int


class Executor:
    """Runs programs and keeps their plans. The interpreter lock is released
    in a run; two runs of one executor take turns."""
    def __new__(cls, no_fuse: bool = False) -> "Executor": ...
    def run(self, program: Program, scope: Scope, feed: Mapping[str, Any],
            fetch: Sequence[str]
            ) -> List[Union[LoDTensor, SelectedRows, None]]:
        """Feed LoDTensors or C-contiguous buffers, which are not copied; the
        results are fresh tensors or rows of their own, None where nothing
        has written the variable."""
    def run_places(self, program: Program, scope: Scope,
                   feeds: Sequence[Mapping[str, Any]], fetch: Sequence[str],
                   places: int, scale: int = 0
                   ) -> List[Union[LoDTensor, SelectedRows, None]]:
        """Run with each batch on several threads; gradients become one.
        feeds: one dict, whose rows are shared out, or one for each place, all
        with the same names in the same order. scale: 0 the mean of places, 1
        their sum, 2 as LOSS@GRAD is fed. Results are those of all places
        along axis 0."""
    def profile(self, on: bool) -> None:
        """On: start anew. Off: keep what there is."""
    def profile_rows(self) -> List[ProfileRow]:
        """By total time, the largest first."""
    def profile_trace(self) -> str:
        """JSON for chrome://tracing."""


class Dataset:
    """Files of examples, streamed or in memory."""
    size: int  # read only: examples in memory
    loaded: bool  # read only
    width: int  # read only: how many readers have work
    def set(self, slots: Sequence[Tuple[str, DType, bool, Sequence[int], bool]],
            files: Sequence[str], pipe: Optional[str] = None, batch: int = 0,
            threads: int = 0, bad_lines: int = 0) -> None:
        """A slot is (name, dtype, sparse, shape of a dense one, used)."""
    def load(self) -> None:
        """Start to load all files; threads go on."""
    def wait(self) -> None:
        """Until all is in memory, or has failed. Ctrl-C ends the load."""
    def release(self) -> None: ...
    def shuffle(self, seed: int) -> None: ...
    def open(self, ahead: int = 0) -> "Reader":
        """ahead: batches that a thread of its own has ready."""


class Reader:
    """Batches: lists of LoDTensors, one for each used slot."""
    def __iter__(self) -> "Reader": ...
    def __next__(self) -> List[LoDTensor]: ...
    def cancel(self) -> None:
        """From any thread: reading ends with KeyboardInterrupt."""
    def stats(self) -> Dict[str, int]:
        """fl_reader_stats of fluid.h."""
    def bad_lines(self) -> List[str]:
        """The first that were skipped, in words."""


def train(program: Program, scope: Scope, dataset: Dataset,
          print: Callable[[str], Any], stop: Callable[[], bool],
          fetch: Sequence[str], labels: Sequence[str], period: int = 0,
          threads: int = 0, infer: bool = False, debug: bool = False,
          epoch: int = 0) -> Dict[str, Any]:
    """One pass over the data (fl_train of fluid.h). print gets the text of
    what is fetched; stop is asked 20 times a second whether to end after the
    step. The result is fl_progress."""


def save_vars(program: Program, scope: Scope, dirname: str,
              filename: Optional[str] = None,
              names: Optional[Sequence[str]] = None) -> None:
    """Persistable variables of the program, or those named: a file each, or
    all in filename in the order of names."""


def load_vars(program: Program, scope: Scope, dirname: str,
              filename: Optional[str] = None,
              names: Optional[Sequence[str]] = None) -> None: ...


def save_checkpoint(program: Program, scope: Scope, dirname: str, most: int,
                    epoch: int, step: int) -> int:
    """fl_checkpoint_save of fluid.h; the serial number."""


def load_checkpoint(program: Program, scope: Scope, dirname: str
                    ) -> Optional[Tuple[int, int, int]]:
    """The newest: its serial number, epoch and step; None: there is none."""


def clean_checkpoints(dirname: str) -> None:
    """Remove every checkpoint of a folder."""


def save_inference_model(program: Program, scope: Scope, dirname: str,
                         feeds: Sequence[str], targets: Sequence[str],
                         model_filename: Optional[str] = None,
                         params_filename: Optional[str] = None,
                         program_only: bool = False,
                         whole: bool = False) -> None: ...


def load_inference_model(scope: Scope, dirname: str,
                         model_filename: Optional[str] = None,
                         params_filename: Optional[str] = None
                         ) -> Tuple[Program, List[str], List[str]]:
    """The program, the names of its feeds and of its fetches."""


def show(path: str) -> str:
    """A saved program or tensor in words."""


# --- many hosts --------------------------------------------------------------

class Cut:
    """A training program cut for servers and trainers. Its programs are given
    as copies."""
    endpoints: List[str]  # of the servers, in their order

    def trainer(self) -> Program: ...
    def trainer_startup(self) -> Program: ...
    def server(self, endpoint: str) -> Tuple[Program, Program]:
        """Its program and startup program. ValueError names the servers."""

    def set_up(self, scope: Scope) -> None:
        """Trainer 0 brings programs and the parameters of scope to servers
        that have none; others wait until it has."""


def transpile(main: Program, startup: Program, pservers: str, *,
              trainers: int = 1, trainer_id: int = 0,
              async_mode: bool = False, no_slices: bool = False,
              min_block_size: int = 8192,
              split_method: Optional[str] = None,
              dispatcher: Optional[Callable[[List[str]],
                                            Sequence[str]]] = None,
              runtime_split_send_recv: bool = False,
              enable_dc_asgd: bool = False, geo_sgd_mode: bool = False,
              params: Optional[Sequence[str]] = None,
              half_async: bool = False, sum_gradients: bool = False,
              dense_servers: int = 0, serial: int = 0) -> Cut:
    """Both programs stay as they are. dispatcher: from the names of all
    pieces to their endpoints; params: only these are the servers'."""


def collective(main: Program, startup: Program, trainers: str, rank: int, *,
               endpoint: Optional[str] = None, mode: Optional[str] = None,
               rings: int = 0, hierarchical: bool = False,
               inter_nranks: int = -1) -> Tuple[Program, Program]:
    """fl_collective of fluid.h: the two programs of a rank."""


def collective_grads(main: Program, ranks: int, scale: int, /
                     ) -> Optional[Program]:
    """A copy that averages its gradients over all ranks; None: it has none."""


def collective_broadcast(main: Program, /) -> Program:
    """What gives all ranks the values of rank 0."""


def wait_ports(endpoints: Sequence[str], limit: float = 0) -> None:
    """Until each takes connections; a line on stderr counts who is there.
    EnforceNotMet after `limit` seconds; 0: FLUID_START, or 600."""


def keep_log(name: str) -> None: ...
def log_line(text: str) -> None: ...
def serve(port: int, trainers: int) -> None:
    """Serve a job that its trainers bring, until it has ended."""

def misspelt() -> str:
    """Variables of the environment that look like misspelt ones, a sentence a
    line; "" if there are none."""

def role() -> Dict[str, Any]:
    """What the environment says this process is: role ("LOCAL", "TRAINER",
    "PSERVER"), trainer_id, trainers, endpoints, endpoint, notes."""


def fetch(program: Program, scope: Scope, /) -> None:
    """Copy all parameters of a trainer's program from its servers into scope.
    """


def start_communicator(program: Program) -> None:
    """Gradients that this asynchronous trainer's program sends gather from now
    on, and travel while it computes. ValueError: it is none, or they do."""


def stop_communicator(program: Program) -> None:
    """What has gathered is sent, and applied when it returns; then no more
    gathers. Nothing where none runs."""


def communicator_runs(program: Program) -> bool: ...


def exit_begin() -> None:
    """The script has come to its end: a kill after this and after leave()
    loses nothing, and the launcher will know."""


def leave(code: int = 0, why: str = "", limit: float = 0.0) -> None:
    """Tell the servers of all jobs that this trainer has completed (0), or
    failed and why. EnforceNotMet: a job failed before; or after `limit`
    seconds."""


def launch(command: Sequence[str], servers: int, trainers: int,
           endpoints: Optional[str] = None, start_port: int = 0,
           node_ip: Optional[str] = None,
           cluster_node_ips: Optional[str] = None,
           log_dir: Optional[str] = None, *, collective: bool = False,
           gpus: Optional[str] = None, max_restarts: int = ...,
           durability: Optional[str] = None) -> int:
    """Run the processes of a job on this host; what to exit with."""
