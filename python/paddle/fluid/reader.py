# SPDX-License-Identifier: Apache-2.0
"""fluid.reader: batches that a thread makes ready while the last one is used.

    reader = fluid.layers.py_reader(64, [[-1, 784], [-1, 1]],
                                    ["float32", "int64"])
    image, label = fluid.layers.read_file(reader)
    ...
    reader.decorate_paddle_reader(paddle.batch(train(), 128))
    reader.start()
    try:
        while True:
            exe.run(fetch_list=[loss])
    except fluid.core.EOFException:
        reader.reset()

What is read becomes data variables of the program. A program knows the readers
that it was built with, and Executor.run asks them for what is not fed.
"""
import queue
import threading

from . import _fluid, core, unique_name
from .data_feeder import Column
from .framework import default_main_program

__all__ = ["PyReader"]

_END = object()  # marks the end of a pass


class _Pass:
    """One pass over a generator of feeds, on a thread of its own."""

    def __init__(self, generator, capacity):
        self._queue = queue.Queue(capacity)
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=self._fill, args=(generator,), daemon=True,
            name="fluid-reader")
        self._thread.start()

    def _fill(self, generator):
        try:
            for feed in generator():
                if not self._put(feed):
                    return
            self._put(_END)
        except BaseException as error:  # raised again where it is read
            self._put(error)

    def _put(self, item):
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=0.1)
                return True
            except queue.Full:
                pass
        return False

    def next(self):
        """The next feed; None at the end, also when it is asked again."""
        item = self._queue.get()
        if isinstance(item, dict):
            return item
        self._queue.put(item)
        if item is _END:
            return None
        raise item

    def stop(self):
        """End the thread; it may wait for room in the queue."""
        self._stopped.set()
        self._thread.join()


class _Source:
    """What all readers share: columns, a generator of feeds, a pass."""

    def __init__(self, name, capacity, columns):
        if not isinstance(capacity, int) or capacity < 1:
            raise ValueError("%s: capacity is %r, expected a number of "
                             "batches above 0" % (name, capacity))
        self.name, self._capacity = name, capacity
        self._columns = columns
        self._generator = self._pass = None

    # --- what is read ---

    def decorate_paddle_reader(self, reader, places=None):
        """Read batches, each a list of samples.

        Args:
            reader (callable): returns an iterable of lists of samples; a
                sample has one value for each variable.
            places (list of places): kept for scripts that have it.
        """
        def feeds():
            for samples in reader():
                samples = list(samples)
                self._check_width(samples)
                yield {c.name: c.tensor([s[i] for s in samples])
                       for i, c in enumerate(self._columns)}
        self._set(feeds, places)

    decorate_sample_list_generator = decorate_paddle_reader

    def decorate_tensor_provider(self, reader, places=None):
        """Read batches, each a list of arrays or LoDTensors.

        Args:
            reader (callable): returns an iterable of lists or dicts, with one
                array or LoDTensor for each variable.
            places (list of places): kept for scripts that have it.
        """
        def feeds():
            for batch in reader():
                if isinstance(batch, dict):
                    yield batch
                    continue
                self._check_width([batch])
                yield {c.name: c.value(v)
                       for c, v in zip(self._columns, batch)}
        self._set(feeds, places)

    decorate_batch_generator = decorate_tensor_provider

    def _check_width(self, samples):
        for sample in samples:
            if len(sample) != len(self._columns):
                raise ValueError(
                    "%s: a sample has %d values, but there are %d variables"
                    % (self.name, len(sample), len(self._columns)))

    def _set(self, generator, places):
        if self._pass is not None:
            raise RuntimeError("%s is being read; call reset() before it gets "
                               "another generator" % self.name)
        self._generator = generator

    # --- passes ---

    def start(self):
        """Begin a pass: a thread reads batches ahead."""
        if self._generator is None:
            raise RuntimeError(
                "%s has nothing to read; call decorate_paddle_reader or "
                "decorate_tensor_provider before start()" % self.name)
        if self._pass is not None:
            raise RuntimeError("%s was started already; call reset() when a "
                               "pass has ended" % self.name)
        self._pass = _Pass(self._generator, self._capacity)

    def reset(self):
        """End the pass, whether or not all was read; start() begins anew."""
        if self._pass is not None:
            self._pass.stop()
            self._pass = None

    def _next(self):
        """A feed for one place; EOFException at the end."""
        if self._pass is None:
            raise RuntimeError("%s is read by the program, but was not "
                               "started; call start() before Executor.run"
                               % self.name)
        feed = self._pass.next()
        if feed is None:
            raise core.EOFException("%s: there is no next data; call reset() "
                                    "before the next pass" % self.name)
        return feed


class ProgramReader(_Source):
    """What layers.py_reader returns."""

    def __init__(self, capacity, columns, name, variables=None):
        super().__init__(name, capacity, columns)
        self._variables = variables  # those it feeds; None: made when read

    def _read(self):
        """Its variables, in the default main program from now on."""
        program = default_main_program()
        if self not in program._readers:
            program._readers += (self,)
        if self._variables is None:
            self._variables = [
                _fluid.layer("data", dict(
                    name=c.name, shape=c.declared, dtype=c.dtype,
                    lod_level=c.level, append_batch_size=False))
                for c in self._columns]
        return self._variables


