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
], ids=lambda v: None if callable(v) else "")
def test_a_layer_gives_what_numpy_gives(make, arrays, want):
    got = run(make, *arrays)
    assert len(got) == len(want)
    for a, b in zip(got, want):
        assert a.shape == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


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
                                match="npair_loss: labels must say how many"):
        x = layers.data("x", [3])
        layers.npair_loss(x, x, layers.data("l", [1], dtype="int64"))


def test_unstack_needs_to_know_how_many():
    with fresh(), pytest.raises(ValueError, match="unstack: -1 parts"):
        layers.unstack(layers.data("x", [3]))
