# SPDX-License-Identifier: Apache-2.0
"""fluid.lod_tensor: tensors of sequences from arrays and lists."""
import numpy as np

from . import core

__all__ = ["create_lod_tensor", "create_random_int_lodtensor"]


def create_lod_tensor(data, recursive_seq_lens, place):
    """Make a LoDTensor of sequences.

    Args:
        data (numpy.ndarray, LoDTensor or list): rows, or a list of sequences
            of numbers.
        recursive_seq_lens (list of lists): the lengths of the sequences of
            each level.
        place (CPUPlace): where it is kept.

    Returns:
        A LoDTensor.
    """
    core.check_place(place)
    if isinstance(data, list):
        lengths = [len(seq) for seq in data]
        assert [lengths] == recursive_seq_lens, (
            "data and recursive_seq_lens do not match: the sequences have "
            "the lengths %s, recursive_seq_lens is %s"
            % ([lengths], recursive_seq_lens))
        flat = np.concatenate(data, axis=0)
        data = flat.reshape(len(flat), 1)
    elif not isinstance(data, (np.ndarray, core.LoDTensor)):
        raise TypeError("data should be either a LoDTensor, a Numpy array or "
                        "a list, not %s" % type(data).__name__)
    tensor = core.LoDTensor()
    tensor.set(np.ascontiguousarray(data), place)
    tensor.set_recursive_sequence_lengths(recursive_seq_lens)
    assert tensor.has_valid_recursive_sequence_lengths(), (
        "the lengths %s do not fit the shape %s"
        % (recursive_seq_lens, tensor.shape()))
    return tensor


def create_random_int_lodtensor(recursive_seq_lens, base_shape, place, low,
                                high):
    """Make a LoDTensor of random integers.

    Args:
        recursive_seq_lens (list of lists): the lengths of the sequences of
            each level.
        base_shape (list of int): the shape of an element.
        place (CPUPlace): where it is kept.
        low (int): the lower bound.
        high (int): the upper bound, which is included.

    Returns:
        A LoDTensor.
    """
    assert isinstance(base_shape, list), "base_shape should be a list"
    shape = [sum(recursive_seq_lens[-1])] + base_shape
    data = np.random.randint(low, high + 1, shape, dtype="int64")
    return create_lod_tensor(data, recursive_seq_lens, place)
