# SPDX-License-Identifier: Apache-2.0
"""paddle.fluid: programs of layers, trained and run by the C library.

    import paddle.fluid as fluid

Names that Fluid has and this version does not are listed in docs/compatibility.md.
"""
from .. import _absent, _needs

_needs.check()  # one sentence where numpy or a library is missing

from . import core, unique_name, framework
from . import param_attr, initializer, regularizer, clip
from . import layers, nets, backward, optimizer
from . import executor, io, data_feeder, lod_tensor, reader
from . import compiler, parallel_executor, profiler, average, metrics
from . import data_feed_desc, dataset, transpiler
from . import trainer, inferencer
from .backward import append_backward, gradients
from .compiler import BuildStrategy, CompiledProgram, ExecutionStrategy
from .core import (CPUPlace, CUDAPinnedPlace, CUDAPlace, LoDTensor,
                   LoDTensorArray, Scope, is_compiled_with_cuda)
from .data_feed_desc import DataFeedDesc
from .data_feeder import DataFeeder
from .dataset import DatasetFactory, InMemoryDataset, QueueDataset
from .executor import Executor, global_scope, scope_guard
from .framework import (Operator, Parameter, Program, Variable, cpu_places,
                        cuda_pinned_places, cuda_places, default_main_program,
                        default_startup_program, in_dygraph_mode, name_scope,
                        program_guard)
from .inferencer import Inferencer
from .layer_helper import LayerHelper
from .lod_tensor import create_lod_tensor, create_random_int_lodtensor
from .memory_opt import memory_optimize, release_memory
from .parallel_executor import ParallelExecutor
from .param_attr import ParamAttr, WeightNormParamAttr
from .trainer import (BeginEpochEvent, BeginStepEvent, CheckpointConfig,
                      EndEpochEvent, EndStepEvent, Trainer)
from .transpiler import (DistributeTranspiler, DistributeTranspilerConfig,
                         InferenceTranspiler)

Tensor = LoDTensor

_EAGER = [
    "average", "backward", "clip", "compiler", "core", "data_feed_desc",
    "data_feeder", "dataset", "executor", "framework", "inferencer",
    "initializer", "io", "layer_helper", "layers", "lod_tensor", "metrics", "nets",
    "optimizer", "parallel_executor", "param_attr", "profiler", "reader",
    "regularizer", "trainer", "transpiler", "unique_name"]
_LAZY = ["communicator", "contrib", "debugger", "default_scope_funcs",
         "distribute_lookup_table", "distribute_transpiler", "dygraph", "evaluator", "incubate",
         "install_check", "log_helper", "op", "proto"]  # modules loaded when named
__all__ = _EAGER + _LAZY + [
    "BeginEpochEvent", "BeginStepEvent", "BuildStrategy", "CPUPlace",
    "CUDAPinnedPlace", "CUDAPlace", "CheckpointConfig", "CompiledProgram",
    "DataFeedDesc", "DataFeeder", "DatasetFactory",
    "DistributeTranspiler", "DistributeTranspilerConfig",
    "EndEpochEvent", "EndStepEvent", "ExecutionStrategy", "Executor",
    "InMemoryDataset", "InferenceTranspiler", "Inferencer", "LayerHelper",
    "LoDTensor", "LoDTensorArray", "Operator",
    "ParallelExecutor", "ParamAttr", "Parameter", "Program", "QueueDataset",
    "Scope", "Tensor", "Trainer", "Variable", "WeightNormParamAttr",
    "append_backward", "cpu_places",
    "create_lod_tensor", "create_random_int_lodtensor", "cuda_pinned_places",
    "cuda_places", "default_main_program", "default_startup_program",
    "global_scope", "gradients", "in_dygraph_mode", "is_compiled_with_cuda",
    "memory_optimize", "name_scope", "program_guard", "release_memory",
    "scope_guard"]

_absent.answer_for(globals(), load=_LAZY)
