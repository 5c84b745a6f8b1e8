# SPDX-License-Identifier: Apache-2.0
"""fluid.DataFeeder and the tensors of sequences."""
import numpy as np
import pytest

import paddle.fluid as fluid

CPU = fluid.CPUPlace()


@pytest.fixture
def feeder(programs):
    image = fluid.layers.data("image", [2, 2])
    label = fluid.layers.data("label", [1], dtype="int64")
    return fluid.DataFeeder([image, "label"], CPU)


def test_samples_are_stacked_and_shaped(feeder):
    feed = feeder.feed([([1, 2, 3, 4], 5), (np.arange(4.0), 6)])
    assert list(feed) == ["image", "label"]
    assert feed["image"].shape() == [2, 2, 2]
    assert np.asarray(feed["image"]).dtype == np.float32
    label = np.asarray(feed["label"])
    assert label.dtype == np.int64 and label.tolist() == [[5], [6]]


def test_a_generator_of_samples_will_do(feeder):
    feed = feeder.feed(zip([[0.0] * 4], [3]))
    assert feed["label"].shape() == [1, 1]


def test_a_sample_has_one_value_for_each_variable(feeder):
    with pytest.raises(AssertionError, match=r"data \(1\).*feed_list\) \(2"):
        feeder.feed([([1, 2, 3, 4],)])


def test_samples_that_do_not_fit_are_named(feeder):
    with pytest.raises(ValueError, match="image.*2, 2.*2, 3"):
        feeder.feed([([1, 2, 3], 5), ([4, 5, 6], 5)])


def test_a_feed_list_has_variables(programs):
    with pytest.raises(TypeError, match="list of variable"):
        fluid.DataFeeder([1], CPU)
    with pytest.raises(ValueError, match="nobody"):
        fluid.DataFeeder(["nobody"], CPU)


def test_sequences_are_laid_end_to_end(programs):
    words = fluid.layers.data("words", [1], dtype="int64", lod_level=1)
    deep = fluid.layers.data("deep", [1], dtype="int64", lod_level=2)
    feed = fluid.DataFeeder([words, deep], CPU).feed([
        ([1, 2, 3], [[1], [2, 3]]), ([4], [[4, 5, 6]])])
    assert feed["words"].recursive_sequence_lengths() == [[3, 1]]
    assert np.asarray(feed["words"]).tolist() == [[1], [2], [3], [4]]
    assert feed["deep"].recursive_sequence_lengths() == [[2, 1], [1, 2, 3]]
    assert feed["deep"].shape() == [6, 1]


def test_an_empty_sequence_has_length_zero(programs):
    words = fluid.layers.data("words", [1], dtype="int64", lod_level=1)
    feed = fluid.DataFeeder([words], CPU).feed([([],), ([4],)])
    assert feed["words"].recursive_sequence_lengths() == [[0, 1]]


def test_each_place_gets_a_batch(feeder):
    batch = [([1, 2, 3, 4], 5)]
    feeds = list(feeder.feed_parallel([batch, batch * 2], num_places=2))
    assert [f["label"].shape() for f in feeds] == [[1, 1], [2, 1]]
    with pytest.raises(ValueError, match="3 and 1"):
        feeder.feed_parallel([batch], num_places=3)


def test_readers_are_decorated(feeder):
    def reader():
        for i in range(5):
            yield [([0.0] * 4, i)]
    single = feeder.decorate_reader(reader, multi_devices=False)
    assert [f["label"][0, 0] for f in single()] == [0, 1, 2, 3, 4]
    pairs = feeder.decorate_reader(reader, True, num_places=2)
    assert [len(fs) for fs in pairs()] == [2, 2]
    strict = feeder.decorate_reader(reader, True, 2, drop_last=False)
    with pytest.raises(ValueError, match="1 minibatches are left for 2"):
        list(strict())


def test_tensors_of_lists_and_arrays():
    tensor = fluid.create_lod_tensor([[1, 2], [3, 4, 5]], [[2, 3]], CPU)
    assert tensor.shape() == [5, 1]
    assert np.asarray(tensor).dtype == np.int64
    tensor = fluid.create_lod_tensor(np.zeros((5, 7), "float32"),
                                     [[1, 1], [2, 3]], CPU)
    assert tensor.recursive_sequence_lengths() == [[1, 1], [2, 3]]
    assert fluid.create_lod_tensor(tensor, [[5]], CPU).lod() == [[0, 5]]
    with pytest.raises(AssertionError, match="do not match"):
        fluid.create_lod_tensor([[1, 2]], [[3]], CPU)
    with pytest.raises((AssertionError, ValueError)):
        fluid.create_lod_tensor(np.zeros((5, 1), "float32"), [[4]], CPU)
    with pytest.raises(TypeError, match="not int"):
        fluid.create_lod_tensor(1, [[4]], CPU)


def test_random_integers_lie_between_bounds():
    tensor = fluid.create_random_int_lodtensor([[2, 3]], [4], CPU, 3, 5)
    array = np.asarray(tensor)
    assert array.shape == (5, 4) and array.dtype == np.int64
    assert array.min() >= 3 and array.max() <= 5
