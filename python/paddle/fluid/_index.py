# SPDX-License-Identifier: Apache-2.0
"""var[...]: indices and slices of a variable as layers."""
import operator

from . import _fluid

_END = 2**31 - 1  # past every end


def _full(key, rank, name):
    """One index for every leading dimension that is named."""
    key = list(key) if isinstance(key, tuple) else [key]
    dots = [i for i, k in enumerate(key) if k is Ellipsis]
    if len(dots) > 1:
        raise IndexError("%s: an index can only have one Ellipsis" % name)
    if dots:
        at = dots[0]
        key[at:at + 1] = [slice(None)] * (rank - len(key) + 1)
    if len(key) > rank:
        raise IndexError("%s: %d indices for %d dimensions"
                         % (name, len(key), rank))
    return key


def _bounds(key, size, name):
    """The start and end of one index, and whether it counts backwards."""
    if not isinstance(key, slice):
        try:
            at = operator.index(key)
        except TypeError:
            raise TypeError("%s: an index is an int or a slice, not %s"
                            % (name, type(key).__name__)) from None
        if 0 <= size <= at or (size >= 0 and at < -size):
            raise IndexError("%s: index %d is out of range, the dimension has "
                             "%d elements" % (name, at, size))
        return at, at + 1 if at != -1 else _END, False
    if key.step not in (None, 1, -1):
        raise ValueError("%s: the step of a slice is %s, not 1 or -1"
                         % (name, key.step))
    if key.step != -1:
        return (0 if key.start is None else key.start,
                _END if key.stop is None else key.stop, False)
    # What was at i is at -(i + 1) once the dimension is reversed.
    return (0 if key.start is None else -(key.start + 1),
            _END if key.stop is None else -(key.stop + 1), True)


def get_item(var, key):
    """What numpy would give: an index drops its dimension, a slice keeps it;
    where none would be left, one of length 1 stays."""
    keys = _full(key, len(var.shape), var.name)
    axes, starts, ends, backwards = [], [], [], []
    for axis, k in enumerate(keys):
        if isinstance(k, slice) and k == slice(None):
            continue
        start, end, reverse = _bounds(k, var.shape[axis], var.name)
        axes.append(axis)
        starts.append(start)
        ends.append(end)
        if reverse:
            backwards.append(axis)
    out = var
    if backwards:
        out = _fluid.layer("reverse", dict(x=out, axis=backwards))
    if axes:
        out = _fluid.layer("slice", dict(input=out, axes=axes, starts=starts,
                                         ends=ends))
    drop = [i for i, k in enumerate(keys) if not isinstance(k, slice)]
    if len(drop) == len(var.shape):
        drop = drop[1:]
    if drop:
        out = _fluid.layer("squeeze", dict(input=out, axes=drop))
    return out
