# SPDX-License-Identifier: Apache-2.0
"""paddle.v2.layer: what each layer computes, by numpy."""
import numpy as np
import pytest

import paddle.v2 as paddle
from paddle.v2 import activation, attr, config_base, data_type, layer
from paddle.v2 import networks, pooling

RNG = np.random.RandomState(3)
X = RNG.uniform(0.1, 1, (4, 6)).astype("float32")
Y = RNG.uniform(0.1, 1, (4, 6)).astype("float32")
ONE = RNG.uniform(0.1, 1, (4, 1)).astype("float32")
PICTURE = RNG.normal(0, 1, (3, 2 * 4 * 4)).astype("float32")
SEQUENCES = [RNG.normal(0, 1, (n, 3)).astype("float32") for n in (2, 4, 1)]


@pytest.fixture(autouse=True)
def graph():
    config_base.reset()
    yield config_base.graph
    config_base.reset()


def dense(name, size, **more):
    return layer.data(name=name, type=data_type.dense_vector(size), **more)


def ids(name, count):
    return layer.data(name=name, type=data_type.integer_value(count))


def sequence(name="s", size=3):
    return layer.data(name=name, type=data_type.dense_vector_sequence(size))


def run(output, *columns, field="value"):
    """What a layer is for columns of samples, and its parameters."""
    parameters = paddle.parameters.create(output)
    samples = list(zip(*columns))
    got = paddle.infer(output_layer=output, parameters=parameters,
                       input=samples, field=field)
    return got, {n: parameters[n] for n in parameters.keys()}


def check(output, want, *columns):
    got, _ = run(output, *columns)
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)
    if output.layer_type not in ("trans", "resize"):
        assert got.shape[1] == output.size


def unit_rows(x):
    return x / np.sqrt((x * x).sum(1, keepdims=True))


def test_fc_is_tanh_of_a_product():
    out = layer.fc(input=dense("x", 6), size=3)
    got, p = run(out, X)
    assert list(p) == ["___fc_layer_0__.w0", "___fc_layer_0__.wbias"]
    assert [v.shape for v in p.values()] == [(6, 3), (1, 3)]
    np.testing.assert_allclose(
        got, np.tanh(X @ p["___fc_layer_0__.w0"]), rtol=1e-5)
    assert not p["___fc_layer_0__.wbias"].any()


def test_fc_adds_its_inputs_up():
    out = layer.fc(input=[dense("x", 6), dense("y", 6)], size=2, name="both",
                   act=activation.Linear(), bias_attr=False,
                   param_attr=[attr.Param(initial_std=1.0), attr.Param(
                       name="second", initial_min=-1, initial_max=1)])
    got, p = run(out, X, Y)
    assert list(p) == ["_both.w0", "second"]
    np.testing.assert_allclose(got, X @ p["_both.w0"] + Y @ p["second"],
                               rtol=1e-5)
    assert (abs(p["second"]) <= 1).all()


@pytest.mark.parametrize("kind,cells,dense_row", [
    (data_type.sparse_binary_vector(5), [[0, 3], [4], [1, 2, 3]],
     [[1, 0, 0, 1, 0], [0, 0, 0, 0, 1], [0, 1, 1, 1, 0]]),
    (data_type.sparse_float_vector(5), [[(0, 2.0), (3, -1.0)], [(4, 0.5)],
                                        [(1, 1.0)]],
     [[2, 0, 0, -1, 0], [0, 0, 0, 0, 0.5], [0, 1, 0, 0, 0]])])
def test_sparse_rows_are_read_as_dense_ones(kind, cells, dense_row):
    x = layer.data(name="ids", type=kind)
    linear = activation.Linear()
    got, p = run(layer.fc(input=x, size=2, act=linear, name="f"), cells)
    np.testing.assert_allclose(got, np.array(dense_row) @ p["_f.w0"],
                               rtol=1e-5, atol=1e-6)
    got, _ = run(layer.addto(input=x), cells)
    np.testing.assert_allclose(got, dense_row)


def test_embedding_takes_rows_of_its_table():
    ids = layer.data(name="ids", type=data_type.integer_value(7))
    got, p = run(layer.embedding(input=ids, size=3), [1, 6, 1])
    assert list(p) == ["___embedding_0__.w0"]
    np.testing.assert_array_equal(got, p["___embedding_0__.w0"][[1, 6, 1]])


