# SPDX-License-Identifier: Apache-2.0
"""paddle.v2.trainer: passes, events, optimizers by numpy, metrics."""
import io

import numpy as np
import pytest

import paddle.v2 as paddle
from paddle.v2 import _flags, activation, attr, config_base, data_type
from paddle.v2 import evaluator, event, layer, optimizer

RNG = np.random.RandomState(4)
ROWS = RNG.normal(0, 1, (24, 3)).astype("float32")
TARGETS = (ROWS @ [[1.0], [-2.0], [0.5]]).astype("float32")
W = "_line.w0"


@pytest.fixture(autouse=True)
def graph(monkeypatch):
    monkeypatch.setattr(_flags, "_settings", None)
    config_base.reset()
    yield
    config_base.reset()


def line_cost(**weight):
    x = layer.data(name="x", type=data_type.dense_vector(3))
    y = layer.data(name="y", type=data_type.dense_vector(1))
    out = layer.fc(input=x, size=1, name="line", bias_attr=False,
                   act=activation.Linear(), param_attr=attr.Param(
                       name=W, initial_std=0.1, **weight))
    return layer.square_error_cost(input=out, label=y)


def samples():
    return zip(ROWS, TARGETS)


def reader(size=4):
    return paddle.batch(samples, size)


def make(update, cost=None, **more):
    cost = line_cost() if cost is None else cost
    parameters = paddle.parameters.create(cost)
    return paddle.trainer.SGD(cost=cost, parameters=parameters,
                              update_equation=update, **more), parameters


def gradient(w, start, size=4):
    """Of the sum over a batch."""
    x, y = ROWS[start:start + size], TARGETS[start:start + size]
    return 2 * x.T @ (x @ w - y)


def cost_of(w, start, size=4):
    x, y = ROWS[start:start + size], TARGETS[start:start + size]
    return float(((x @ w - y) ** 2).sum()) / size


# --- events ------------------------------------------------------------------

def test_events_come_in_order():
    trainer, _ = make(optimizer.Momentum(learning_rate=0.01))
    told = []
    trainer.train(reader(12), num_passes=2, event_handler=lambda e: told.
                  append((type(e).__name__, e.pass_id,
                          getattr(e, "batch_id", None))))
    batch = [("BeginIteration", "EndForwardBackward", "EndIteration")]
    want = []
    for p in range(2):
        want.append(("BeginPass", p, None))
        want += [(name, p, b) for b in range(2) for name in batch[0]]
        want.append(("EndPass", p, None))
    assert told == want


def test_the_cost_is_that_before_the_update_over_the_samples():
    trainer, p = make(optimizer.Momentum(learning_rate=0.01))
    w, costs = p[W].astype("float64"), []
    trainer.train(reader(), event_handler=lambda e: costs.append(e.cost)
                  if isinstance(e, event.EndIteration) else None)
    want = []
    for start in range(0, 24, 4):
        want.append(cost_of(w, start))
        w -= 0.01 * gradient(w, start)
    np.testing.assert_allclose(costs, want, rtol=1e-5)
    np.testing.assert_allclose(p[W], w, rtol=1e-5)


def test_wrong_arguments_are_type_errors():
    cost = line_cost()
    p = paddle.parameters.create(cost)
    update = optimizer.Adam()
    with pytest.raises(TypeError, match="parameters should be parameters"):
        paddle.trainer.SGD(cost, {}, update)
    with pytest.raises(TypeError, match="must be paddle.v2.optimizer.Optim"):
        paddle.trainer.SGD(cost, p, "adam")
    trainer = paddle.trainer.SGD(cost, p, update)
    with pytest.raises(TypeError, match="which can return a iterator"):
        trainer.train(reader=3)
    with pytest.raises(TypeError, match="event handler should be a function"):
        trainer.train(reader(), event_handler=3)


def test_an_empty_reader_is_a_pass_without_batches():
    trainer, _ = make(optimizer.Adam())
    told = []
    trainer.train(lambda: iter([]), event_handler=lambda e: told.append(
        type(e).__name__))
    assert told == ["BeginPass", "EndPass"]


