# SPDX-License-Identifier: Apache-2.0
"""paddle.reader: decorators and creators."""
import gzip
import os
import random
import signal
import sys
import threading
import time

import numpy as np
import pytest

from cluster import LIMIT
from paddle import reader


def numbers(n, start=0):
    return lambda: iter(range(start, start + n))


def broken(n):
    """n samples, then an error."""
    def samples():
        yield from range(n)
        raise OSError("disk on fire")

    return samples


def waits_for(condition):
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, "waited %d s" % LIMIT
        time.sleep(0.005)


def test_cache_reads_once():
    calls = []

    def source():
        calls.append(1)
        return range(3)

    cached = reader.cache(source)
    assert list(cached()) == list(cached()) == [0, 1, 2]
    assert len(calls) == 1


def test_map_readers_stops_with_the_shortest():
    mapped = reader.map_readers(lambda a, b: a * b, numbers(3), numbers(9, 5))
    assert list(mapped()) == [0, 6, 14]


def test_shuffle_uses_the_random_module_in_windows():
    random.seed(7)
    first = list(reader.shuffle(numbers(10), 4)())
    random.seed(7)
    assert list(reader.shuffle(numbers(10), 4)()) == first
    assert sorted(first[:4]) == [0, 1, 2, 3] and sorted(first) == [*range(10)]
    assert first != [*range(10)]


def test_shuffle_without_a_window_keeps_the_order():
    assert list(reader.shuffle(numbers(3), 0)()) == [0, 1, 2]


def test_chain_and_firstn():
    chained = reader.chain(numbers(3), numbers(2, 10))
    assert list(chained()) == [0, 1, 2, 10, 11]
    assert list(reader.firstn(chained, 4)()) == [0, 1, 2, 10]


def test_compose_flattens_tuples():
    pairs = reader.map_readers(lambda x: (x, -x), numbers(2))
    composed = reader.compose(pairs, numbers(2, 5))
    assert list(composed()) == [(0, 0, 5), (1, -1, 6)]


def test_compose_checks_alignment():
    composed = reader.compose(numbers(3), numbers(2))
    with pytest.raises(reader.ComposeNotAligned,
                       match="reader 1 of 2 ended before the others"):
        list(composed())
    assert issubclass(reader.ComposeNotAligned, ValueError)
    loose = reader.compose(numbers(3), numbers(2), check_alignment=False)
    assert list(loose()) == [(0, 0), (1, 1)]


def test_buffered_gives_all_in_order():
    assert list(reader.buffered(numbers(1000), 7)()) == [*range(1000)]


def test_buffered_reads_no_further_ahead():
    taken = []

    def source():
        for i in range(100):
            taken.append(i)
            yield i

    samples = reader.buffered(source, 5)()
    for given in range(1, 100):
        next(samples)
        # 5 are held and 1 is in hand; what was taken too early stays taken
        waits_for(lambda: len(taken) == min(given + 6, 100))
    samples.close()


def test_buffered_ends_its_thread_when_left():
    threads = []

    def source():
        threads.append(threading.current_thread())
        yield from range(10**9)

    samples = reader.buffered(source, 5)()
    next(samples)
    assert threads[0] is not threading.current_thread()
    samples.close()
    threads[0].join(LIMIT)
    assert not threads[0].is_alive()


