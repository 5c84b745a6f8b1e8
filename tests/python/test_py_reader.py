# SPDX-License-Identifier: Apache-2.0
"""py_reader and PyReader: a thread reads batches ahead of the program."""
import threading

import numpy as np
import pytest

import paddle
import paddle.fluid as fluid
from fresh import fresh


def samples(count=10):
    def reader():
        for i in range(count):
            yield np.full(3, i, "float32"), [i % 2]
    return reader


def line(read=fluid.layers.read_file, **options):
    """A reader and the sum of what it reads."""
    reader = fluid.layers.py_reader(
        capacity=4, shapes=[(-1, 3), (-1, 1)], dtypes=["float32", "int64"],
        **options)
    x, label = read(reader)
    return reader, fluid.layers.reduce_sum(x), label


def passes(net, reader, fetch, count=1):
    """What a program fetches in each step of each pass."""
    found = []
    for _ in range(count):
        reader.start()
        found.append([])
        with pytest.raises(fluid.core.EOFException, match="no next data"):
            while True:
                found[-1].append(float(net.run([fetch])[0].sum()))
        reader.reset()
    return found


def test_a_program_takes_batches_until_the_end_of_each_pass():
    with fresh() as net:
        reader, total, _ = line(
            lambda r: fluid.layers.read_file(fluid.layers.double_buffer(r)))
        reader.decorate_paddle_reader(paddle.batch(samples(), 4))
        assert passes(net, reader, total, 2) == [[18.0, 66.0, 51.0]] * 2


def test_a_reader_of_whole_tensors_and_a_test_program():
    with fresh() as net:
        reader, total, _ = line()
        test = net.main.clone(for_test=True)
        reader.decorate_tensor_provider(lambda: iter(
            [[np.ones((2, 3)), np.zeros((2, 1))]]))
        reader.start()
        assert net.run([total], program=test)[0].sum() == 6.0
        reader.reset()


def test_a_reader_for_variables_of_layers_data():
    with fresh() as net:
        x = fluid.layers.data("x", [3])
        words = fluid.layers.data("words", [1], dtype="int64", lod_level=1)
        reader = fluid.layers.create_py_reader_by_data(2, [x, words])
        assert fluid.layers.read_file(reader) == [x, words]
        total = fluid.layers.reduce_sum(x) + fluid.layers.cast(
            fluid.layers.reduce_sum(words), "float32")
        reader.decorate_sample_list_generator(lambda: iter(
            [[(np.ones(3), [1, 2]), (np.ones(3), [3])]]))
        assert passes(net, reader, total) == [[12.0]]


def test_a_reader_that_was_not_started_says_so():
    with fresh() as net:
        reader, total, _ = line()
        with pytest.raises(RuntimeError, match="was not started; call start"):
            net.run([total])
        with pytest.raises(RuntimeError, match="has nothing to read; call "
                           "decorate_paddle_reader"):
            reader.start()
        reader.decorate_paddle_reader(paddle.batch(samples(), 4))
        reader.start()
        with pytest.raises(RuntimeError, match="was started already"):
            reader.start()
        with pytest.raises(RuntimeError, match="is being read; call reset"):
            reader.decorate_paddle_reader(paddle.batch(samples(), 4))
        reader.reset()


def test_what_a_generator_raises_comes_out_of_the_run():
    def broken():
        yield [(np.ones(3), [0])]
        raise OSError("the file is gone")
    with fresh() as net:
        reader, total, _ = line()
        reader.decorate_paddle_reader(broken)
        reader.start()
        net.run([total])
        for _ in range(2):
            with pytest.raises(OSError, match="the file is gone"):
                net.run([total])
        reader.reset()


def test_a_sample_of_another_width_is_named():
    with fresh() as net:
        reader, total, _ = line()
        reader.decorate_paddle_reader(lambda: iter([[(np.ones(3),)]]))
        reader.start()
        with pytest.raises(ValueError, match="a sample has 1 values, but "
                           "there are 2 variables"):
            net.run([total])
        reader.reset()


def test_reset_ends_a_thread_that_waits_for_room():
    before = threading.active_count()
    with fresh():
        reader, _, _ = line()
        reader.decorate_paddle_reader(paddle.batch(samples(1000), 1))
        reader.start()
        assert threading.active_count() == before + 1
        reader.reset()
        assert threading.active_count() == before


def test_values_that_are_fed_are_taken_before_the_reader():
    with fresh() as net:
        reader, total, label = line()
        feed = {total.op.block.ops[0].input("X")[0]: np.ones((1, 3), "float32"),
                label.name: np.zeros((1, 1), "int64")}
        assert net.run([total], feed)[0].sum() == 3.0


def test_each_place_takes_a_batch():
    with fresh() as net:
        reader, total, _ = line()
        net.exe.run(net.startup)
        compiled = fluid.CompiledProgram(net.main).with_data_parallel(
            places=fluid.cpu_places(2))
        reader.decorate_paddle_reader(paddle.batch(samples(), 4))
        reader.start()
        got, = net.exe.run(compiled, fetch_list=[total])
        assert got.tolist() == [18.0, 66.0]
        with pytest.raises(fluid.core.EOFException):
            net.exe.run(compiled, fetch_list=[total])
        reader.reset()


def test_an_iterable_reader_yields_feeds():
    with fresh() as net:
        x = fluid.layers.data("x", [3])
        label = fluid.layers.data("label", [1], dtype="int64")
        total = fluid.layers.reduce_sum(x)
        reader = fluid.io.PyReader([x, label], capacity=2, iterable=True)
        reader.decorate_sample_generator(samples(), batch_size=4,
                                         drop_last=False,
                                         places=fluid.cpu_places(1))
        for _ in range(2):
            sums = [float(net.run([total], feed)[0].sum())
                    for feed in reader()]
            assert sums == [18.0, 66.0, 51.0]
        with pytest.raises(RuntimeError, match="is iterable"):
            reader.start()


def test_an_iterable_reader_groups_feeds_for_places():
    with fresh():
        x = fluid.layers.data("x", [3])
        label = fluid.layers.data("label", [1], dtype="int64")
        reader = fluid.io.PyReader([x, label], 2, iterable=True)
        reader.decorate_sample_list_generator(
            paddle.batch(samples(), 4), fluid.cpu_places(2))
        groups = list(reader)
        assert [len(g) for g in groups] == [2]
        assert groups[0][1]["x"].shape() == [4, 3]


def test_a_reader_that_is_not_iterable_feeds_the_program():
    with fresh() as net:
        x = fluid.layers.data("x", [3])
        reader = fluid.io.PyReader([x], 2)
        total = fluid.layers.reduce_sum(x)
        reader.decorate_batch_generator(lambda: iter([[np.ones((2, 3))]]))
        assert passes(net, reader, total) == [[6.0]]
        with pytest.raises(RuntimeError, match="is not iterable"):
            reader()


@pytest.mark.parametrize("options,sentence", [
    (dict(capacity=0, shapes=[[-1, 1]], dtypes=["float32"]),
     "capacity is 0, expected a number of batches above 0"),
    (dict(capacity=2, shapes=[[-1, 1]], dtypes=[]),
     "1 shapes, 0 dtypes and 1 lod_levels")])
def test_wrong_arguments_are_named(options, sentence):
    with fresh(), pytest.raises(ValueError, match=sentence):
        fluid.layers.py_reader(**options)