class PyReader(_Source):
    """Feeds from a generator, read ahead by a thread.

    With iterable=True a loop goes over the feeds; otherwise the program reads
    them between start() and reset(), as with layers.py_reader.

    Args:
        feed_list (list of Variable): what is fed, in the order of samples.
        capacity (int): how many batches are kept ready.
        use_double_buffer (bool): accepted; batches are always read ahead.
        iterable (bool): whether `for feed in reader():` yields feeds.
        return_list (bool): yield lists of values in place of dicts.
    """

    def __init__(self, feed_list=None, capacity=None, use_double_buffer=True,
                 iterable=False, return_list=False):
        if not feed_list:
            raise ValueError("PyReader: feed_list must name the variables")
        super().__init__(unique_name.generate("py_reader"),
                         64 if capacity is None else capacity,
                         [Column.of(v) for v in feed_list])
        self._iterable, self._lists = iterable, return_list
        self._places = 1
        if not iterable:
            program = feed_list[0].block.program
            program._readers += (self,)

    def decorate_sample_generator(self, sample_generator, batch_size,
                                  drop_last=True, places=None):
        """Read samples and make batches of them.

        Args:
            sample_generator (callable): returns an iterable of samples, with
                one value for each variable.
            batch_size (int): samples of a batch.
            drop_last (bool): leave out the rest that fills no batch.
            places (list of places): one batch for each of them is yielded.
        """
        from ..batch import batch
        self.decorate_paddle_reader(
            batch(lambda: (s if isinstance(s, (list, tuple)) else (s,)
                           for s in sample_generator()),
                  batch_size, drop_last), places)

    def _set(self, generator, places):
        super()._set(generator, places)
        if places is not None:
            self._places = len(places) if isinstance(
                places, (list, tuple)) else 1

    def start(self):
        """Begin a pass; only where the program reads (iterable=False)."""
        if self._iterable:
            raise RuntimeError("%s is iterable: write `for feed in reader():` "
                               "in place of start()" % self.name)
        super().start()

    def __call__(self):
        """An iterator over the feeds of one pass; each is a list with a dict
        (or a list, with return_list) for each place."""
        if not self._iterable:
            raise RuntimeError("%s is not iterable: give iterable=True, or "
                               "call start()" % self.name)
        self.reset()
        super().start()
        return self._feeds(self._pass)

    __iter__ = __call__

    def _feeds(self, one_pass):
        try:
            while True:
                group = []
                while len(group) < self._places:
                    feed = one_pass.next()
                    if feed is None:
                        return
                    group.append(feed)
                yield [list(f.values()) for f in group] if self._lists \
                    else group
        finally:
            one_pass.stop()
            if self._pass is one_pass:
                self._pass = None


def fill(program, feed, places=1):
    """`feed` with what the readers of a program add to it: a dict, or a list
    of one for each place. All readers of a program end together."""
    given = feed[0] if isinstance(feed, (list, tuple)) and feed else feed
    if given and any(c.name in given for r in program._readers
                     for c in r._columns):
        return feed  # the caller feeds the variables itself
    feeds = [dict(given or {}) for _ in range(places)]
    for one in feeds:
        for reader in program._readers:
            one.update(reader._next())
    return feeds if places > 1 else feeds[0]


# --- fluid.layers.io ---------------------------------------------------------

def py_reader(capacity, shapes, dtypes, lod_levels=None, name=None,
              use_double_buffer=True):
    """A reader whose batches the program takes by itself.

    Args:
        capacity (int): how many batches are kept ready.
        shapes (list of lists): the shape of each variable, with the batch's
            dimension, -1, in front.
        dtypes (list of str): the element type of each variable.
        lod_levels (list of int): LoD levels of each variable; 0 by default.
        name (str): the reader's name; made if it is not given.
        use_double_buffer (bool): accepted; batches are always read ahead.

    Returns:
        A reader with start(), reset() and decorate_paddle_reader(); give it
        to read_file for its variables.
    """
    name = name or unique_name.generate("py_reader")
    levels = [0] * len(shapes) if lod_levels is None else lod_levels
    if not len(shapes) == len(dtypes) == len(levels):
        raise ValueError("py_reader: %d shapes, %d dtypes and %d lod_levels; "
                         "there must be one of each for every variable"
                         % (len(shapes), len(dtypes), len(levels)))
    columns = [Column("%s.tmp_%d" % (name, i), shape, dtype, level)
               for i, (shape, dtype, level) in enumerate(
                   zip(shapes, dtypes, levels))]
    return ProgramReader(capacity, columns, name)


def create_py_reader_by_data(capacity, feed_list, name=None,
                             use_double_buffer=True):
    """A py_reader for variables that layers.data has made.

    Args:
        capacity (int): how many batches are kept ready.
        feed_list (list of Variable): what is read, in the order of samples.
        name (str): the reader's name; made if it is not given.
        use_double_buffer (bool): accepted; batches are always read ahead.

    Returns:
        A reader, as py_reader makes it; read_file returns feed_list.
    """
    return ProgramReader(capacity, [Column.of(v) for v in feed_list],
                         name or unique_name.generate("py_reader"),
                         list(feed_list))


def double_buffer(reader, place=None, name=None):
    """The reader itself: batches are always read ahead.

    Args:
        reader: what py_reader returned.
        place (CPUPlace): accepted; there is one place.
        name (str): accepted and not used.

    Returns:
        The reader.
    """
    return reader


def read_file(reader):
    """The variables that a reader fills in every run.

    Args:
        reader: what py_reader or create_py_reader_by_data returned.

    Returns:
        A Variable, or a list of them where the reader has several.
    """
    if not isinstance(reader, ProgramReader):
        raise TypeError("read_file takes what py_reader returns, not %s"
                        % type(reader).__name__)
    variables = reader._read()
    return variables[0] if len(variables) == 1 else list(variables)
