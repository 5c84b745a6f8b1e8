# SPDX-License-Identifier: Apache-2.0
"""Names of PaddlePaddle that this version does not have, and what is said
when a script asks for one: as an attribute, in an import, or by a call.

ABSENT is the only list of them. docs/compatibility.md, the errors below and
the stand-ins of fluid.dygraph are made from it; a name that comes into being
leaves it. This module loads no other part of the package.
"""
import sys

PAGE = "docs/compatibility.md"

LATER = "is not in this version yet"
NEVER = "is left out on purpose"

_BATCHES = "feed arrays, or use fluid.layers.py_reader or fluid.io.PyReader"
_STATIC = ("there are only programs: build one with fluid.layers and run it "
           "with fluid.Executor")

# module, LATER or NEVER, what the names are for or what to use instead, names
ABSENT = (
    ("paddle", NEVER, "the v2 API has it: import paddle.v2 as paddle",
     "init infer"),
    ("paddle", NEVER, "scripts of version 1 are not read; use paddle.fluid "
     "or paddle.v2", "trainer trainer_config_helpers proto utils"),
    ("paddle.v2", NEVER, "there is no master process; give each trainer files "
     "of its own", "master"),
    ("paddle.v2", NEVER, "its place since Fluid 0.12 is paddle.fluid",
     "fluid"),
    ("paddle.v2.layer", LATER, "loops and recurrent networks",
     "lstmemory grumemory recurrent recurrent_group memory beam_search "
     "get_output lstm_step gru_step gru_step_naive StaticInput StaticInputV2 "
     "GeneratedInput GeneratedInputV2 BaseGeneratedInput "
     "BaseGeneratedInputV2 SubsequenceInput BeamInput "
     "cross_entropy_over_beam"),
    ("paddle.v2.layer", LATER, "sequence labelling and search",
     "crf crf_decoding ctc warp_ctc lambda_cost seq_slice sub_nested_seq"),
    ("paddle.v2.layer", LATER, "large output layers", "nce hsigmoid"),
    ("paddle.v2.layer", NEVER, "a layer's layer_type is a text, and all "
     "layers take layer_attr", "LayerType layer_support"),
    ("paddle.v2.layer", LATER, "pictures in three dimensions, regions, grids",
     "img_conv3d img_pool3d roi_pool priorbox multibox_loss "
     "detection_output scale_sub_region conv_operator"),
    ("paddle.v2.networks", LATER, "loops and recurrent networks",
     "simple_lstm lstmemory_group lstmemory_unit gru_unit gru_group "
     "simple_gru simple_gru2 bidirectional_gru bidirectional_lstm "
     "multi_head_attention"),
    ("paddle.v2.evaluator", LATER, "sequence labelling and search",
     "chunk ctc_error seqtext_printer"),
    ("paddle.v2.evaluator", LATER, "further evaluators",
     "detection_map gradient_printer maxframe_printer"),
    ("paddle.dataset", LATER, "further data sets",
     "flowers image mq2007 sentiment voc2012 wmt16"),
    ("paddle.fluid.contrib", LATER, "quantization, compression and other "
     "experiments", "decoder extend_optimizer layers memory_usage "
     "memory_usage_calc mixed_precision model_stat op_frequence "
     "op_freq_statistic quantize reader slim utils"),
    ("paddle.fluid", NEVER, "a dataset is described by fluid.DatasetFactory",
     "trainer_desc trainer_factory device_worker AsyncExecutor "
     "async_executor"),
    ("paddle.fluid", NEVER, "the library optimises its plans by itself",
     "ir"),
    ("paddle.fluid", NEVER, "use fluid.debugger.draw_block_graphviz",
     "net_drawer graphviz"),
    ("paddle.fluid", NEVER, "record files are not read; use paddle.reader",
     "recordio_writer"),
    ("paddle.fluid", NEVER, _STATIC, "Layer to_variable dygraph_grad_clip"),
    ("paddle.fluid", LATER, "names of Fluid 1.6 and after",
     "data embedding one_hot save load device_guard require_version "
     "set_flags get_flags load_op_library"),
    ("paddle.fluid.core", NEVER, "a dataset is described by "
     "fluid.DatasetFactory", "Dataset"),
    ("paddle.fluid.dygraph", NEVER, _STATIC,
     "BackwardStrategy BatchNorm BilinearTensorProduct Conv2D "
     "Conv2DTranspose Conv3D Conv3DTranspose CosineDecay DataParallel "
     "Embedding Env ExponentialDecay FC GRUUnit GroupNorm InverseTimeDecay "
     "Layer LayerNorm Linear NCE NaturalExpDecay NoamDecay PRelu "
     "ParallelEnv PiecewiseDecay PolynomialDecay Pool2D PyLayer "
     "SpectralNorm Tracer TreeConv guard load_dygraph load_persistables "
     "no_grad prepare_context save_dygraph save_persistables "
     "start_gperf_profiler stop_gperf_profiler to_variable"),
    ("paddle.fluid.incubate.fleet", NEVER,
     "files of HDFS are not read; mount them", "utils"),
    ("paddle.fluid.incubate.fleet.parameter_server", NEVER,
     "use fleet of .distribute_transpiler", "pslib"),
    ("paddle.fluid.io", LATER, "names of Fluid 1.6 and after",
     "DataLoader save load load_program_state set_program_state"),
    ("paddle.fluid.io", NEVER, "use paddle.batch and paddle.reader",
     "batch buffered cache chain compose firstn map_readers "
     "multiprocess_reader shuffle xmap_readers"),
    ("paddle.fluid.layers", LATER, "names of Fluid 1.6 and after",
     "mse_loss filter_by_instag"),
    ("paddle.fluid.layers", LATER, "loops and recurrent networks",
     "While IfElse ConditionalBlock DynamicRNN StaticRNN array_write "
     "array_read array_length create_array lod_rank_table max_sequence_len "
     "lod_tensor_to_array array_to_lod_tensor shrink_memory "
     "split_lod_tensor merge_lod_tensor reorder_lod_tensor_by_rank "
     "tensor_array_to_tensor dynamic_lstm dynamic_lstmp dynamic_gru "
     "gru_unit lstm_unit lstm"),
    ("paddle.fluid.layers", LATER, "sequence labelling and search",
     "linear_chain_crf crf_decoding chunk_eval beam_search "
     "beam_search_decode warpctc ctc_greedy_decoder edit_distance"),
    ("paddle.fluid.layers", LATER, "large output layers", "nce hsigmoid"),
    ("paddle.fluid.layers", LATER,
     "pictures in three dimensions, regions, grids",
     "conv3d pool3d adaptive_pool3d conv3d_transpose roi_pool roi_align "
     "psroi_pool random_crop affine_grid grid_sampler temporal_shift unfold "
     "deformable_conv deformable_roi_pooling fsp_matrix tree_conv"),
    ("paddle.fluid.layers", LATER, "detection of objects",
     "detection anchor_generator bipartite_match box_clip box_coder "
     "box_decoder_and_assign collect_fpn_proposals density_prior_box "
     "detection_map detection_output distribute_fpn_proposals "
     "generate_mask_labels generate_proposal_labels generate_proposals "
     "iou_similarity multi_box_head multiclass_nms polygon_box_transform "
     "prior_box retinanet_detection_output retinanet_target_assign "
     "roi_perspective_transform rpn_target_assign sigmoid_focal_loss "
     "ssd_loss target_assign yolo_box yolov3_loss"),
    ("paddle.fluid.layers", LATER, "distributions",
     "distributions Uniform Normal Categorical MultivariateNormalDiag"),
    ("paddle.fluid.layers", LATER, "rarer operators", "diag"),
    ("paddle.fluid.layers", LATER, "servers without the transpiler",
     "ListenAndServ Send Recv"),
    ("paddle.fluid.layers", NEVER, _BATCHES,
     "open_files open_recordio_file batch shuffle random_data_generator "
     "Preprocessor"),
    ("paddle.fluid.layers", NEVER, "use fluid.io.load_vars", "load"),
    ("paddle.fluid.layers", NEVER, "a program holds no Python functions",
     "py_func"),
    ("paddle.fluid.metrics", LATER, "detection of objects", "DetectionMAP"),
    ("paddle.fluid.evaluator", LATER, "detection of objects",
     "DetectionMAP"),
    ("paddle.fluid.transpiler.distribute_transpiler", NEVER, "the library "
     "decides how variables are cut; print_log of the config shows it",
     "VarBlock slice_variable"),
    ("paddle.fluid.transpiler.details", NEVER, "the library decides how "
     "variables are cut; print_log of the config shows it",
     "VarDistributed VarStruct VarsDistributed vars_distributed"),
    ("paddle.fluid.op", LATER, "loops and recurrent networks",
     "RecurrentOp DynamicRecurrentOp CondOp"),
    ("paddle.fluid.optimizer", LATER, "further optimizers",
     "Lamb LambOptimizer DGCMomentumOptimizer ModelAverage "
     "ExponentialMovingAverage PipelineOptimizer LookaheadOptimizer "
     "RecomputeOptimizer Dpsgd DpsgdOptimizer"),
)


