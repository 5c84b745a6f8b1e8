# SPDX-License-Identifier: Apache-2.0
"""fluid.layers against numpy: what comes out of layers made of several ops,
and that their arguments go where they belong."""
import numpy as np
import pytest

import paddle.fluid as fluid
from fresh import fresh
from paddle.fluid import layers

R = np.random.RandomState(3)
X = R.rand(4, 3).astype("float32")
BOOLS = X > 0.5
PICTURE = R.rand(2, 4, 4, 6).astype("float32")


def put(array):
    """An array as a variable that is fed, and its feed."""
    name = fluid.unique_name.generate("fed")
    var = layers.data(name, list(array.shape), dtype=str(array.dtype),
                      append_batch_size=False)
    var.stop_gradient = False
    return var, {name: array}


def run(make, *arrays, **options):
    """What make(variables) gives, for these arrays."""
    with fresh() as net:
        pairs = [put(a) for a in arrays]
        made = make(*(v for v, _ in pairs))
        made = list(made) if isinstance(made, (list, tuple)) else [made]
        feed = {k: a for _, f in pairs for k, a in f.items()}
        return net.run(made, feed=feed, **options)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


INDEX = np.array([[2], [0]], "int64")
LABELS = np.array([[0], [2], [1], [0]], "int64")
P = softmax(X)


