# SPDX-License-Identifier: Apache-2.0
"""paddle.reader decorators: readers in, readers out.

Those that work ahead use threads (samples are mostly made by numpy and by
files, which release the interpreter lock). An error in a reader or mapper is
raised where the samples are consumed, and a consumer that stops early ends
the threads and processes behind it.
"""
import collections
import concurrent.futures
import itertools
import os
import queue
import random
import subprocess
import threading
import zlib

from . import _processes

__all__ = ["cache", "map_readers", "buffered", "compose", "chain", "shuffle",
           "ComposeNotAligned", "firstn", "xmap_readers", "PipeReader",
           "pipe_reader", "multiprocess_reader", "Fake"]


def cache(reader):
    """All samples are read now, once, and served from memory."""
    samples = tuple(reader())

    def cached():
        yield from samples

    return cached


def map_readers(func, *readers):
    """func(a, b, ...) of one sample from each; the shortest reader ends it."""
    def mapped():
        yield from map(func, *(r() for r in readers))

    return mapped


def shuffle(reader, buf_size):
    """Samples in random order within windows of `buf_size`."""
    size = max(buf_size, 1)

    def shuffled():
        samples = iter(reader())
        while window := list(itertools.islice(samples, size)):
            random.shuffle(window)
            yield from window

    return shuffled


def chain(*readers):
    """One reader after the other."""
    def chained():
        for r in readers:
            yield from r()

    return chained


class ComposeNotAligned(ValueError):
    """Readers that were to be composed gave different numbers of samples."""


def compose(*readers, check_alignment=True):
    """Samples side by side: (1, 2) and 3 become (1, 2, 3)."""
    def flat(samples):
        parts = (s if isinstance(s, tuple) else (s,) for s in samples)
        return tuple(itertools.chain.from_iterable(parts))

    def composed():
        sources = [iter(r()) for r in readers]
        if not check_alignment:
            yield from map(flat, zip(*sources))
            return
        end = object()
        for samples in itertools.zip_longest(*sources, fillvalue=end):
            ended = [i for i, s in enumerate(samples) if s is end]
            if ended:
                raise ComposeNotAligned(
                    "compose: reader %d of %d ended before the others"
                    % (ended[0], len(readers)))
            yield flat(samples)

    return composed


def firstn(reader, n):
    """The first `n` samples."""
    def first():
        yield from itertools.islice(reader(), n)

    return first


