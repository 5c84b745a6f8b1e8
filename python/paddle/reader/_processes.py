# SPDX-License-Identifier: Apache-2.0
"""Readers in processes of their own, each at one end of a pipe.

Readers are closures, which only a forked child has: the child does nothing
but read and send. What it sends is a pair (kind, value); a pipe that ends
without END belongs to a child that died.
"""
import multiprocessing
from multiprocessing import connection

SAMPLE, ERROR, END = range(3)


def _send_all(reader, pipe, parents_end):
    parents_end.close()  # so that a parent's death breaks the pipe
    try:
        for sample in reader():
            if sample is None:
                raise ValueError("multiprocess_reader: a sample is None")
            pipe.send((SAMPLE, sample))
        pipe.send((END, None))
    except BrokenPipeError:
        pass  # the consumer has gone
    except Exception as e:
        pipe.send((ERROR, e))


def _start(reader):
    """A child that runs the reader, and our end of its pipe."""
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe(duplex=False)
    child = fork.Process(target=_send_all, args=(reader, theirs, ours),
                         daemon=True)
    child.start()
    theirs.close()  # else its end would never be seen
    return child, ours


def _receive(pipe):
    try:
        return pipe.recv()
    except EOFError:
        return ERROR, RuntimeError(
            "multiprocess_reader: a reader's process died")


def merge(readers):
    """Samples of all readers, as they arrive."""
    children, pipes = zip(*map(_start, readers))
    open_pipes = list(pipes)
    try:
        while open_pipes:
            for pipe in connection.wait(open_pipes):
                kind, value = _receive(pipe)
                if kind == ERROR:
                    raise value
                if kind == END:
                    open_pipes.remove(pipe)
                else:
                    yield value
    finally:
        for child, pipe in zip(children, pipes):
            pipe.close()
            child.terminate()
            child.join()