@pytest.mark.parametrize("make,arrays,want", [
    (lambda x: layers.argsort(x, axis=0), [X],
     [np.sort(X, 0), np.argsort(X, 0)]),
    (lambda: layers.range(0, 10, 2.5, "float32"), [], [np.arange(0, 10, 2.5)]),
    (lambda: layers.range(5, 1, -2, "int64"), [], [[5, 3]]),
    (lambda: layers.linspace(0, 1, 5, "float32"), [], [np.linspace(0, 1, 5)]),
    (lambda x: layers.size(x), [X], [[12]]),
    (lambda x: layers.rank(x), [X], [[2]]),
    (lambda x: layers.where(x), [BOOLS], [np.argwhere(BOOLS)]),
    (lambda x: layers.unique(x), [np.array([3, 1, 3, 2])],
     [[3, 1, 2], [0, 1, 0, 2]]),
    (lambda x: layers.unique_with_counts(x, "int64"), [np.array([3, 1, 3])],
     [[3, 1], [0, 1, 0], [2, 1]]),
    (lambda x: [layers.has_inf(x), layers.has_nan(x), layers.isfinite(x)],
     [np.array([1, np.inf], "float32")], [[True], [False], [False]]),
    (lambda x: layers.unstack(x, axis=1), [X], list(X.T)),
    (lambda x: layers.unstack(x, num=4), [X], list(X)),
    (lambda a, b, i: layers.multiplex([a, b], i),
     [X, -X, np.array([[0], [1], [1], [0]], "int32")],
     [np.where([[True], [False], [False], [True]], X, -X)]),
    (lambda x, i, u: layers.scatter(x, i, u, overwrite=False),
     [X, INDEX, X[:2]], [np.stack([X[1], X[1], X[0], X[3]])]),
    (lambda x: layers.crop(x, [2, -1], [1, 1]), [X], [X[1:3, 1:]]),
    (lambda x, y: layers.pad_constant_like(x, y, 7.0), [X, X[:3, :2]],
     [np.pad(X[:3, :2], ((0, 1), (0, 1)), constant_values=7)]),
    (lambda x: layers.shuffle_channel(x, 2), [PICTURE],
     [PICTURE[:, [0, 2, 1, 3]]]),
    (lambda x: layers.pixel_shuffle(x, 2), [PICTURE],
     [PICTURE.reshape(2, 1, 2, 2, 4, 6).transpose(0, 1, 4, 2, 5, 3)
      .reshape(2, 1, 8, 12)]),
    (lambda x: layers.reduce_all(x, dim=1), [BOOLS], [BOOLS.all(1)]),
    (lambda x: layers.reduce_any(x, dim=[0], keep_dim=True), [BOOLS],
     [BOOLS.any(0, keepdims=True)]),
    (lambda x: [layers.atan(x), layers.asin(x), layers.acos(x)], [X],
     [np.arctan(X), np.arcsin(X), np.arccos(X)]),
    (lambda l, a, b: layers.rank_loss(l, a, b),
     [np.ones((4, 1), "float32"), X[:, :1], X[:, 1:2]],
     [np.log1p(np.exp(X[:, :1] - X[:, 1:2])) - (X[:, :1] - X[:, 1:2])]),
    (lambda x, l: layers.bpr_loss(x, l), [X, LABELS],
     [np.array([[np.mean([np.log1p(np.exp(x[j] - x[k[0]])) for j in range(3)
                          if j != k[0]])] for x, k in zip(X, LABELS)])]),
    (lambda x, t: layers.kldiv_loss(x, t, "batchmean"), [np.log(X), P],
     [[(P * (np.log(P) - np.log(X))).sum() / 4]]),
    (lambda x, l: layers.dice_loss(x, l), [P, LABELS],
     [[np.mean([1 - 2 * p[k[0]] / (p.sum() + 1 + 1e-5)
                for p, k in zip(P, LABELS)])]]),
    (lambda x: layers.selu(x - 0.5), [X],
     [np.where(X > 0.5, 1.0507009873554805 * (X - 0.5), 1.0507009873554805
               * 1.6732632423543772 * (np.exp(X - 0.5) - 1))]),
    (lambda x: layers.pad2d(x, [1, 0, 0, 2], "edge"), [PICTURE],
     [np.pad(PICTURE, ((0, 0), (0, 0), (1, 0), (0, 2)), "edge")]),
    (lambda x: layers.resize_nearest(x, scale=2.0, align_corners=False),
     [PICTURE], [PICTURE.repeat(2, 2).repeat(2, 3)]),
    (lambda x: layers.image_resize(x, [4, 3], resample="NEAREST",
                                   align_corners=False),
     [PICTURE], [PICTURE[:, :, :, ::2]]),
    (lambda x: layers.resize_bilinear(x, [7, 6]), [PICTURE],
     [np.stack([PICTURE[:, :, i // 2] if i % 2 == 0 else
                (PICTURE[:, :, i // 2] + PICTURE[:, :, i // 2 + 1]) / 2
                for i in range(7)], 2)]),
    (lambda x: layers.shape(layers.image_resize_short(x, 8)), [PICTURE],
     [[2, 4, 8, 12]]),
    (lambda x: layers.adaptive_pool2d(x, [2, 3], "avg"), [PICTURE],
     [PICTURE.reshape(2, 4, 2, 2, 3, 2).mean((3, 5))]),
    (lambda x, s, b: layers.affine_channel(x, s, b, act="relu"),
     [PICTURE, X[:, 0].copy(), X[:, 1].copy()],
     [PICTURE * X[:, 0, None, None] + X[:, 1, None, None]]),
    (lambda x: layers.group_norm(x, 2, epsilon=0.0), [PICTURE],
     [((PICTURE.reshape(2, 2, -1) - PICTURE.reshape(2, 2, -1).mean(
         -1, keepdims=True)) / PICTURE.reshape(2, 2, -1).std(
             -1, keepdims=True)).reshape(PICTURE.shape)]),
    (lambda x: layers.shape(layers.uniform_random_batch_size_like(
        x, [-1, 7])), [X], [[4, 7]]),
    (lambda x: layers.shape(layers.gaussian_random_batch_size_like(
        x, [2, -1], output_dim_idx=1)), [X], [[2, 4]]),
    (lambda x: layers.sampling_id(x), [np.eye(3, dtype="float32")],
     [[0, 1, 2]]),
    (lambda a, b: layers.mean_iou(a, b, 3),
     [np.array([0, 1, 1], "int32"), np.array([0, 1, 2], "int32")],
     [[0.5], [0, 1, 1], [1, 1, 0]]),
    (lambda x, c: layers.continuous_value_model(x, c, False), [X, X[:, :2]],
     [X[:, 2:]]),
    (lambda x: layers.data_norm(x, act="relu"), [X], [X]),
    (lambda x: layers.data_norm(x, param_attr=dict(batch_sum=5e3)), [X],
     [X - 0.5]),
    (lambda x: layers.hash(x, 10000, 2), [np.array([[1], [2 ** 32 + 1]])],
     [[[[1269], [9609]], [[3868], [7268]]]]),
    (lambda x, y: layers.teacher_student_sigmoid_loss(x, y),
     [X[:, :1], np.array([[-2], [-1], [0.25], [1.5]], "float32")],
     [[[1], [1], [2], [2]] * np.log1p(np.exp(X[:, :1]))
      - X[:, :1] * [[0], [1], [0.25], [1.5]]]),
    (lambda x: layers.spectral_norm(x, dim=1, power_iters=50), [X],
     [X / np.linalg.norm(X, 2)]),
    (lambda x: layers.similarity_focus(x, 1, [2]),
     [np.eye(3, dtype="float32")[None, None].repeat(4, 1)],
     [np.eye(3)[None, None].repeat(4, 1)]),
    (lambda x, l, s, p: layers.sampled_softmax_with_cross_entropy(
        x, l, 2, use_customized_samples=True, customized_samples=s,
        customized_probabilities=p),
     [X, LABELS, np.array([[0, 1, 2], [2, 0, 1], [1, 2, 0], [0, 2, 1]]),
      np.ones((4, 3), "float32")],
     [-np.log(np.take_along_axis(P, LABELS, 1))]),
    (lambda x: layers.add_position_encoding(layers.reshape(x, [2, 2, 6]),
                                            1.0, 0.0),
     [PICTURE[0, 0]], [PICTURE[0, 0].reshape(2, 2, 6)]),
    (lambda x, y: layers.bilinear_tensor_product(
        x, y, 2, param_attr=fluid.initializer.Constant(1.0)), [X, X[:, :2]],
     [(X.sum(1, keepdims=True) * X[:, :2].sum(1, keepdims=True)).repeat(
         2, 1)]),
], ids=lambda v: None if callable(v) else "")
def test_a_layer_gives_what_numpy_gives(make, arrays, want):
    got = run(make, *arrays)
    assert len(got) == len(want)
    for a, b in zip(got, want):
        assert a.shape == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_few_classes_at_a_time_train_all():
    x = np.eye(20, dtype="float32")
    label = np.arange(20)[:, None]
    with fresh() as net:
        logits = layers.fc(put(x)[0], 20)
        feed = {"fed_0": x, "fed_1": label}
        loss = layers.mean(layers.sampled_softmax_with_cross_entropy(
            logits, put(label)[0], num_samples=5))
        fluid.optimizer.Adam(0.1).minimize(loss)
        for _ in range(100):
            got, = net.run([logits], feed)
    assert (got.argmax(1) == label[:, 0]).all()


def test_a_row_has_one_label():
    with fresh(), pytest.raises(ValueError, match="num_true is 2, expected 1"):
        layers.sampled_softmax_with_cross_entropy(
            put(X)[0], put(LABELS)[0], 2, num_true=2)


def test_npair_loss_is_its_formula():
    a, p = X, X[::-1].copy()
    labels = np.array([0, 1, 0, 2], "int64")
    same = (labels[:, None] == labels).astype("float32")
    same /= same.sum(1, keepdims=True)
    ce = -(same * np.log(softmax(a @ p.T))).sum(1, keepdims=True)
    want = (same * ce).sum(0).mean() + 0.25 * 0.002 * (
        (a ** 2).sum(1).mean() + (p ** 2).sum(1).mean())
    got, = run(layers.npair_loss, a, p, labels)
    np.testing.assert_allclose(got, [want], rtol=1e-5)
    with fresh(), pytest.raises(fluid.core.EnforceNotMet,
                                match="npair_loss: the number of labels is not"):
        x = layers.data("x", [3])
        layers.npair_loss(x, x, layers.data("l", [1], dtype="int64"))


def test_unstack_needs_to_know_how_many():
    with fresh(), pytest.raises(ValueError, match="unstack: -1 parts"):
        layers.unstack(layers.data("x", [3]))


def sequences(array, lengths):
    """A feed of sequences."""
    return fluid.create_lod_tensor(array, [lengths], fluid.CPUPlace())


def test_sequences_are_padded_and_back():
    with fresh() as net:
        x = layers.data("x", [3], lod_level=1)
        zero = layers.fill_constant([1], "float32", 0.0)
        padded, length = layers.sequence_pad(x, zero, maxlen=4)
        back = layers.sequence_unpad(padded, length)
        turned = layers.sequence_reverse(back)
        mask = layers.sequence_mask(length, dtype="float32")
        fluid.backward.append_backward(layers.mean(turned))
        a, n, m, t = net.run([padded, length, mask, turned],
                             feed={"x": sequences(X, [1, 3])},
                             return_numpy=False)
        assert np.asarray(a).shape == (2, 4, 3)
        assert np.asarray(n).tolist() == [[1], [3]]
        assert np.asarray(m).tolist() == [[[1, 0, 0]], [[1, 1, 1]]]
        assert t.recursive_sequence_lengths() == [[1, 3]]
        np.testing.assert_array_equal(np.asarray(t), X[[0, 3, 2, 1]])


def test_sequences_are_cut_spread_and_listed():
    with fresh() as net:
        ids = layers.data("ids", [1], dtype="int64", lod_level=1)
        x = layers.data("x", [3])
        at = layers.fill_constant([2, 1], "int64", 0)
        one = layers.fill_constant([2, 1], "int64", 1)
        pairs = layers.sequence_enumerate(ids, 2, pad_value=7)
        first = layers.sequence_slice(ids, at, one)
        spread = layers.sequence_expand_as(x, ids)
        updates = layers.cast(ids, "float32")
        added = layers.sequence_scatter(x, ids, updates)
        got = net.run([pairs, first, spread, added], return_numpy=False, feed={
            "x": X[:2], "ids": sequences(np.array([[1], [0], [2]]), [2, 1])})
        pairs, first, spread, added = map(np.asarray, got)
        assert pairs.tolist() == [[1, 0], [0, 7], [2, 7]]
        assert first.tolist() == [[1], [2]]
        np.testing.assert_array_equal(spread, X[[0, 0, 1]])
        np.testing.assert_allclose(added, X[:2] + [[0, 1, 0], [0, 0, 2]])


def test_a_transposed_convolution_makes_pictures_larger():
    with fresh() as net:
        x = layers.data("x", [4, 4, 6])
        attr = fluid.ParamAttr(initializer=fluid.initializer.Constant(1.0))
        y = layers.conv2d_transpose(x, 3, filter_size=2, stride=2,
                                    param_attr=attr, act="relu")
        z = layers.conv2d_transpose(x, 4, output_size=[8, 12], stride=2,
                                    groups=4, use_cudnn=False)
        assert net.types()[:3] == ["conv2d_transpose", "elementwise_add",
                                   "relu"]
        assert net.types()[3] == "depthwise_conv2d_transpose"
        assert (y.shape, z.shape) == ((-1, 3, 8, 12), (-1, 4, 8, 12))
        fluid.optimizer.SGD(0.1).minimize(layers.mean(z) + layers.mean(y))
        got, _ = net.run([y, z], feed={"x": PICTURE})
        want = PICTURE.sum(1, keepdims=True).repeat(2, 2).repeat(2, 3)
        np.testing.assert_allclose(got, want.repeat(3, 1), rtol=1e-5)
        with pytest.raises(ValueError, match="filter_size, or output_size"):
            layers.conv2d_transpose(x, 3)


def test_pictures_become_sequences_of_windows():
    with fresh() as net:
        x = layers.data("x", [4, 4, 6])
        y = layers.im2sequence(x, filter_size=[2, 3], stride=[2, 3])
        ahead = layers.row_conv(y, 1, act="tanh")
        fluid.optimizer.SGD(0.1).minimize(layers.mean(ahead))
        rows, = net.run([y], feed={"x": PICTURE}, return_numpy=False)
        assert rows.recursive_sequence_lengths() == [[4, 4]]
        want = PICTURE.reshape(2, 4, 2, 2, 2, 3).transpose(0, 2, 4, 1, 3, 5)
        np.testing.assert_array_equal(np.asarray(rows),
                                      want.reshape(8, 24))


def test_a_size_may_be_a_variable():
    size = np.array([2, 3], "int32")
    got, = run(lambda x, s: layers.resize_nearest(
        x, out_shape=[9, 9], actual_shape=s, align_corners=False),
        PICTURE, size)
    np.testing.assert_array_equal(got, PICTURE[:, :, ::2, ::2])