def test_buffered_raises_the_readers_error():
    samples = reader.buffered(broken(3), 10)()
    assert [next(samples) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(OSError, match="disk on fire"):
        next(samples)


def slow_first(x):
    if x == 0:
        time.sleep(0.05)
    return x * x


@pytest.mark.parametrize("order", [True, False])
def test_xmap_maps_every_sample(order):
    mapped = reader.xmap_readers(slow_first, numbers(200), 4, 8, order)
    for _ in range(2):
        got = list(mapped())
        assert sorted(got) == [x * x for x in range(200)]
        assert not order or got == sorted(got)


def test_xmap_without_order_does_not_wait():
    go = threading.Event()

    def hold_first(x):
        assert x != 0 or go.wait(LIMIT)
        return x

    mapped = reader.xmap_readers(hold_first, numbers(20), 2, 4)()
    assert next(mapped) != 0
    go.set()
    assert 0 in list(mapped)


@pytest.mark.parametrize("order", [True, False])
def test_xmap_raises_the_mappers_error(order):
    def fails(x):
        return {0: "zero"}[x]

    with pytest.raises(KeyError):
        list(reader.xmap_readers(fails, numbers(9), 2, 3, order)())
    with pytest.raises(OSError, match="disk on fire"):
        list(reader.xmap_readers(abs, broken(4), 2, 3, order)())


@pytest.mark.parametrize("use_pipe", [True, False])
def test_multiprocess_merges_all(use_pipe):
    parts = [numbers(50), numbers(50, 100), numbers(0)]
    merged = reader.multiprocess_reader(parts, use_pipe, queue_size=10)
    assert sorted(merged()) == [*range(50), *range(100, 150)]


def test_multiprocess_runs_in_other_processes():
    merged = reader.multiprocess_reader([lambda: iter([os.getpid()])] * 2)
    pids = set(merged())
    assert len(pids) == 2 and os.getpid() not in pids


def test_multiprocess_carries_arrays():
    merged = reader.multiprocess_reader([lambda: [(np.arange(3), 1)]])
    (x, y), = merged()
    assert x.tolist() == [0, 1, 2] and y == 1


def test_multiprocess_raises_what_went_wrong():
    with pytest.raises(OSError, match="disk on fire"):
        list(reader.multiprocess_reader([broken(2)])())
    with pytest.raises(ValueError, match="a sample is None"):
        list(reader.multiprocess_reader([lambda: [None]])())
    with pytest.raises(ValueError, match="at least one reader"):
        reader.multiprocess_reader([])


def test_multiprocess_notices_a_death():
    def dies():
        os.kill(os.getpid(), signal.SIGKILL)
        yield 1

    with pytest.raises(RuntimeError, match="process died"):
        list(reader.multiprocess_reader([dies])())


def test_multiprocess_ends_children_when_left():
    samples = reader.multiprocess_reader(
        [lambda: (os.getpid() for _ in range(10**9))])()
    pid = next(samples)
    samples.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_pipe_reader_cuts_lines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "text"
    file.write_text("one\ntwo\n\nlast")
    pipe = reader.PipeReader("cat %s" % file.name, bufsize=3)
    assert list(pipe.get_line()) == ["one", "two", "", "last"]
    pipe = reader.PipeReader("cat %s" % file.name)
    assert list(pipe.get_line(line_break="o")) == ["", "ne\ntw", "\n\nlast"]
    pipe = reader.PipeReader("cat %s" % file.name)
    assert "".join(pipe.get_line(cut_lines=False)) == file.read_text()


def test_pipe_reader_unpacks_gzip(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "text.gz"
    file.write_bytes(gzip.compress(b"a\nb\n") + gzip.compress(b"c\n"))
    pipe = reader.PipeReader("cat %s" % file.name, bufsize=16, file_type="gzip")
    assert list(pipe.get_line()) == ["a", "b", "c"]


def test_pipe_reader_fixes_the_hash_seed(tmp_path, monkeypatch):
    script = tmp_path / "seed.py"
    script.write_text("import os; print(os.environ['PYTHONHASHSEED'])")
    monkeypatch.chdir(tmp_path)
    command = "%s %s" % (sys.executable, script.name)
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    assert list(reader.PipeReader(command).get_line()) == ["0"]
    monkeypatch.setenv("PYTHONHASHSEED", "5")
    assert list(reader.PipeReader(command).get_line()) == ["5"]


def test_a_parser_makes_samples_of_a_pipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "numbers"
    file.write_text("1 2\n3 4\n")
    read = reader.pipe_reader("cat %s" % file.name, lambda lines: [
        tuple(map(int, line.split())) for line in lines])
    assert list(read()) == list(read()) == [(1, 2), (3, 4)]
    whole = reader.pipe_reader("cat %s" % file.name, lambda text: [len(text)],
                               cut_lines=False)
    assert list(whole()) == [8]


def test_pipe_reader_says_what_is_wrong():
    with pytest.raises(TypeError, match="command must be a string, not list"):
        reader.PipeReader(["cat"])
    with pytest.raises(TypeError, match="file_type is 'zip'"):
        reader.PipeReader("cat", file_type="zip")
    with pytest.raises(RuntimeError, match="'false' ended with code 1"):
        list(reader.PipeReader("false").get_line())


def test_fake_repeats_the_first_sample():
    calls = []

    def source():
        calls.append(1)
        return range(7, 9)

    fake = reader.Fake()(source, 3)
    assert list(fake()) == list(fake()) == [7, 7, 7]
    assert len(calls) == 1
    with pytest.raises(ValueError, match="no sample"):
        list(reader.Fake()(numbers(0), 3)())


def test_np_array_gives_rows():
    rows = list(reader.creator.np_array(np.arange(6).reshape(3, 2))())
    assert [r.tolist() for r in rows] == [[0, 1], [2, 3], [4, 5]]
    assert list(reader.creator.np_array(np.float32(4))()) == [4]


def test_text_file_gives_lines(tmp_path):
    file = tmp_path / "text"
    file.write_text("one \n\nlast")
    assert list(reader.creator.text_file(str(file))()) == ["one ", "", "last"]


def test_recordio_is_refused_with_a_way_out():
    with pytest.raises(NotImplementedError, match="cluster_files_reader"):
        reader.creator.recordio("x")