def test_a_shared_name_is_one_parameter():
    ids = [layer.data(name=n, type=data_type.integer_value(7)) for n in "ab"]
    table = attr.Param(name="_proj")
    both = layer.concat(input=[layer.embedding(
        input=i, size=3, param_attr=table) for i in ids])
    got, p = run(both, [1, 2], [3, 4])
    assert list(p) == ["_proj"]
    np.testing.assert_array_equal(got, np.concatenate(
        [p["_proj"][[1, 2]], p["_proj"][[3, 4]]], axis=1))


def test_a_shared_parameter_has_one_shape():
    x, table = dense("x", 6), attr.Param(name="w")
    layer.fc(input=x, size=3, param_attr=table)
    with pytest.raises(ValueError, match="parameter w has the shape .6, 4.,"):
        layer.fc(input=x, size=4, param_attr=table)


ROWS = {
    "slope_intercept": (lambda x: dict(slope=2.0, intercept=1.0), 2 * X + 1),
    "clip": (lambda x: dict(min=0.3, max=0.5), X.clip(0.3, 0.5)),
    "sum_to_one_norm": (lambda x: {}, X / X.sum(1, keepdims=True)),
    "row_l2_norm": (lambda x: {}, unit_rows(X)),
    "repeat": (lambda x: dict(num_repeats=2), np.tile(X, 2)),
    "dropout": (lambda x: dict(dropout_rate=0.5), X * 0.5),
    "trans": (lambda x: {}, X.T),
    "resize": (lambda x: dict(size=3), X.reshape(-1, 3)),
    "addto": (lambda x: {}, X),
    "sum_cost": (lambda x: {}, X.sum(1, keepdims=True)),
}


@pytest.mark.parametrize("name", ROWS)
def test_of_one_input(name):
    arguments, want = ROWS[name]
    x = dense("x", 6)
    check(getattr(layer, name)(input=x, **arguments(x)), want, X)


def test_repeat_can_repeat_elements():
    out = layer.repeat(input=dense("x", 6), num_repeats=2,
                       as_row_vector=False)
    check(out, np.repeat(X, 2, axis=1), X)