# --- optimizers --------------------------------------------------------------

def step_momentum(s, g, w, lr, mu, d, t):
    s["v"] = mu * s["v"] - lr * (g + d * w)
    return w + s["v"]


def moved(s, g, w, lr, mu, d, r):
    s["v"] = mu * s["v"] - lr * r * (g + d * w)
    return w + s["v"]


def step_adagrad(s, g, w, lr, mu, d, t):
    s["s"] = s["s"] + g * g
    return moved(s, g, w, lr, mu, d, 1 / np.sqrt(s["s"] + 1e-6))


def step_decayed(s, g, w, lr, mu, d, t):
    rho = 0.0 if t == 1 else 0.9
    s["s"] = rho * s["s"] + (1 - rho) * g * g
    return moved(s, g, w, lr, mu, d, 1 / np.sqrt(s["s"] + 1e-3))


def step_rmsprop(s, g, w, lr, mu, d, t):
    rho = 0.0 if t == 1 else 0.9
    s["s"] = rho * s["s"] + (1 - rho) * g * g
    s["f"] = 0.9 * s["f"] + 0.1 * g
    return moved(s, g, w, lr, mu, d, 1 / np.sqrt(
        s["s"] - s["f"] ** 2 + 1e-3))


def step_adadelta(s, g, w, lr, mu, d, t):
    s["s"] = 0.9 * s["s"] + 0.1 * g * g
    r = np.sqrt((s["u"] + 1e-3) / (s["s"] + 1e-3))
    s["u"] = 0.9 * s["u"] + 0.1 * (g * r) ** 2
    return moved(s, g, w, lr, mu, d, r)


def step_adam(s, g, w, lr, mu, d, t):
    s["m"] = 0.8 * s["m"] + 0.2 * g
    s["n"] = 0.9 * s["n"] + 0.1 * g * g
    rate = lr * np.sqrt(1 - 0.9 ** t) / (1 - 0.8 ** t)
    return w - rate * s["m"] / (np.sqrt(s["n"]) + 1e-8)


def step_adamax(s, g, w, lr, mu, d, t):
    s["m"] = 0.8 * s["m"] + 0.2 * g
    s["n"] = np.maximum(0.9 * s["n"], abs(g))
    return w - lr / (1 - 0.8 ** t) * s["m"] / s["n"]


RUNNING = dict(rho=0.9, epsilon=1e-3)
METHODS = {
    "Momentum": (dict(momentum=0.7), step_momentum),
    "AdaGrad": ({}, step_adagrad),
    "DecayedAdaGrad": (RUNNING, step_decayed),
    "RMSProp": (RUNNING, step_rmsprop),
    "AdaDelta": (RUNNING, step_adadelta),
    "Adam": (dict(beta1=0.8, beta2=0.9), step_adam),
    "Adamax": (dict(beta1=0.8, beta2=0.9), step_adamax),
}


def follow(step, w, rate, mu=0.0, d=0.0, passes=2, clip=None):
    """Parameters after training, by numpy. rate: of (samples, pass)."""
    w = w.astype("float64")
    state = dict.fromkeys("vsfumn", np.zeros_like(w))
    t = 0
    for number in range(passes):
        for start in range(0, 24, 4):
            t += 1
            g = gradient(w, start)
            if clip:
                g = g.clip(-clip, clip)
            w = step(state, g, w, rate(4 * t, number), mu, d, t)
    return w


@pytest.mark.parametrize("name", METHODS)
def test_optimizer_follows_its_formula(name):
    more, step = METHODS[name]
    mu = more.get("momentum", 0.0)
    trainer, p = make(getattr(optimizer, name)(
        learning_rate=0.01, gradient_clipping_threshold=3.0, **more,
        regularization=optimizer.L2Regularization(0.5)))
    start = p[W]
    trainer.train(reader(), num_passes=2)
    d = 0.0 if name in ("Adam", "Adamax") else 0.5
    np.testing.assert_allclose(p[W], follow(
        step, start, lambda n, p: 0.01, mu, d, clip=3.0), rtol=2e-4)


