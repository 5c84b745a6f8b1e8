# SPDX-License-Identifier: Apache-2.0
"""fluid.incubate.data_generator: raw logs on stdin, lines of slots on stdout.

Write a subclass whose generate_sample(line) returns a function without
arguments that yields samples, and run it as a dataset's pipe command:

    class Clicks(MultiSlotDataGenerator):
        def generate_sample(self, line):
            def samples():
                label, *words = line.split()
                yield [("words", [int(w) for w in words]),
                       ("label", [int(label)])]
            return samples

    Clicks().run_from_stdin()

A sample is any iterable of (name, values) pairs, zip(names, lists) too.
"""
import sys

__all__ = ["MultiSlotDataGenerator", "MultiSlotStringDataGenerator"]


def _pairs(sample):
    """The pairs of a sample, checked as far as every line needs it."""
    try:
        pairs = list(sample)
    except TypeError:
        raise ValueError(
            "a sample is an iterable of (name, values) pairs, not %s"
            % type(sample).__name__) from None
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ValueError("%r in a sample is not a (name, values) pair"
                             % (pair,))
    return pairs


class DataGenerator:
    """What subclasses share: where lines come from and go to."""

    def __init__(self):
        self._proto_info = None  # [(name, type)] of the first line
        self.batch_size_ = 32
        self._line_limit = None

    def _set_line_limit(self, line_limit):
        if not isinstance(line_limit, int):
            raise ValueError("line_limit is %s, expected an int"
                             % type(line_limit))
        if line_limit < 1:
            raise ValueError("line_limit is %d, expected 1 or more"
                             % line_limit)
        self._line_limit = line_limit

    def set_batch(self, batch_size):
        """How many samples generate_batch gets at a time."""
        self.batch_size_ = batch_size

    def generate_sample(self, line):
        """A function that yields the samples of a line; yours."""
        raise NotImplementedError(
            "generate_sample(line) is to return a function that yields "
            "samples: [(name, [value, ...]), ...]")

    def generate_batch(self, samples):
        """A function that yields a batch's samples; replace it to change
        several at once."""
        def batch():
            yield from samples
        return batch

    def _gen_str(self, line):
        raise NotImplementedError(
            "subclass MultiSlotDataGenerator or MultiSlotStringDataGenerator")

    def _run(self, lines, out):
        samples = []
        for line in lines:
            for sample in self.generate_sample(line)():
                if sample is None:
                    continue
                samples.append(sample)
                if len(samples) == self.batch_size_:
                    self._write(samples, out)
                    samples = []
        if samples:
            self._write(samples, out)

    def _write(self, samples, out):
        for sample in self.generate_batch(samples)():
            out.write(self._gen_str(sample))

    def run_from_stdin(self):
        """Every line of stdin, to stdout."""
        self._run(sys.stdin, sys.stdout)

    def run_from_memory(self):
        """Samples that need no input: generate_sample(None), to stdout."""
        self._run([None], sys.stdout)


class MultiSlotDataGenerator(DataGenerator):
    """Samples of numbers: [(name, [number, ...]), ...]."""

    def _gen_str(self, line):
        pairs = _pairs(line)
        first = self._proto_info is None
        if first:
            self._proto_info = [(name, "uint64") for name, _ in pairs]
        elif len(pairs) != len(self._proto_info):
            raise ValueError("a sample has %d slots, the first had %d"
                             % (len(pairs), len(self._proto_info)))
        return " ".join(self._slot(i, name, values)
                        for i, (name, values) in enumerate(pairs)) + "\n"

    def _slot(self, i, name, values):
        if not isinstance(name, str):
            raise ValueError("the name of a slot is %r, expected a str"
                             % (name,))
        if name != self._proto_info[i][0]:
            raise ValueError("slot %d is called %r, in the first sample it "
                             "was %r" % (i, name, self._proto_info[i][0]))
        if not isinstance(values, (list, tuple)):
            raise ValueError("the values of slot %r are %s, expected a list"
                             % (name, type(values).__name__))
        if not values:
            raise ValueError("slot %r has no values: pad it with one in "
                             "generate_sample" % name)
        for value in values:
            if isinstance(value, float):
                self._proto_info[i] = (name, "float")
            elif not isinstance(value, int):
                self._check_number(i, name, value)
        return "%d %s" % (len(values), " ".join(map(str, values)))

    def _check_number(self, i, name, value):
        """One of another library, numpy's say."""
        if hasattr(value, "__index__"):
            return
        if not hasattr(value, "__float__") or isinstance(value, str):
            raise ValueError("slot %r has the value %r, expected a number"
                             % (name, value))
        self._proto_info[i] = (name, "float")


class MultiSlotStringDataGenerator(DataGenerator):
    """Samples that are text already: [(name, [str, ...]), ...]; nothing is
    looked at, which is faster."""

    def _gen_str(self, line):
        return " ".join(
            "%d %s" % (len(values), " ".join(values))
            for _, values in _pairs(line)) + "\n"