class _Channel:
    """A bounded queue between threads that either end may close.

    Thread: lock. Closed by its writer, what it holds can still be taken."""

    def __init__(self, size):
        self._size = max(size, 1)
        self._changed = threading.Condition()
        self._items = collections.deque()
        self._closed = False

    def put(self, item):
        """False if nobody will take the item any more."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or len(self._items) < self._size)
            if not self._closed:
                self._items.append(item)
                self._changed.notify_all()
            return not self._closed

    def close(self):
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def __iter__(self):
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._items)
                if not self._items:
                    return
                item = self._items.popleft()
                self._changed.notify_all()
            yield item


def buffered(reader, size):
    """Up to `size` samples are read ahead by a thread."""
    def fill(channel, errors):
        try:
            for sample in reader():
                if not channel.put(sample):
                    break
        except BaseException as e:  # raised again where it can be seen
            errors.append(e)
        finally:
            channel.close()

    def ahead():
        channel, errors = _Channel(size), []
        threading.Thread(target=fill, args=(channel, errors), name="reader",
                         daemon=True).start()
        try:
            yield from channel
        finally:
            channel.close()
        if errors:
            raise errors[0]

    return ahead


def xmap_readers(mapper, reader, process_num, buffer_size, order=False):
    """mapper(sample) on `process_num` threads, `buffer_size` ahead.

    With `order` results come in the order of the samples, else as they are
    ready."""
    def mapped():
        samples = buffered(reader, buffer_size)()
        pool = concurrent.futures.ThreadPoolExecutor(process_num, "xmap")
        results = queue.SimpleQueue()
        waiting = 0
        try:
            for sample in samples:
                result = pool.submit(mapper, sample)
                if order:
                    results.put(result)
                else:
                    result.add_done_callback(results.put)
                waiting += 1
                if waiting >= process_num + buffer_size:
                    yield results.get().result()
                    waiting -= 1
            for _ in range(waiting):
                yield results.get().result()
        finally:
            samples.close()
            pool.shutdown(wait=False, cancel_futures=True)

    return mapped


def multiprocess_reader(readers, use_pipe=True, queue_size=1000):
    """Each reader runs in a process of its own; samples come as they are made.

    Samples are carried by pipes either way; without `use_pipe` up to
    `queue_size` are taken over ahead. A sample may not be None."""
    if not isinstance(readers, (list, tuple)) or not readers:
        raise ValueError("multiprocess_reader: readers must be a list of at "
                         "least one reader")

    def merged():
        yield from _processes.merge(readers)

    return merged if use_pipe else buffered(merged, queue_size)


def _inflate(chunks):
    """What gzip wrote, of one file or of several one after the other."""
    member = zlib.decompressobj(32 + zlib.MAX_WBITS)
    for data in chunks:
        while data:
            yield member.decompress(data)
            data = member.unused_data
            if member.eof:
                member = zlib.decompressobj(32 + zlib.MAX_WBITS)


class PipeReader:
    """The output of a command, line by line.

    `file_type` is "plain" or "gzip". Where PYTHONHASHSEED is not set the
    command gets 0: readers that hash words must agree between processes."""

    def __init__(self, command, bufsize=8192, file_type="plain"):
        if not isinstance(command, str):
            raise TypeError("PipeReader: command must be a string, not %s"
                            % type(command).__name__)
        if file_type not in ("plain", "gzip"):
            raise TypeError("PipeReader: file_type is %r, must be \"plain\" "
                            "or \"gzip\"" % (file_type,))
        self.bufsize = bufsize
        self.file_type = file_type
        self.command = command
        env = {"PYTHONHASHSEED": "0", **os.environ}
        self.process = subprocess.Popen(command.split(), bufsize=bufsize,
                                        stdout=subprocess.PIPE, env=env)

    def _bytes(self):
        with self.process.stdout as pipe:
            while data := pipe.read1(self.bufsize):
                yield data
        code = self.process.wait()
        if code:
            raise RuntimeError("PipeReader: %r ended with code %d"
                               % (self.command, code))

    def _chunks(self):
        return _inflate(self._bytes()) if self.file_type == "gzip" \
            else self._bytes()

    def get_line(self, cut_lines=True, line_break="\n"):
        """Lines without their ends; without `cut_lines`, chunks of text."""
        if not cut_lines:
            for chunk in self._chunks():
                yield chunk.decode(errors="replace")
            return
        mark, rest = line_break.encode(), b""
        for chunk in self._chunks():
            *lines, rest = (rest + chunk).split(mark)
            for line in lines:
                yield line.decode(errors="replace")
        if rest:
            yield rest.decode(errors="replace")


def pipe_reader(left_cmd, parser, bufsize=8192, file_type="plain",
                cut_lines=True, line_break="\n"):
    """A reader of the samples that `parser` makes of a command's output: of
    lists of lines or, without `cut_lines`, of texts. See PipeReader."""
    def read():
        pipe = PipeReader(left_cmd, bufsize, file_type)
        for text in pipe.get_line(cut_lines, line_break):
            yield from parser([text] if cut_lines else text)

    return read


class Fake:
    """Fake()(reader, n): the first sample again and again, `n` times.

    It takes reading out of a measurement of speed."""

    def __init__(self):
        self._first = []

    def __call__(self, reader, n):
        def fake():
            if not self._first:
                self._first.extend(itertools.islice(reader(), 1))
            if not self._first:
                raise ValueError("Fake: the reader gave no sample")
            yield from itertools.repeat(self._first[0], n)

        return fake