def suggest(name, names, most=1):
    """Words that say which of `names` were meant, or nothing."""
    import difflib

    plain = {n.replace("_", "").lower(): n for n in names}
    near = difflib.get_close_matches(name, names, most, 0.6) or [
        plain[n] for n in difflib.get_close_matches(
            name.replace("_", "").lower(), plain, most, 0.7)]
    return "; did you mean %s?" % " or ".join(near) if near else ""


def sentence(module, name):
    """What is said of module.name, or None if it is not in the list. A row
    of a package holds for its modules too: fluid.layers.nn.While."""
    while module:
        for where, state, words, names in ABSENT:
            if where == module and name in names.split():
                return "%s.%s %s (%s); see %s" % (module, name, state, words,
                                                  PAGE)
        module = module.rpartition(".")[0]
        if module == "paddle":  # whose own rows are not for its packages
            break
    return None


def answer_for(scope, load=(), late=None, stand_ins=False):
    """Let a module answer for names that it does not have. `scope` is its
    globals(); the modules in `load` are imported when they are named, and
    `late` maps names to the neighbouring modules that define them. With
    `stand_ins` its absent names can be imported, and refuse to be called.

    An empty __path__ makes `from module import name` ask the finder below
    for the name; without one Python says only "cannot import name"."""
    module = scope["__name__"]

    def __getattr__(name):
        if name in load:
            import importlib
            return importlib.import_module("." + name, module)
        if late and name in late:
            import importlib
            home = importlib.import_module("." + late[name],
                                           scope["__package__"])
            return scope.setdefault(name, getattr(home, name))
        why = None if name.startswith("__") else sentence(module, name)
        raise AttributeError(  # without an object Python adds no hint itself
            why or "module '%s' has no attribute '%s'%s" % (
                module, name, suggest(name, scope["__all__"], most=2)),
            name=name, obj=None)

    def __dir__():
        return sorted(set(scope) | set(load) | set(late or ()))

    if stand_ins:
        scope.update((name, _stand_in(module, name))
                     for name in names_of(module))
    scope.update(__getattr__=__getattr__, __dir__=__dir__)
    scope.setdefault("__path__", [])


def _stand_in(module, name):
    """A class for module.name that can be imported and derived from, and
    says why it is absent when it is called."""
    why = sentence(module, name)

    def __new__(cls, *args, **kwargs):
        raise NotImplementedError(why)
    return type(name, (), {"__new__": __new__, "__doc__": why,
                           "__module__": module})


def names_of(module):
    """The absent names of a module, in order."""
    return [name for where, _, _, names in ABSENT if where == module
            for name in names.split()]


class _Finder:
    """Asked for a module after all other finders: a module of the list, or
    below one, is refused with its sentence."""

    @staticmethod
    def find_spec(fullname, path=None, target=None):
        parts = fullname.split(".")
        for i in range(1, len(parts) if parts[0] == "paddle" else 0):
            why = sentence(".".join(parts[:i]), parts[i])
            if why:
                # Without name=, which would let `from` drop the sentence.
                raise ModuleNotFoundError(why)
        return None


sys.meta_path.append(_Finder)
