# SPDX-License-Identifier: Apache-2.0
"""paddle.v2.data_type: what a column of the data holds."""

__all__ = ["InputType", "DataType", "SequenceType"]


class DataType:
    """What a cell is made of."""
    Dense, SparseNonValue, SparseValue, Index = range(4)


class SequenceType:
    """How cells are nested."""
    NO_SEQUENCE, SEQUENCE, SUB_SEQUENCE = range(3)


class InputType:
    """dim: the numbers of a row, or of the values an id may have; seq_type: 0
    for one row, 1 for a sequence, 2 for a sequence of sequences; type: dense,
    ids that are 1, (id, value) pairs, or an id."""

    def __init__(self, dim, seq_type, type):
        self.dim, self.seq_type, self.type = dim, seq_type, type

    @property
    def sparse(self):
        return self.type in (DataType.SparseNonValue, DataType.SparseValue)

    def __eq__(self, other):
        return isinstance(other, InputType) and vars(self) == vars(other)

    __hash__ = None

    def __repr__(self):
        return "InputType(dim=%r, seq_type=%r, type=%r)" % (
            self.dim, self.seq_type, self.type)


def _constructor(name, kind, nested, what):
    def plain(dim, seq_type=SequenceType.NO_SEQUENCE):
        return InputType(dim, seq_type, kind)

    def sequence(dim):
        return InputType(dim, nested, kind)

    made = sequence if nested else plain
    made.__name__ = made.__qualname__ = name
    made.__doc__ = "%s%s." % (("", "A sequence: ", "A sequence of sequences: ")
                              [nested], what)
    return made


# name: type, what a cell is
_TABLE = {
    "dense_vector": (DataType.Dense, "dim numbers"),
    "sparse_binary_vector": (DataType.SparseNonValue,
                             "the ids, below dim, of elements that are 1"),
    "sparse_float_vector": (DataType.SparseValue,
                            "(id, value) of elements that are not 0"),
    "integer_value": (DataType.Index, "one id below dim"),
}
for _name, (_kind, _what) in _TABLE.items():
    for _nested, _suffix in enumerate(("", "_sequence", "_sub_sequence")):
        globals()[_name + _suffix] = _constructor(_name + _suffix, _kind,
                                                  _nested, _what)
        __all__.append(_name + _suffix)
dense_array = _constructor("dense_array", DataType.Dense, 0,
                           "an array of dim numbers, of any shape")
sparse_non_value_slot = globals()["sparse_binary_vector"]
sparse_value_slot = globals()["sparse_float_vector"]
__all__ += ["dense_array", "sparse_non_value_slot", "sparse_value_slot"]