def test_a_parameter_has_its_own_rate_momentum_and_decay():
    cost = line_cost(learning_rate=2.0, momentum=0.5, l2_rate=0.3,
                     gradient_clipping_threshold=1.0)
    trainer, p = make(optimizer.AdaGrad(
        learning_rate=0.01, regularization=optimizer.L2Regularization(9.0),
        gradient_clipping_threshold=7.0), cost)
    start = p[W]
    trainer.train(reader(), num_passes=2)
    np.testing.assert_allclose(p[W], follow(
        step_adagrad, start, lambda n, p: 0.02, 0.5, 0.3, clip=1.0),
        rtol=2e-4)


def test_l1_moves_towards_zero():
    trainer, p = make(optimizer.Momentum(learning_rate=0.01),
                      line_cost(l1_rate=4.0))
    w = p[W].astype("float64")
    trainer.train(reader())
    for start in range(0, 24, 4):
        w -= 0.01 * gradient(w, start)
        w = np.sign(w) * np.maximum(abs(w) - 0.04, 0)
    np.testing.assert_allclose(p[W], w, rtol=1e-4, atol=1e-6)


A, B = 0.02, 0.5
SCHEDULES = {
    "constant": lambda n, p: 0.01,
    "poly": lambda n, p: 0.01 * (1 + A * n) ** -B,
    "exp": lambda n, p: 0.01 * 0.9 ** (n / 8),
    "discexp": lambda n, p: 0.01 * 0.9 ** (n // 8),
    "linear": lambda n, p: max(0.01 - 1e-4 * n, 7e-3),
    "caffe_poly": lambda n, p: 0.01 * (1 - n / 40) ** 2 if n <= 40 else 0,
    "manual": lambda n, p: 0.01 * (1.0 if n <= 10 else 0.5 if n <= 30
                                   else 0.5),
    "pass_manual": lambda n, p: 0.01 * (1.0 if p <= 0 else 0.1),
}
NUMBERS = {"poly": (A, B), "exp": (0.9, 8), "discexp": (0.9, 8),
           "linear": (1e-4, 7e-3), "caffe_poly": (40, 2)}
ARGS = {"manual": "10:1.0,30:0.5", "pass_manual": "0:1.0,1:0.1"}


@pytest.mark.parametrize("name", SCHEDULES)
def test_learning_rate_follows_its_schedule(name):
    a, b = NUMBERS.get(name, (0, 0))
    trainer, p = make(optimizer.Momentum(
        momentum=0.7, learning_rate=0.01, learning_rate_schedule=name,
        learning_rate_decay_a=a, learning_rate_decay_b=b,
        learning_rate_args=ARGS.get(name, "")))
    start = p[W]
    trainer.train(reader(), num_passes=2)
    np.testing.assert_allclose(p[W], follow(step_momentum, start,
                                            SCHEDULES[name], 0.7), rtol=1e-4)


def test_adagrad_knows_no_schedule():
    trainer, p = make(optimizer.AdaGrad(learning_rate=0.01,
                                        learning_rate_decay_a=A,
                                        learning_rate_decay_b=B))
    start = p[W]
    trainer.train(reader(), num_passes=2)
    np.testing.assert_allclose(p[W], follow(step_adagrad, start,
                                            lambda n, p: 0.01), rtol=1e-4)


def test_wrong_optimizers_are_refused():
    with pytest.raises(TypeError, match="'learning_rat'; did you mean"):
        optimizer.Adam(learning_rat=1)
    with pytest.raises(ValueError, match="schedule is 'often', expected one"):
        optimizer.Adam(learning_rate_schedule="often")
    with pytest.raises(ValueError, match="expected 'count:rate,count:rate'"):
        optimizer.Momentum(learning_rate_schedule="manual",
                           learning_rate_args="3")
    with pytest.raises(TypeError, match="expected L2Regularization"):
        optimizer.Adam(regularization=0.1)


def test_training_again_starts_the_optimizer_anew():
    trainer, p = make(optimizer.Momentum(momentum=0.9, learning_rate=0.01))
    trainer.train(reader())
    start = p[W]
    trainer.train(reader())
    np.testing.assert_allclose(p[W], follow(
        step_momentum, start, lambda n, p: 0.01, 0.9, passes=1), rtol=1e-4)


def test_a_static_parameter_stays():
    trainer, p = make(optimizer.Adam(learning_rate=0.1), line_cost_static())
    start = {n: p[n] for n in p}
    trainer.train(reader())
    assert (p["fixed"] == start["fixed"]).all()
    assert (p["free"] != start["free"]).all()


def line_cost_static():
    x = layer.data(name="x", type=data_type.dense_vector(3))
    y = layer.data(name="y", type=data_type.dense_vector(1))
    hidden = layer.fc(input=x, size=2, param_attr=attr.Param(
        name="fixed", is_static=True), bias_attr=False)
    out = layer.fc(input=hidden, size=1, bias_attr=False,
                   param_attr=attr.Param(name="free"))
    return layer.square_error_cost(input=out, label=y)


# --- costs -------------------------------------------------------------------

def test_coeff_scales_the_gradient_and_not_the_cost():
    x = layer.data(name="x", type=data_type.dense_vector(3))
    y = layer.data(name="y", type=data_type.dense_vector(1))
    out = layer.fc(input=x, size=1, bias_attr=False, name="line",
                   act=activation.Linear())
    costs = [layer.square_error_cost(input=out, label=y, coeff=c)
             for c in (0.25, 0.5)]
    trainer, p = make(optimizer.Momentum(learning_rate=0.01), costs)
    w, told = p[W].astype("float64"), []
    trainer.train(reader(24), event_handler=lambda e: told.append(e.cost)
                  if isinstance(e, event.EndIteration) else None)
    np.testing.assert_allclose(told, [2 * cost_of(w, 0, 24)], rtol=1e-5)
    np.testing.assert_allclose(p[W], w - 0.01 * 0.75 * gradient(w, 0, 24),
                               rtol=1e-5)


def test_costs_of_time_steps_are_divided_by_sequences():
    x = layer.data(name="x", type=data_type.dense_vector_sequence(3))
    y = layer.data(name="y", type=data_type.dense_vector_sequence(1))
    out = layer.fc(input=x, size=1, bias_attr=False, name="line",
                   act=activation.Linear())
    trainer, p = make(optimizer.Momentum(learning_rate=0.01),
                      layer.square_error_cost(input=out, label=y))
    w = p[W].astype("float64")
    batch = [(ROWS[:5], TARGETS[:5]), (ROWS[5:6], TARGETS[5:6])]
    result = trainer.test(lambda: iter([batch]))
    np.testing.assert_allclose(result.cost, 3 * cost_of(w, 0, 6), rtol=1e-5)


def test_test_changes_nothing_and_weighs_batches():
    trainer, p = make(optimizer.Momentum(learning_rate=0.01))
    w = p[W]
    result = trainer.test(paddle.batch(samples, 7))  # the last one has 3
    np.testing.assert_allclose(result.cost, cost_of(w, 0, 24), rtol=1e-5)
    assert (p[W] == w).all()


# --- feeding -----------------------------------------------------------------

@pytest.mark.parametrize("feeding", [{"x": 2, "y": 0}, ["y", "unused", "x"]])
def test_columns_are_found_by_feeding(feeding):
    trainer, p = make(optimizer.Momentum(learning_rate=0.01))
    start = p[W]
    trainer.train(paddle.batch(lambda: ((y, "?", x) for x, y in samples()),
                               24), feeding=feeding)
    np.testing.assert_allclose(p[W], start - 0.01 * gradient(start, 0, 24),
                               rtol=1e-5)


def test_feeding_must_name_every_input():
    trainer, _ = make(optimizer.Adam())
    with pytest.raises(KeyError, match="no column for the data layer y; it names x"):
        trainer.train(reader(), feeding={"x": 0})


def test_a_sample_that_is_too_short_is_shown():
    trainer, _ = make(optimizer.Adam())
    with pytest.raises(ValueError, match="input y is column 1 of a sample, "):
        trainer.train(lambda: iter([[([1, 2, 3],)]]))
    with pytest.raises(RuntimeError, match='feed "x" is float32.1,2., expect'):
        trainer.train(lambda: iter([[([1, 2], [1])]]))
    with pytest.raises(ValueError, match="input x is InputType.dim=3, seq_typ"
                                         "e=0, type=0., but the samples"):
        trainer.train(lambda: iter([[("abc", [1])]]))


# --- threads -----------------------------------------------------------------

@pytest.mark.parametrize("threads", [2, 3])
def test_threads_share_a_batch_and_add_gradients(threads):
    trainer, p = make(optimizer.Momentum(momentum=0.5, learning_rate=0.01))
    start, costs = p[W], []
    trainer.train(reader(), event_handler=lambda e: costs.append(e.cost)
                  if isinstance(e, event.EndIteration) else None)
    one = p[W]
    p[W] = start
    paddle.init(trainer_count=threads)
    many = paddle.trainer.SGD(
        cost=layer.get_layer("__square_error_cost_0__"), parameters=p,
        update_equation=optimizer.Momentum(momentum=0.5, learning_rate=0.01))
    shared = []
    many.train(reader(), event_handler=lambda e: shared.append(e.cost)
               if isinstance(e, event.EndIteration) else None)
    np.testing.assert_allclose(p[W], one, rtol=1e-5)
    np.testing.assert_allclose(shared, costs, rtol=1e-5)


# --- sparse ------------------------------------------------------------------

IDS = RNG.randint(0, 50, (24, 2))


@pytest.mark.parametrize("name", ["Momentum", "AdaGrad"])
def test_sparse_updates_are_those_of_the_dense_table(name):
    def train(sparse):
        config_base.reset()
        words = [layer.data(name=n, type=data_type.integer_value(50))
                 for n in "ab"]
        y = layer.data(name="y", type=data_type.dense_vector(1))
        table = attr.Param(name="t", sparse_update=sparse)
        both = layer.concat(input=[layer.embedding(
            input=w, size=3, param_attr=table) for w in words])
        out = layer.fc(input=both, size=1)
        trainer, p = make(getattr(optimizer, name)(learning_rate=0.05),
                          layer.square_error_cost(input=out, label=y))
        trainer.train(paddle.batch(lambda: (
            (a, b, t) for (a, b), t in zip(IDS, TARGETS)), 4), num_passes=3)
        return p["t"]

    np.testing.assert_allclose(train(True), train(False), rtol=1e-5,
                               atol=1e-6)


# --- metrics -----------------------------------------------------------------

def classifier(weight=None, **more):
    x = layer.data(name="x", type=data_type.dense_vector(3))
    y = layer.data(name="kind", type=data_type.integer_value(3))
    out = layer.fc(input=x, size=3, act=activation.Softmax(), name="out")
    return x, y, out, layer.classification_cost(input=out, label=y, **more)


KINDS = ROWS.argmax(1)


def kinds():
    return zip(ROWS, (int(k) for k in KINDS))


def probabilities(p):
    e = np.exp(ROWS @ p["_out.w0"] + p["_out.wbias"])
    return e / e.sum(1, keepdims=True)


def test_a_classifier_counts_its_errors():
    *_, cost = classifier()
    trainer, p = make(optimizer.Momentum(learning_rate=0.0), cost)
    wrong = probabilities(p).argmax(1) != KINDS
    batches, whole = [], []

    def handler(e):
        if isinstance(e, event.EndIteration):
            batches.append(e.metrics["classification_error_evaluator"])
        if isinstance(e, event.EndPass):
            whole.append(e.metrics["classification_error_evaluator"])

    trainer.train(paddle.batch(kinds, 7), event_handler=handler)
    np.testing.assert_allclose(batches, [wrong[i:i + 7].mean()
                                         for i in (0, 7, 14, 21)])
    np.testing.assert_allclose(whole, [wrong.mean()])


def test_evaluators_by_numpy():
    x, y, out, cost = classifier()
    evaluator.classification_error(input=out, label=y, top_k=2, name="top2")
    evaluator.precision_recall(input=out, label=y, positive_label=1,
                               name="pr")
    evaluator.precision_recall(input=out, label=y, name="all")
    evaluator.sum(input=out)
    evaluator.column_sum(input=out, name="last")
    trainer, p = make(optimizer.Momentum(learning_rate=0.0), cost)
    got = trainer.test(paddle.batch(kinds, 7)).metrics
    q = probabilities(p)
    guess = q.argmax(1)
    hits = [((guess == k) & (KINDS == k)).sum() for k in range(3)]
    precision = hits[1] / max((guess == 1).sum(), 1)
    recall = hits[1] / (KINDS == 1).sum()
    assert got["top2"] == pytest.approx((q.argmin(1) == KINDS).mean())
    assert got["pr.precision"] == pytest.approx(precision)
    assert got["pr.recal"] == pytest.approx(recall)
    assert got["all.micro-average-precision"] == pytest.approx(
        (guess == KINDS).mean())
    assert got["__sum_evaluator_0__"] == pytest.approx(1.0)
    assert got["last"] == pytest.approx(q[:, 2].mean(), rel=1e-5)


def test_auc_and_pairs():
    x = layer.data(name="x", type=data_type.dense_vector(1))
    y = layer.data(name="y", type=data_type.integer_value(2))
    q = layer.data(name="q", type=data_type.integer_value(9))
    out = layer.addto(input=x)
    evaluator.auc(input=out, label=y, name="area")
    evaluator.pnpair(input=out, label=y, query_id=q, name="pairs")
    trainer, _ = make(optimizer.Adam(), layer.sum_cost(input=layer.fc(
        input=out, size=1)), extra_layers=[out, y, q])
    rows = [([0.9], 1, 0), ([0.8], 0, 0), ([0.3], 1, 0), ([0.1], 0, 1),
            ([0.6], 1, 1)]
    got = trainer.test(lambda: iter([rows])).metrics
    assert got["area"] == pytest.approx(4 / 6, abs=0.02)
    assert got["pairs"] == pytest.approx(2 / 1)


# --- saving ------------------------------------------------------------------

def test_averages_are_saved_and_not_used():
    trainer, p = make(optimizer.Momentum(
        learning_rate=0.01, model_average=optimizer.ModelAverage(
            average_window=0.5, max_average_window=4)))
    values = []
    trainer.train(reader(), event_handler=lambda e: values.append(p[W])
                  if isinstance(e, event.EndIteration) else None)
    f = io.BytesIO()
    trainer.save_parameter_to_tar(f)
    f.seek(0)
    saved = paddle.parameters.Parameters.from_tar(f)
    # the window turned after the fourth update; all six still count
    np.testing.assert_allclose(saved[W], np.mean(values, axis=0), rtol=1e-5)
    np.testing.assert_array_equal(p[W], values[-1])


def test_what_the_optimizer_decides_is_saved():
    trainer, p = make(optimizer.Momentum(
        momentum=0.9, regularization=optimizer.L2Regularization(0.25)))
    config = p.get_config(W)
    assert (config.momentum, config.decay_rate) == (0.9, 0.25)


# --- inference ---------------------------------------------------------------

def test_a_network_is_stored_and_asked_without_its_script():
    x, y, out, cost = classifier()
    trainer, p = make(optimizer.Adam(), cost)
    f = io.BytesIO()
    paddle.topology.Topology(out).serialize_for_inference(f)
    f.seek(0)
    config_base.reset()
    stored = paddle.inference.Inference(parameters=p, fileobj=f)
    got = stored.infer(input=lambda: iter([[(r,) for r in ROWS]]))
    np.testing.assert_allclose(got, probabilities(p), rtol=1e-5)


def test_what_serialize_did_not_write_is_refused():
    with pytest.raises(ValueError, match="not written by Topology.serialize"):
        paddle.inference.Inference(parameters=None, fileobj=io.BytesIO(b"x"))


def test_several_outputs_follow_each_other():
    x, y, out, _ = classifier()
    p = paddle.parameters.create(out)
    ids = layer.max_id(input=out)
    one, two = paddle.infer(output_layer=[ids, ids], parameters=p,
                            input=[(r,) for r in ROWS],
                            field=["id", "value"])
    assert one.tolist() == 2 * probabilities(p).argmax(1).tolist()
    assert two.shape == (48, 1)
    with pytest.raises(ValueError, match="field is 'ids', expected one of"):
        paddle.infer(output_layer=ids, parameters=p, input=[(ROWS[0],)],
                     field="ids")
    assert paddle.infer(output_layer=out, parameters=p, input=[]) == []


def test_a_trainer_and_an_inference_share_values():
    x, y, out, cost = classifier()
    trainer, p = make(optimizer.Adam(learning_rate=0.1), cost)
    asked = paddle.inference.Inference(parameters=p, output_layer=out)
    trainer.train(paddle.batch(kinds, 8))
    got = asked.infer(input=lambda: iter([[(r,) for r in ROWS]]))
    np.testing.assert_allclose(got, probabilities(p), rtol=1e-4)


def test_batch_norm_keeps_running_values():
    x = layer.data(name="x", type=data_type.dense_vector(3))
    y = layer.data(name="y", type=data_type.dense_vector(1))
    norm = layer.batch_norm(input=x, act=activation.Linear(), name="n")
    cost = layer.square_error_cost(input=layer.fc(input=norm, size=1),
                                   label=y)
    trainer, p = make(optimizer.Momentum(learning_rate=0.0), cost)
    trainer.train(reader(12))
    mean = var = 0.0
    for start in (0, 12):
        rows = ROWS[start:start + 12]
        mean = 0.9 * mean + 0.1 * rows.mean(0)
        var = 0.9 * var + 0.1 * rows.var(0)
    np.testing.assert_allclose(p["_n.w1"][0], mean, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(p["_n.w2"][0], var, rtol=1e-4)
    got = paddle.infer(output_layer=norm, parameters=p,
                       input=[(r,) for r in ROWS])
    np.testing.assert_allclose(got, (ROWS - mean) / np.sqrt(var + 1e-5),
                               rtol=1e-3, atol=1e-4)


def test_dropout_scales_when_it_tests():
    x = layer.data(name="x", type=data_type.dense_vector(3))
    out = layer.fc(input=x, size=2, name="f", act=activation.Linear(),
                   layer_attr=attr.Extra(drop_rate=0.25))
    p = paddle.parameters.create(out)
    got = paddle.infer(output_layer=out, parameters=p,
                       input=[(r,) for r in ROWS])
    np.testing.assert_allclose(got, 0.75 * ROWS @ p["_f.w0"], rtol=1e-4,
                               atol=1e-6)


def test_the_gradient_of_an_output_is_held():
    x = layer.data(name="x", type=data_type.dense_vector(3))
    y = layer.data(name="y", type=data_type.dense_vector(1))
    out = layer.fc(input=x, size=1, name="f", act=activation.Linear(),
                   bias_attr=False, layer_attr=attr.Extra(
                       error_clipping_threshold=0.5))
    trainer, p = make(optimizer.Momentum(learning_rate=1.0),
                      layer.square_error_cost(input=out, label=y))
    p["_f.w0"] = np.zeros((3, 1))
    trainer.train(lambda: iter([[([1, 2, 3], [100.0])]]))
    np.testing.assert_allclose(p["_f.w0"].ravel(), [0.5, 1.0, 1.5])


def test_pruning_is_refused():
    with pytest.raises(NotImplementedError, match="update_hooks .pruning."):
        attr.Param(update_hooks=attr.Hook("pruning", sparsity_ratio=0.5))


def test_a_topology_tells_what_it_is():
    x, y, out, cost = classifier()
    topology = paddle.topology.Topology(cost)
    assert [n for n, _ in topology.data_type()] == ["x", "kind"]
    assert set(topology.data_layers()) == {"x", "kind"}
    assert topology.get_layer("out") is out
    proto = topology.proto()
    assert proto.input_layer_names == ["x", "kind"]
    assert [p.name for p in proto.parameters] == ["_out.w0", "_out.wbias"]
    assert "parameter _out.w0: [3, 3]" in str(proto)
    assert [n for n, _ in paddle.topology.Topology(out).data_type()] == ["x"]
    with pytest.raises(ValueError, match="paddle.v2.config_base.Layer"):
        paddle.topology.Topology("cost")