PAIRS = {
    "dot_prod": (("input1", "input2"), {}, (X * Y).sum(1, keepdims=True)),
    "l2_distance": (("x", "y"), {},
                    np.sqrt(((X - Y) ** 2).sum(1, keepdims=True))),
    "cos_sim": (("a", "b"), dict(scale=5),
                5 * (unit_rows(X) * unit_rows(Y)).sum(1, keepdims=True)),
    "out_prod": (("input1", "input2"), {},
                 np.einsum("ni,nj->nij", X, Y).reshape(4, 36)),
    "square_error_cost": (("input", "label"), {},
                          ((X - Y) ** 2).sum(1, keepdims=True)),
    "smooth_l1_cost": (("input", "label"), {},
                       (0.5 * (X - Y) ** 2).sum(1, keepdims=True)),
    "huber_regression_cost": (
        ("input", "label"), dict(delta=0.1), np.where(
            abs(X - Y) < 0.1, (X - Y) ** 2 / 2,
            0.1 * (abs(X - Y) - 0.05)).sum(1, keepdims=True)),
    "multi_binary_label_cross_entropy_cost": (
        ("input", "label"), {}, -(Y * np.log(X) + (1 - Y) * np.log(
            1 - X)).sum(1, keepdims=True)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_of_two_inputs(name):
    slots, more, want = PAIRS[name]
    inputs = dict(zip(slots, (dense("x", 6), dense("y", 6))))
    check(getattr(layer, name)(**inputs, **more), want, X, Y)


def test_rows_are_weighed():
    x, w = dense("x", 6), dense("w", 1)
    check(layer.scaling(input=x, weight=w), X * ONE, X, ONE)
    check(layer.power(input=x, weight=w), X ** ONE, X, ONE)


def test_interpolation_is_between_its_inputs():
    x, y, w = dense("x", 6), dense("y", 6), dense("w", 1)
    check(layer.interpolation(input=[x, y], weight=w),
          ONE * X + (1 - ONE) * Y, X, Y, ONE)


def test_linear_comb_adds_vectors_up():
    w, v = dense("w", 2), dense("v", 6)
    check(layer.linear_comb(weights=w, vectors=v, size=3), np.einsum(
        "nj,njk->nk", Y[:, :2], X.reshape(4, 2, 3)), Y[:, :2], X)


def test_conv_shift_goes_round():
    a, b = dense("a", 6), dense("b", 3)
    want = np.stack([sum(X[:, (i + j - 1) % 6] * Y[:, j] for j in range(3))
                     for i in range(6)], axis=1)
    check(layer.conv_shift(a=a, b=b), want, X, Y[:, :3])


def test_tensor_is_bilinear():
    got, p = run(layer.tensor(a=dense("a", 6), b=dense("b", 2), size=3,
                              name="t"), X, Y[:, :2])
    assert p["_t.w0"].shape == (6, 2, 3)
    np.testing.assert_allclose(got, np.einsum(
        "ni,nj,ijk->nk", X, Y[:, :2], p["_t.w0"]), rtol=1e-4)


def test_factorization_machine_sums_pairs():
    got, p = run(layer.factorization_machine(
        input=dense("x", 6), factor_size=2, name="f"), X)
    v = p["_f.w0"]
    want = [sum(v[i] @ v[j] * x[i] * x[j] for i in range(6)
                for j in range(i + 1, 6)) for x in X]
    np.testing.assert_allclose(got.ravel(), want, rtol=1e-4, atol=1e-6)


def test_scale_shift_has_two_numbers():
    got, p = run(layer.scale_shift(input=dense("x", 6), name="s"), X)
    np.testing.assert_allclose(got, X * p["_s.w0"] + p["_s.wbias"],
                               rtol=1e-5)


def test_prelu_has_slopes_for_neighbours():
    got, p = run(layer.prelu(input=dense("x", 6), partial_sum=3, name="p"),
                 X - 0.5)
    assert p["_p.w0"].shape == (1, 2) and (p["_p.w0"] == 0.25).all()
    x = X - 0.5
    np.testing.assert_allclose(got, np.where(x > 0, x, 0.25 * x), rtol=1e-6)


def test_selective_fc_stores_its_weight_transposed():
    got, p = run(layer.selective_fc(
        input=dense("x", 6), size=3, name="s", act=activation.Linear(),
        select=dense("mask", 3)), X, np.eye(4, 3, dtype="float32"))
    np.testing.assert_allclose(got, (X @ p["_s.w0"].T) * np.eye(4, 3),
                               rtol=1e-5, atol=1e-7)


def test_gated_unit_lets_through():
    got, p = run(layer.gated_unit(input=dense("x", 6), size=2, name="g"), X)
    half, gate = X @ p["_g_input_proj.w0"], X @ p["_g_gate.w0"]
    np.testing.assert_allclose(got, half / (1 + np.exp(-gate)), rtol=1e-5)


def test_max_id_gives_ids_and_values():
    out = layer.max_id(input=dense("x", 6))
    assert out.name == "__maxid_layer_0__"
    (value, ids), _ = run(out, X, field=["value", "id"])
    np.testing.assert_array_equal(ids, X.argmax(1))
    np.testing.assert_array_equal(value.ravel(), X.max(1))


def test_multiplex_takes_rows_by_number():
    which = layer.data(name="w", type=data_type.integer_value(2))
    out = layer.multiplex(input=[which, dense("x", 6), dense("y", 6)])
    got, _ = run(out, [0, 1, 1, 0], X, Y)
    np.testing.assert_array_equal(got, np.stack([X[0], Y[1], Y[2], X[3]]))


ACTIVATIONS = {
    "Tanh": np.tanh, "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Relu": lambda x: np.maximum(x, 0), "Linear": lambda x: x,
    "Identity": lambda x: x, "Abs": abs, "Square": np.square, "Exp": np.exp,
    "Log": np.log, "Sqrt": np.sqrt, "Reciprocal": lambda x: 1 / x,
    "SoftSign": lambda x: x / (1 + abs(x)),
    "BRelu": lambda x: x.clip(0, 24), "SoftRelu": lambda x: np.log(
        1 + np.exp(x)), "STanh": lambda x: 1.7159 * np.tanh(x * 2 / 3),
    "Softmax": lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)}


def test_every_activation_is_listed():
    assert set(ACTIVATIONS) == set(activation.__all__) - {
        "Base", "SequenceSoftmax"}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(name):
    act = getattr(activation, name)()
    check(layer.addto(input=dense("x", 6), act=act), ACTIVATIONS[name](X), X)


# --- costs -------------------------------------------------------------------

def test_cross_entropy_is_the_log_of_the_label():
    x, label = dense("x", 6), ids("y", 6)
    check(layer.cross_entropy_cost(input=x, label=label),
          -np.log(X[range(4), [1, 5, 0, 2]])[:, None], X, [1, 5, 0, 2])


def test_selfnorm_adds_the_log_of_the_sum():
    x, label = dense("x", 6), ids("y", 6)
    z = np.log(X.sum(1))
    want = -np.log(X[range(4), [1, 5, 0, 2]]) + z + 0.1 * z * z
    check(layer.cross_entropy_with_selfnorm_cost(
        input=x, label=label), want[:, None], X, [1, 5, 0, 2])


def test_huber_classification_has_three_parts():
    x, label = dense("x", 1), ids("y", 2)
    check(layer.huber_classification_cost(input=x, label=label),
          [[12.0], [0.25], [0.0], [2.25]],
          [[-3.0], [0.5], [2.0], [0.5]], [1, 1, 1, 0])


def test_rank_cost_compares_two_scores():
    left, right, label = dense("l", 1), dense("r", 1), dense("y", 1)
    o, y = X[:, :1] - Y[:, :1], np.array([[1], [0], [1], [0]], "float32")
    check(layer.rank_cost(left=left, right=right, label=label),
          np.log(1 + np.exp(o)) - y * o, X[:, :1], Y[:, :1], y)


def test_a_weight_multiplies_the_cost():
    check(layer.square_error_cost(input=dense("x", 6), label=dense("y", 6),
                                  weight=dense("w", 1)),
          ((X - Y) ** 2).sum(1, keepdims=True) * ONE, X, Y, ONE)


def test_classification_cost_wants_softmax():
    label = layer.data(name="y", type=data_type.integer_value(3))
    out = layer.fc(input=dense("x", 6), size=3)
    with pytest.raises(ValueError, match="activation Tanh.., expected Soft"):
        layer.classification_cost(input=out, label=label)


# --- pictures ----------------------------------------------------------------

def correlate(x, w, b, stride=1, padding=0):
    x = np.pad(x, [(0, 0), (0, 0)] + [(padding, padding)] * 2)
    side, f = x.shape[2], w.shape[2]
    at = range(0, side - f + 1, stride)
    return np.stack([np.stack([np.einsum(
        "nchw,fchw->nf", x[:, :, i:i + f, j:j + f], w) for j in at], 2)
        for i in at], 2) + b.reshape(1, -1, 1, 1)


def test_img_conv_correlates():
    out = layer.img_conv(input=dense("x", 32), filter_size=3, num_filters=5,
                         num_channels=2, padding=1, stride=2, name="c",
                         act=activation.Linear())
    assert (out.num_filters, out.height, out.width, out.size) == (5, 2, 2, 20)
    got, p = run(out, PICTURE)
    assert p["_c.w0"].shape == (1, 5 * 2 * 9) and p["_c.wbias"].shape == (5, 1)
    want = correlate(PICTURE.reshape(3, 2, 4, 4), p["_c.w0"].reshape(
        5, 2, 3, 3), p["_c.wbias"], 2, 1)
    np.testing.assert_allclose(got, want.reshape(3, 20), rtol=1e-4,
                               atol=1e-5)


def test_img_conv_can_have_a_bias_for_every_place():
    out = layer.img_conv(input=dense("x", 32), filter_size=3, num_filters=5,
                         num_channels=2, name="c", shared_biases=False)
    got, p = run(out, PICTURE)
    assert p["_c.wbias"].shape == (20, 1) and got.shape == (3, 20)


def test_img_conv_goes_the_other_way():
    out = layer.img_conv(input=dense("x", 32), filter_size=3, num_filters=5,
                         num_channels=2, stride=2, trans=True, name="c")
    assert (out.num_filters, out.height) == (5, 9)
    got, p = run(out, PICTURE)
    assert p["_c.w0"].shape == (1, 2 * 5 * 9) and got.shape == (3, 5 * 81)


@pytest.mark.parametrize("ceil,side", [(True, 2), (False, 1)])
def test_img_pool_rounds_up_unless_told(ceil, side):
    out = layer.img_pool(input=dense("x", 32), pool_size=3, stride=2,
                         num_channels=2, ceil_mode=ceil)
    x = PICTURE.reshape(3, 2, 4, 4)
    at = [(0, 3), (2, 4)][:side]
    want = np.stack([np.stack([x[:, :, a:b, c:d].max((2, 3)) for c, d in at],
                              2) for a, b in at], 2)
    check(out, want.reshape(3, -1), PICTURE)


def test_img_pool_means_without_padding():
    out = layer.img_pool(input=dense("x", 32), pool_size=2, stride=2,
                         padding=1, num_channels=2, pool_type=pooling.Avg())
    got, _ = run(out, PICTURE)
    np.testing.assert_allclose(got[:, 0], PICTURE[:, 0], rtol=1e-6)


def test_batch_norm_keeps_four_parameters():
    out = layer.batch_norm(input=dense("x", 6), name="b")
    _, p = run(out, X)
    assert list(p) == ["_b.w0", "_b.w1", "_b.w2", "_b.wbias"]
    assert [float(v.sum()) for v in p.values()] == [6.0, 0.0, 0.0, 0.0]
    assert all(v.shape == (1, 6) for v in p.values())


def test_pictures_are_turned_and_framed():
    x = PICTURE.reshape(3, 2, 4, 4)
    check(layer.rotate(input=dense("x", 32), height=4, width=4),
          np.rot90(x, -1, (2, 3)).reshape(3, 32), PICTURE)
    conv = layer.img_pool(input=dense("z", 32), pool_size=1, num_channels=2)
    check(layer.pad(input=conv, pad_c=[1, 0], pad_h=[0, 2], pad_w=[1, 1]),
          np.pad(x, [(0, 0), (1, 0), (0, 2), (1, 1)]).reshape(3, -1), PICTURE)
    check(layer.crop(input=conv, offset=[1, 2], shape=[3, 2, 2, 1]),
          x[:, :, 1:3, 2:3].reshape(3, -1), PICTURE)
    check(layer.switch_order(input=conv),
          x.transpose(0, 2, 3, 1).reshape(3, -1), PICTURE)
    check(layer.maxout(input=conv, groups=2), x.max(1).reshape(3, -1),
          PICTURE)


def test_normalised_over_channels():
    conv = layer.img_pool(input=dense("z", 32), pool_size=1, num_channels=2)
    x = PICTURE.reshape(3, 2, 4, 4)
    squares = (x * x).sum(1, keepdims=True)
    check(layer.img_cmrnorm(input=conv, size=3, scale=0.3, power=0.5),
          (x * (1 + 0.1 * squares) ** -0.5).reshape(3, -1), PICTURE)
    got, p = run(layer.cross_channel_norm(input=conv, name="n"), PICTURE)
    want = x / np.sqrt(squares) * p["_n.w0"].reshape(1, 2, 1, 1)
    np.testing.assert_allclose(got, want.reshape(3, -1), rtol=1e-4)


def test_spp_pools_to_a_pyramid():
    out = layer.spp(input=dense("x", 32), num_channels=2, pyramid_height=2)
    x = PICTURE.reshape(3, 2, 4, 4)
    quarters = x.reshape(3, 2, 2, 2, 2, 2).max((3, 5)).reshape(3, -1)
    check(out, np.concatenate([x.max((2, 3)), quarters], 1), PICTURE)


def test_block_expand_makes_a_sequence_of_windows():
    out = layer.block_expand(input=dense("x", 32), num_channels=2, block_x=2,
                             block_y=2, stride_x=2, stride_y=2)
    got, _ = run(layer.pooling(input=out, pooling_type=pooling.Sum()),
                 PICTURE)
    assert out.size == 8 and got.shape == (3, 8)
    np.testing.assert_allclose(got.sum(), PICTURE.sum(), rtol=1e-4)


def test_bilinear_interp_keeps_the_corners():
    conv = layer.img_pool(input=dense("z", 32), pool_size=1, num_channels=2)
    got, _ = run(layer.bilinear_interp(input=conv, out_size_x=7,
                                       out_size_y=7), PICTURE)
    got = got.reshape(3, 2, 7, 7)[:, :, ::6, ::6]
    np.testing.assert_allclose(got, PICTURE.reshape(3, 2, 4, 4)[:, :, ::3,
                                                                ::3])


def test_a_picture_must_be_square():
    with pytest.raises(ValueError, match="no square picture of 3 channels"):
        layer.img_conv(input=dense("x", 32), filter_size=3, num_filters=5,
                       num_channels=3)


def test_data_can_say_its_height_and_width():
    x = dense("x", 2 * 3 * 5, height=3, width=5)
    out = layer.img_conv(input=x, filter_size=3, num_filters=4, padding=1)
    assert (x.num_filters, out.height, out.width) == (2, 3, 5)


# --- sequences ---------------------------------------------------------------

@pytest.mark.parametrize("kind,numpy", [
    (pooling.Max(), lambda s: s.max(0)), (pooling.Avg(), lambda s: s.mean(0)),
    (pooling.Sum(), lambda s: s.sum(0)),
    (pooling.SquareRootN(), lambda s: s.sum(0) / np.sqrt(len(s)))])
def test_pooling_makes_a_row_of_a_sequence(kind, numpy):
    check(layer.pooling(input=sequence(), pooling_type=kind),
          [numpy(s) for s in SEQUENCES], SEQUENCES)


def test_first_last_and_expand():
    s = sequence()
    check(layer.first_seq(input=s), [x[0] for x in SEQUENCES], SEQUENCES)
    check(layer.last_seq(input=s), [x[-1] for x in SEQUENCES], SEQUENCES)
    out = layer.expand(input=dense("r", 6), expand_as=s)
    check(out, np.repeat(X[:3], [2, 4, 1], axis=0), SEQUENCES, X[:3])


def test_sequences_are_joined_and_reshaped():
    s = sequence()
    check(layer.seq_concat(a=s, b=s), np.concatenate(
        [np.concatenate([x, x]) for x in SEQUENCES]), SEQUENCES)
    check(layer.seq_reshape(input=s, reshape_size=1),
          np.concatenate([x.reshape(-1, 1) for x in SEQUENCES]), SEQUENCES)


@pytest.mark.parametrize("length,start", [(3, -1), (4, -2), (2, 0)])
def test_context_projection_puts_neighbours_side_by_side(length, start):
    more = {} if (length, start) != (2, 0) else {"context_start": 0}
    out = layer.mixed(input=layer.context_projection(
        sequence(), context_len=length, **more))
    rows = []
    for x in SEQUENCES:
        for t in range(len(x)):
            rows.append(np.concatenate([
                x[t + k] if 0 <= t + k < len(x) else np.zeros(3)
                for k in range(start, start + length)]))
    check(out, rows, SEQUENCES)


def test_sequence_conv_pool_is_context_fc_and_pool():
    got, p = run(networks.sequence_conv_pool(
        input=sequence(), context_len=3, hidden_size=2, name="c"), SEQUENCES)
    assert list(p) == ["_c_conv_fc.w0", "_c_conv_fc.wbias"]
    want = []
    for x in SEQUENCES:
        padded = np.pad(x, [(1, 1), (0, 0)])
        rows = np.stack([padded[t:t + 3].ravel() for t in range(len(x))])
        want.append(np.tanh(rows @ p["_c_conv_fc.w0"]).max(0))
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_sequence_softmax_is_over_each_sequence():
    out = layer.fc(input=sequence(), size=1, bias_attr=False, name="f",
                   act=activation.SequenceSoftmax())
    got, p = run(out, SEQUENCES)
    want = [np.exp(x @ p["_f.w0"]) for x in SEQUENCES]
    np.testing.assert_allclose(got, np.concatenate(
        [w / w.sum() for w in want]), rtol=1e-5)


def test_row_conv_looks_ahead():
    got, p = run(layer.row_conv(input=sequence(), context_len=2, name="r"),
                 SEQUENCES)
    w = p["_r.w0"]
    want = [sum(x[t + k] * w[k] for k in range(2) if t + k < len(x))
            for x in SEQUENCES for t in range(len(x))]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_sequences_are_asked_for():
    with pytest.raises(ValueError, match="its input x is not a sequence"):
        layer.pooling(input=dense("x", 6))


NESTED = [[[[1, 2], [3, 4]], [[5, 6]]], [[[7, 8]]]]


def test_sub_sequences_are_pooled_to_sequences():
    s = layer.data(name="s", type=data_type.dense_vector_sub_sequence(2))
    inner = layer.pooling(input=s, pooling_type=pooling.Sum(),
                          agg_level=layer.AggregateLevel.TO_SEQUENCE)
    check(inner, [[4, 6], [5, 6], [7, 8]], NESTED)
    check(layer.pooling(input=inner, pooling_type=pooling.Sum()),
          [[9, 12], [7, 8]], NESTED)
    check(layer.pooling(input=s), [[5, 6], [7, 8]], NESTED)
    with pytest.raises(NotImplementedError, match="the mean over sub-seq"):
        layer.pooling(input=s, pooling_type=pooling.Avg())
    with pytest.raises(ValueError, match="has no sub-sequences"):
        layer.pooling(input=sequence(name="flat"), agg_level="seq")


def test_sequences_of_sparse_rows():
    s = layer.data(name="s", type=data_type.sparse_binary_vector_sequence(5))
    out = layer.fc(input=s, size=2, act=activation.Linear(), name="f")
    got, p = run(out, [[[0, 1], [4]], [[2]]])
    w = p["_f.w0"]
    np.testing.assert_allclose(got, [w[0] + w[1], w[4], w[2]], rtol=1e-5)
    got, _ = run(layer.last_seq(input=out), [[[0, 1], [4]], [[2]]])
    np.testing.assert_allclose(got, [w[4], w[2]], rtol=1e-5)


def test_kmax_seq_score_ranks_rows():
    got, _ = run(layer.kmax_seq_score(input=sequence(size=1), beam_size=1),
                 [[[0.1], [0.7]], [[0.3], [0.2], [0.1]]], field="id")
    assert got.tolist() == [1, 0]


# --- mixed -------------------------------------------------------------------

def test_mixed_adds_projections_up():
    x, y = dense("x", 6), dense("y", 6)
    with layer.mixed(size=6, name="m", bias_attr=True,
                     act=activation.Tanh()) as m:
        m += layer.full_matrix_projection(input=x)
        m += layer.trans_full_matrix_projection(input=y)
        m += layer.identity_projection(input=x)
        m += layer.dotmul_projection(input=y)
        m += layer.scaling_projection(input=x)
        m += layer.dotmul_operator(a=x, b=y, scale=2)
    got, p = run(m, X, Y)
    assert list(p) == ["_m.w0", "_m.w1", "_m.w3", "_m.w4", "_m.wbias"]
    want = X @ p["_m.w0"] + Y @ p["_m.w1"].T + X + Y * p["_m.w3"] + \
        X * p["_m.w4"] + 2 * X * Y + p["_m.wbias"]
    np.testing.assert_allclose(got, np.tanh(want), rtol=1e-4)


def test_slices_are_projected():
    x = dense("x", 6)
    check(layer.mixed(input=layer.slice_projection(x, [(0, 2), (5, 6)])),
          X[:, [0, 1, 5]], X)
    check(layer.mixed(input=layer.identity_projection(x, offset=4)),
          X[:, 4:], X)


def test_a_table_is_projected_straight_into_concat():
    ids = layer.data(name="i", type=data_type.integer_value(5))
    both = layer.concat(input=[layer.table_projection(input=ids, size=3),
                               layer.table_projection(input=ids, size=2)],
                        name="c")
    got, p = run(both, [4, 0])
    assert list(p) == ["_c.w0", "_c.w1"]
    np.testing.assert_array_equal(got, np.concatenate(
        [p["_c.w0"][[4, 0]], p["_c.w1"][[4, 0]]], 1))


def test_convolutions_are_projected():
    x = dense("x", 32)
    m = layer.mixed(input=[layer.conv_projection(
        input=x, filter_size=3, num_filters=2, num_channels=2, padding=1),
        layer.identity_projection(x)], name="m")
    got, p = run(m, PICTURE)
    assert p["_m.w0"].shape == (1, 36) and got.shape == (3, 32)


def test_a_complete_mixed_layer_takes_no_more():
    x = dense("x", 6)
    with layer.mixed(size=6) as m:
        m += layer.identity_projection(input=x)
    with pytest.raises(ValueError, match="it is complete"):
        m += layer.identity_projection(input=x)
    with pytest.raises(ValueError, match="it has no input"):
        with layer.mixed(size=6):
            pass
    with pytest.raises(ValueError, match="is 6 wide, expected 5"):
        layer.mixed(size=5, input=layer.identity_projection(x))


# --- arithmetic --------------------------------------------------------------

def test_layers_are_added_and_multiplied():
    x, y, w = dense("x", 6), dense("y", 6), dense("w", 1)
    columns = X, Y, ONE
    check(x + y + w, X + Y + ONE, *columns)
    for out, want in ((x + 2, X + 2), (2 + x, X + 2), (-x, -X),
                      (3 * x, 3 * X), (1 - x, 1 - X)):
        check(out, want, X)
    check(x - y, X - Y, X, Y)
    check(x * w, X * ONE, X, ONE)
    with pytest.raises(TypeError):
        x * y
    with pytest.raises(TypeError):
        x + "1"


def test_functions_of_op():
    check(paddle.op.exp(dense("x", 6)), np.exp(X), X)
    assert paddle.op.sigmoid(dense("y", 6)).name == "__sigmoid_0__"


# --- objects -----------------------------------------------------------------

def test_default_names_count_calls():
    x = dense("x", 6)
    names = [layer.fc(input=x, size=2).name, layer.fc(input=x, size=2).name,
             layer.addto(input=x).name, layer.cos_sim(a=x, b=x).name]
    assert names == ["__fc_layer_0__", "__fc_layer_1__", "__addto_0__",
                     "__cos_sim_0__"]


def test_two_layers_of_one_name_are_refused():
    x = dense("x", 6)
    layer.fc(input=x, size=2, name="same")
    with pytest.raises(ValueError, match="layer same: there is another"):
        layer.addto(input=x, name="same")


def test_a_layer_knows_what_it_is():
    x = dense("x", 6)
    out = layer.fc(input=x, size=2, act=activation.Relu())
    assert (out.layer_type, out.parents, out.size) == ("fc", [x], 2)
    assert isinstance(out.activation, activation.Relu)
    assert layer.get_layer(out.name) is out and out.outputs == ["default"]


def test_misspelt_arguments_get_a_suggestion():
    with pytest.raises(TypeError, match="'siz'; did you mean size"):
        layer.fc(input=dense("x", 6), siz=2)
    with pytest.raises(TypeError, match="'initial_sdt'; did you mean"):
        attr.Param(initial_sdt=1)
    with pytest.raises(AttributeError, match="did you mean embedding"):
        layer.embeding


@pytest.mark.parametrize("module,name", [
    (layer, "lstmemory"), (layer, "recurrent_group"), (layer, "crf"),
    (layer, "nce"), (networks, "simple_lstm"), (paddle.evaluator, "chunk")])
def test_what_is_not_there_says_so(module, name):
    with pytest.raises(AttributeError, match="%s.%s is not in this version "
                       "yet" % (module.__name__, name)):
        getattr(module, name)


def test_ids_are_not_multiplied():
    ids = layer.data(name="i", type=data_type.integer_value(5))
    with pytest.raises(ValueError, match="use layer.embedding first"):
        layer.fc(input=ids, size=3)
    with pytest.raises(ValueError, match="holds no ids"):
        layer.embedding(input=dense("x", 6), size=3)


def test_dropout_needs_another_activation_than_softmax():
    with pytest.raises(ValueError, match="softmax activation cannot have"):
        layer.fc(input=dense("x", 6), size=3, act=activation.Softmax(),
                 layer_attr=attr.Extra(drop_rate=0.5))
