# SPDX-License-Identifier: Apache-2.0
"""paddle.v2.data_feeder: samples as what a Fluid program is fed."""
from ..fluid.data_feeder import Column
from .data_type import DataType

__all__ = ["DataFeeder"]


def default_feeding(data_types):
    """Columns in the order of the inputs."""
    return {name: i for i, (name, _) in enumerate(data_types)}


def _positions(data_types, feeding):
    """Input: its column."""
    if feeding is None:
        return default_feeding(data_types)
    if not isinstance(feeding, dict):
        feeding = {name: i for i, name in enumerate(feeding)}
    for name, _ in data_types:
        if name not in feeding:
            raise KeyError("feeding names no column for the data layer %s; it "
                           "names %s" % (name, ", ".join(sorted(feeding))))
    return feeding


def _nested(cells, depth, function):
    """function of what lies `depth` lists deep."""
    if depth == 0:
        return function(cells)
    return [_nested(c, depth - 1, function) for c in cells]


class DataFeeder:
    """Turns lists of samples into feeds. data_types: [(name, InputType)];
    feeding: which column each is, as a dict or a list of names."""

    def __init__(self, data_types, feeding=None, program=None):
        self._columns = []
        positions = _positions(data_types, feeding)
        block = program.global_block()
        for name, kind in data_types:
            self._columns.append((name, positions[name], kind,
                                  Column.of(block.var(name))))
            if kind.type == DataType.SparseValue:
                values = Column.of(block.var(name + ".values"))
                self._columns.append((name + ".values", positions[name], kind,
                                      values))

    def __call__(self, samples):
        """The feed of a list of samples."""
        feed = {}
        for name, position, kind, column in self._columns:
            try:
                cells = [sample[position] for sample in samples]
            except (IndexError, TypeError, KeyError):
                raise self._short(samples, name, position) from None
            if kind.type == DataType.SparseValue:
                part = 1 if name.endswith(".values") else 0
                cells = _nested(cells, kind.seq_type + 2,
                                lambda pair, part=part: pair[part])
            try:
                feed[name] = column.tensor(cells)
            except (TypeError, ValueError) as e:
                raise ValueError("input %s is %r, but the samples hold "
                                 "something else: %s" % (name, kind, e)
                                 ) from None
        return feed

    feed = convert = __call__

    @staticmethod
    def _short(samples, name, position):
        bad = next(s for s in samples if not hasattr(s, "__len__")
                   or len(s) <= position)
        return ValueError("input %s is column %d of a sample, but a sample is "
                          "%.80r" % (name, position, bad))
