"""What to say of a name that is not there.

Fluid has more names than this version; LATER lists those that scripts ask
for, by module and subject, and shrinks as they come. Every other name gets
its nearest neighbours.
"""
from .core import suggest

# module, what its names are for, the names
LATER = (
    ("paddle.fluid", "training from files", "trainer_desc"),
    ("paddle.fluid", "the Trainer API",
     "Trainer Inferencer BeginEpochEvent EndEpochEvent BeginStepEvent "
     "EndStepEvent CheckpointConfig contrib"),
    ("paddle.fluid.layers", "loops and recurrent networks",
     "While IfElse ConditionalBlock DynamicRNN StaticRNN array_write "
     "array_read array_length create_array lod_rank_table max_sequence_len "
     "lod_tensor_to_array array_to_lod_tensor shrink_memory "
     "reorder_lod_tensor_by_rank dynamic_lstm dynamic_lstmp dynamic_gru "
     "gru_unit lstm_unit lstm"),
    ("paddle.fluid.layers", "sequence labelling and search",
     "linear_chain_crf crf_decoding chunk_eval beam_search "
     "beam_search_decode warpctc ctc_greedy_decoder edit_distance"),
    ("paddle.fluid.layers", "large output layers",
     "nce hsigmoid"),
    ("paddle.fluid.layers", "pictures in three dimensions, regions, grids",
     "conv3d pool3d adaptive_pool3d conv3d_transpose roi_pool roi_align "
     "psroi_pool random_crop affine_grid grid_sampler temporal_shift unfold "
     "deformable_conv deformable_roi_pooling fsp_matrix"),
    ("paddle.fluid.layers", "rarer operators",
     "tensor_array_to_tensor"),
    ("paddle.fluid.layers", "distributed training",
     "ListenAndServ Send Recv collective"),
)

# module, what to do instead, the names
NEVER = (
    ("paddle.fluid", "programs are static here, so there is no dygraph",
     "Layer to_variable"),
    ("paddle.fluid", "record files are not read; use paddle.reader",
     "recordio_writer"),
    ("paddle.fluid.layers", "batches are fed: see fluid.DataFeeder",
     "py_reader create_py_reader_by_data open_files open_recordio_file "
     "read_file double_buffer batch shuffle random_data_generator load"),
    ("paddle.fluid.io", "batches are fed: see fluid.DataFeeder", "PyReader"),
    ("paddle.fluid.layers", "a program holds no Python functions", "py_func"),
    ("paddle.fluid.optimizer",
     "it is not supported; the optimizers are in fluid.optimizer.__all__",
     "Lamb LambOptimizer DGCMomentumOptimizer ModelAverage "
     "ExponentialMovingAverage PipelineOptimizer LookaheadOptimizer"),
)


def _why(module, name):
    for where, subject, names in LATER:
        if where == module and name in names.split():
            return "is not in this version yet (%s)" % subject
    for where, instead, names in NEVER:
        if where == module and name in names.split():
            return "does not exist: %s" % instead
    return None


def absent(module, name, names):
    """The AttributeError for module.name, where `names` are there."""
    why = _why(module, name)
    if why:
        return AttributeError("%s.%s %s" % (module, name, why))
    return AttributeError("module '%s' has no attribute '%s'%s" % (
        module, name, suggest(name, names, most=2)))
