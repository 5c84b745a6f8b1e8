# SPDX-License-Identifier: Apache-2.0
"""fluid.data_feeder: samples of a reader as the tensors a program is fed."""
import numpy as np

from . import _fluid, core
from .framework import _cpu_num, default_main_program

__all__ = ["DataFeeder"]


def _flatten(data, lengths, level, out):
    """Nested lists flat, with the lengths of their levels."""
    if level == 0:
        out.append(data)
        return
    lengths[0].append(len(data))
    if level == 1:
        out.extend(data)
        return
    for part in data:
        _flatten(part, lengths[1:], level - 1, out)


class Column:
    """The feed of one variable: its values in all samples."""

    def __init__(self, name, shape, dtype, lod_level):
        self.name, self.level = name, lod_level
        self.dtype = core.dtype_to_numpy(core.dtype_from_numpy(dtype))
        self.declared = [-1 if d is None else d for d in shape]
        self.shape = self.declared if sum(
            d < 0 for d in self.declared) < 2 else None

    @classmethod
    def of(cls, var):
        """The column of a variable."""
        return cls(var.name, var.shape, var.dtype, var.lod_level)

    def value(self, value):
        """A whole batch: a tensor as it is, all else as an array."""
        return value if isinstance(value, core.LoDTensor) else np.asarray(
            value, self.dtype)

    def tensor(self, samples):
        """The values stacked, or end to end with their lengths."""
        lengths = [[] for _ in range(self.level)]
        rows = samples
        if self.level:
            rows = []
            for sample in samples:
                _flatten(sample, lengths, self.level, rows)
        array = np.array(rows, dtype=self.dtype)
        tensor = core.LoDTensor()
        tensor.share(self._shaped(array))
        if self.level:
            tensor.set_recursive_sequence_lengths(lengths)
        return tensor

    def _shaped(self, array):
        if self.shape is None or array.ndim == len(self.shape):
            return array
        try:
            return array.reshape(self.shape)
        except ValueError:
            raise ValueError("Reshape error. %s is declared with the shape "
                             "%s, but the samples have %s" % (
                                 self.name, self.shape, list(array.shape))
                             ) from None


class DataFeeder:
    """Turns minibatches of samples into feeds for Executor.run.

    Args:
        feed_list (list): variables or names, in the order of the values of a
            sample.
        place (CPUPlace): where the program runs.
        program (Program): where names are looked up; None: the default main
            program.
    """

    def __init__(self, feed_list, place, program=None):
        if program is None:
            program = default_main_program()
        self.place = core.check_place(place)
        self.feed_vars = []
        for var in feed_list:
            if isinstance(var, str):
                var = program.block(0).var(var)
            if not isinstance(var, _fluid.Variable):
                raise TypeError("Feed list should contain a list of variable")
            self.feed_vars.append(var)
        self.feed_names = [v.name for v in self.feed_vars]

    def feed(self, iterable):
        """A dict of tensors; each sample has one value for each variable."""
        samples = list(iterable)
        count = len(self.feed_vars)
        for sample in samples:
            assert len(sample) == count, (
                "The number of fields in data (%d) does not match "
                "len(feed_list) (%d)" % (len(sample), count))
        return {v.name: Column.of(v).tensor([s[i] for s in samples])
                for i, v in enumerate(self.feed_vars)}

    def feed_parallel(self, iterable, num_places=None):
        """A feed for each place; as many minibatches as places are given."""
        batches, places = list(iterable), self._places(num_places)
        if len(batches) != places:
            raise ValueError(
                "feed_parallel takes multiple mini-batches. Each mini-batch "
                "will be feed on each device. The number of devices and "
                "number of mini-batches must be same: %d and %d."
                % (places, len(batches)))
        return (self.feed(batch) for batch in batches)

    @staticmethod
    def _places(num_places):
        return _cpu_num() if num_places is None else int(num_places)

    def decorate_reader(self, reader, multi_devices, num_places=None,
                        drop_last=True):
        """A reader of feeds, or of lists of one feed for each place."""
        def single():
            return (self.feed(batch) for batch in reader())

        def several():
            count, group = self._places(num_places), []
            for batch in reader():
                group.append(batch)
                if len(group) == count:
                    yield list(self.feed_parallel(group, count))
                    group = []
            if group and not drop_last:
                raise ValueError(
                    "%d minibatches are left for %d places, and drop_last is "
                    "False; set drop_last=True to leave them out"
                    % (len(group), count))
        return several if multi_devices else single
