# SPDX-License-Identifier: Apache-2.0
"""Layers over sequences: rows of all of them lie under each other."""
from ... import fluid
from .. import activation, pooling as poolings
from ..config_base import layer

_F = fluid.layers


class AggregateLevel:
    """What one row is made of: a sequence, or each sub-sequence."""
    TO_NO_SEQUENCE = EACH_TIMESTEP = "non-seq"
    TO_SEQUENCE = EACH_SEQUENCE = "seq"


class ExpandLevel:
    """What is repeated: a row, or a sequence."""
    FROM_NO_SEQUENCE = FROM_TIMESTEP = "non-seq"
    FROM_SEQUENCE = "seq"


def _check(me, input, stride=-1):
    if input.var.lod_level == 0:
        raise ValueError("layer %s: its input %s is not a sequence"
                         % (me.name, input.name))
    if stride != -1:
        raise NotImplementedError("layer %s: stride is %r; windows over "
                                  "sequences are not in this version"
                                  % (me.name, stride))


def _pool(me, input, kind, agg_level, stride=-1):
    _check(me, input, stride)
    out = _F.sequence_pool(input.rows, kind)
    inner = agg_level == AggregateLevel.TO_SEQUENCE
    if inner and input.var.lod_level < 2:
        raise ValueError("layer %s: agg_level is TO_SEQUENCE, but its input "
                         "%s has no sub-sequences" % (me.name, input.name))
    if input.var.lod_level < 2 or inner:
        return out
    if kind in ("average", "sqrt"):
        raise NotImplementedError(
            "layer %s: the mean over sub-sequences is not in this version; "
            "pool to sequences first" % me.name)
    return _F.sequence_pool(out, kind)


@layer("seq_pooling")
def pooling(me, input, pooling_type=None, agg_level="non-seq", stride=-1,
            bias_attr=None):
    """One row for each sequence; with TO_SEQUENCE for each sub-sequence."""
    kind = poolings.Max() if pooling_type is None else pooling_type
    if getattr(kind, "output_max_index", None):
        raise NotImplementedError("layer %s: output_max_index is not in this "
                                  "version" % me.name)
    out = _pool(me, input, kind.sequence, agg_level, stride)
    return me.add_bias(out, bias_attr, default=False)


@layer("last_seq")
def last_seq(me, input, agg_level="non-seq", stride=-1):
    """The last row of each sequence."""
    return _pool(me, input, "last", agg_level, stride)


@layer("first_seq")
def first_seq(me, input, agg_level="non-seq", stride=-1):
    """The first row of each sequence."""
    return _pool(me, input, "first", agg_level, stride)


@layer("expand_layer")
def expand(me, input, expand_as, bias_attr=None, expand_level="non-seq"):
    """Row i as often as sequence i of expand_as is long; FROM_SEQUENCE:
    sequence i as often as expand_as has sub-sequences."""
    _check(me, expand_as)
    if expand_level == ExpandLevel.FROM_SEQUENCE:
        out = _F.sequence_expand(input.rows, expand_as.rows, ref_level=0)
    else:
        out = _F.sequence_expand_as(input.rows, expand_as.rows)
    return me.add_bias(out, bias_attr, default=False)


@layer("seqconcat", act=activation.Linear)
def seq_concat(me, a, b, bias_attr=None):
    """Sequence i of a, then that of b."""
    out = _F.sequence_concat([a.rows, b.rows])
    return me.add_bias(out, bias_attr, default=False)


@layer("seqreshape", act=activation.Linear)
def seq_reshape(me, input, reshape_size, bias_attr=None):
    """Rows of another width; each sequence keeps its numbers."""
    out = _F.sequence_reshape(input.rows, reshape_size)
    return me.add_bias(out, bias_attr, default=False)


@layer("sub_seq", act=activation.Linear)
def sub_seq(me, input, offsets, sizes, bias_attr=None):
    """sizes[i] rows of sequence i, from its row offsets[i] on."""
    _check(me, input)
    out = _F.sequence_slice(input.rows, offsets.var, sizes.var)
    return me.add_bias(out, bias_attr, default=False)


@layer("kmax_seq_score_layer")
def kmax_seq_score(me, input, beam_size=1):
    """Where the beam_size largest rows of each sequence of one column stand,
    largest first. Sequences are padded with very low scores: a place beyond
    the end of its sequence means that there are fewer."""
    _check(me, input)
    low = _F.fill_constant([1], "float32", -3.0e38)
    padded, _ = _F.sequence_pad(input.rows, low)
    _, where = _F.topk(_F.reshape(padded, [0, -1]), k=beam_size)
    return where


@layer("row_conv_layer", act=activation.Linear)
def row_conv(me, input, context_len, param_attr=None):
    """Each row with those after it, context_len in all, weighed column by
    column."""
    _check(me, input)
    dims = [context_len, input.size]
    return _F.row_conv(input.rows, future_context_size=context_len - 1,
                       param_attr=me.weight(0, dims, param_attr))
