# SPDX-License-Identifier: Apache-2.0
"""Optimizers, gradients, clips, regularizers and how parameters start."""
import inspect

import numpy as np
import pytest

import paddle.fluid as fluid
from fresh import fresh
from paddle.fluid import layers, optimizer


def required(cls):
    """A value for each argument without a default, but the learning rate."""
    return {p.name: 0.9 for p in inspect.signature(cls).parameters.values()
            if p.default is p.empty and p.name != "learning_rate"}


def line(start=1.0, **attr):
    """A loss that is the mean of w * x, whose gradient is that of x."""
    x = layers.data("x", [2])
    w = layers.create_parameter([2, 1], "float32", attr=fluid.ParamAttr(
        name="w", initializer=fluid.initializer.Constant(start), **attr))
    return w, layers.mean(layers.mul(x, w))


FEED = {"x": np.array([[1, 2], [3, 4]], "float32")}  # mean gradient: 2, 3


@pytest.mark.parametrize("name", optimizer._CLASSES)
def test_every_optimizer_steps_against_the_gradient(name):
    with fresh() as net:
        w, loss = line()
        cls = getattr(optimizer, name)
        made = cls(learning_rate=0.1, **required(cls))
        assert isinstance(made, getattr(optimizer, name + "Optimizer"))
        ops, params_grads = made.minimize(loss)
        assert ops and [p.name for p, _ in params_grads] == ["w"]
        net.run([], feed=FEED)
        assert (net.run([w], feed=FEED)[0] < 1.0).all()


def test_sgd_moves_by_rate_times_gradient():
    with fresh() as net:
        w, loss = line()
        optimizer.SGD(0.1).minimize(loss)
        got, = net.run([w], feed=FEED)
        np.testing.assert_allclose(got.ravel(), [0.8, 0.7], rtol=1e-6)


def test_minimize_is_backward_and_apply_gradients():
    with fresh() as net:
        w, loss = line()
        sgd = optimizer.SGD(0.1)
        params_grads = sgd.backward(loss)
        assert [(p.name, g.name) for p, g in params_grads] == [
            ("w", "w@GRAD")]
        ops = sgd.apply_gradients(params_grads)
        assert [op.type for op in ops] == ["sgd"]
        assert sgd._global_learning_rate().name == "learning_rate_0"
        np.testing.assert_allclose(net.run([w], feed=FEED)[0].ravel(),
                                   [0.8, 0.7], rtol=1e-6)


def test_minimize_works_outside_of_the_programs_guard():
    with fresh() as net:
        w, loss = line()
    optimizer.Momentum(0.1, 0.9).minimize(loss, net.startup)
    assert "momentum" in net.types()
    np.testing.assert_allclose(net.run([w], feed=FEED)[0].ravel(),
                               [0.8, 0.7], rtol=1e-6)


def test_an_optimizer_serves_several_programs():
    adam = optimizer.Adam(0.1)
    assert adam._global_learning_rate() is None
    for _ in range(2):
        with fresh() as net:
            w, loss = line()
            adam.minimize(loss)
            rate = adam._global_learning_rate()
            assert rate.block.program is net.main
            assert (net.run([w], feed=FEED)[0] < 1.0).all()


@pytest.mark.parametrize("rate", [1, "0.1", None])
def test_a_learning_rate_is_a_float_or_a_variable(rate):
    with pytest.raises(TypeError, match="float or Variable"):
        optimizer.SGD(learning_rate=rate)


def test_a_schedule_is_a_learning_rate():
    with fresh() as net:
        w, loss = line()
        rate = layers.piecewise_decay([1], [0.1, 0.0])
        optimizer.SGD(learning_rate=rate).minimize(loss)
        got = [net.run([w], feed=FEED)[0].ravel() for _ in range(3)]
        np.testing.assert_allclose(got, [[0.8, 0.7]] * 3, rtol=1e-6)


def test_a_parameter_has_a_speed_of_its_own():
    with fresh() as net:
        w, loss = line(learning_rate=10.0)
        optimizer.SGD(0.01).minimize(loss)
        np.testing.assert_allclose(net.run([w], feed=FEED)[0].ravel(),
                                   [0.8, 0.7], rtol=1e-6)


def test_a_parameter_that_is_not_trained_stays():
    with fresh() as net:
        w, loss = line(trainable=False)
        v = layers.create_parameter([1], "float32", name="v")
        optimizer.SGD(0.1).minimize(layers.elementwise_add(loss, v))
        assert net.run([w], feed=FEED)[0].ravel().tolist() == [1, 1]


@pytest.mark.parametrize("name", ["SGD", "Momentum", "Adam"])
def test_summaries_of_data_are_added_up_by_any_optimizer(name):
    decay = fluid.regularizer.L2Decay(0.5)
    x = np.arange(8, dtype="float32").reshape(4, 2)
    with fresh() as net:
        y = layers.data_norm(layers.data("x", [2]), epsilon=0.001, name="n",
                             param_attr={"batch_size": 4, "batch_sum": 4.0,
                                         "batch_square": 16})
        cls = getattr(optimizer, name)
        cls(learning_rate=0.1, regularization=decay,
            **required(cls)).minimize(layers.mean(layers.fc(y, 1)))
        for _ in range(2):
            got, = net.run([y], {"x": x})
        size, total, squares = (np.array(net.scope.find_var(
            "n." + name).get_tensor()) for name in (
                "batch_size", "batch_sum", "batch_square_sum"))
    sums, first = x.sum(0), ((x - 1) ** 2).sum(0) + 0.004
    mean = (4 + sums) / 8
    np.testing.assert_allclose(size, [12, 12])
    np.testing.assert_allclose(total, 4 + 2 * sums)
    np.testing.assert_allclose(
        squares, 16.004 + first + ((x - mean) ** 2).sum(0), rtol=1e-5)
    np.testing.assert_allclose(got, (x - mean) * np.sqrt(8 / (16 + first)),
                               rtol=1e-5)


def test_grad_clip_of_minimize_is_not_silently_lost():
    with fresh():
        _, loss = line()
        with pytest.warns(UserWarning, match="set_gradient_clip"):
            optimizer.SGD(0.1).minimize(loss, grad_clip=object())


# --- one's own ---

class Halving(optimizer.Optimizer):
    """w -= 0.5 * gradient, and counts its steps."""

    def _create_accumulators(self, block, parameters):
        for p in parameters:
            self._add_accumulator("steps", p, shape=[1])

    def _append_optimize_op(self, block, param_and_grad):
        param, grad = param_and_grad
        self.rate = self._create_param_lr(param_and_grad)
        self.steps = self._get_accumulator("steps", param)
        return block.append_op(
            type="sgd", inputs={"Param": param, "Grad": grad,
                                "LearningRate": self.rate},
            outputs={"ParamOut": param})

    def _finish_update(self, block, parameters_and_grads):
        block.append_op(type="increment", inputs={"X": self.steps},
                        outputs={"Out": self.steps}, attrs={"step": 1.0})


def test_an_optimizer_of_ones_own_is_called_back():
    with fresh() as net:
        w, loss = line()
        mine = Halving(learning_rate=0.5)
        ops, _ = mine.minimize(loss)
        assert [op.type for op in ops] == ["sgd", "increment"]
        assert mine.steps.name == "w_steps_0"
        assert mine.rate.name == "learning_rate_0"
        net.run([], feed=FEED)
        got, steps = net.run([w, mine.steps], feed=FEED)
        np.testing.assert_allclose(got.ravel(), [-1, -2], rtol=1e-6)
        assert steps.tolist() == [2]


class Counting(optimizer.Momentum):
    """Momentum that counts its updates, and adds an op after each."""
    updates = 0

    def _append_optimize_op(self, block, param_and_grad):
        op = super()._append_optimize_op(block, param_and_grad)
        assert op.type == "momentum"
        self.updates += 1
        block.append_op(type="scale", inputs={"X": param_and_grad[0]},
                        outputs={"Out": param_and_grad[0]},
                        attrs={"scale": 0.5})
        return op


def test_a_known_optimizer_may_be_added_to():
    with fresh() as net:
        _, loss = line()
        mine = Counting(learning_rate=0.5, momentum=0.9)
        ops, _ = mine.minimize(loss)
        assert [op.type for op in ops] == ["momentum", "scale"]
        assert ops[0].attr("mu") == pytest.approx(0.9)
        assert mine.updates == 1
        net.run([], feed=FEED)


@pytest.mark.parametrize("name,ops", [("Adam", ["adam", "scale", "scale"]),
                                      ("SGD", ["sgd"])])
def test_a_subclass_that_only_passes_on_changes_nothing(name, ops):
    cls = getattr(optimizer, name)

    class Same(cls):
        def _create_accumulators(self, block, parameters):
            super()._create_accumulators(block, parameters)

        def _append_optimize_op(self, block, param_and_grad):
            return super()._append_optimize_op(block, param_and_grad)

        def _finish_update(self, block, parameters_and_grads):
            super()._finish_update(block, parameters_and_grads)
    texts = []
    for one in (cls, Same):
        with fresh() as net:
            _, loss = line()
            made, _ = one(learning_rate=0.1).minimize(loss)
            assert [op.type for op in made] == ops
            texts.append([(op.type, op.input_arg_names, op.output_arg_names,
                           op.attr("op_role"))
                          for p in (net.main, net.startup)
                          for op in p.global_block().ops])
    assert texts[0] == texts[1]


def test_an_optimizer_without_an_update_says_so():
    with fresh():
        _, loss = line()
        with pytest.raises(NotImplementedError, match="_append_optimize_op"):
            optimizer.Optimizer(0.1).minimize(loss)


def test_errors_of_a_callback_come_out_as_they_are():
    class Broken(Halving):
        def _create_accumulators(self, block, parameters):
            raise KeyError("from inside")

    with fresh():
        _, loss = line()
        with pytest.raises(KeyError, match="from inside"):
            Broken(0.1).minimize(loss)


# --- gradients ---

def test_append_backward_gives_parameters_and_gradients():
    with fresh() as net:
        _, loss = line()
        (param, grad), = fluid.append_backward(loss)
        assert (param.name, grad.name) == ("w", "w@GRAD")
        np.testing.assert_allclose(net.run([grad], feed=FEED)[0].ravel(),
                                   [2, 3])
        with pytest.raises(TypeError, match="loss is str"):
            fluid.append_backward("loss")
        with pytest.raises(TypeError, match="SGDOptimizer: loss is int"):
            optimizer.SGD(0.1).minimize(3)
        with pytest.raises(NotImplementedError, match="callbacks"):
            fluid.append_backward(loss, callbacks=[print])


def test_gradients_of_an_input():
    with fresh() as net:
        x = layers.data("x", [2], stop_gradient=False)
        y = layers.square(x)
        got = fluid.gradients(y, x)
        again = fluid.backward.calc_gradient(layers.square(x), x)
        assert isinstance(got, list)
        for g in (got[0], again):
            np.testing.assert_allclose(net.run([g], feed=FEED)[0],
                                       2 * FEED["x"])


# --- clips and decay ---

@pytest.mark.parametrize("clip,want", [
    (fluid.clip.GradientClipByValue(2.5), [2, 2.5]),
    (fluid.clip.GradientClipByValue(10.0, 2.5), [2.5, 3]),
    (fluid.clip.GradientClipByNorm(1.0), [2 / 13 ** 0.5, 3 / 13 ** 0.5]),
    (fluid.clip.GradientClipByGlobalNorm(1.0),
     [2 / 13 ** 0.5, 3 / 13 ** 0.5])], ids=str)
def test_gradients_are_clipped(clip, want):
    for by_attr in (True, False):
        with fresh() as net:
            w, loss = line(0.0, gradient_clip=clip if by_attr else None)
            if not by_attr:
                fluid.clip.set_gradient_clip(clip, param_list=["w"])
            optimizer.SGD(1.0).minimize(loss)
            got, = net.run([w], feed=FEED)
            np.testing.assert_allclose(got.ravel(), np.negative(want),
                                       rtol=1e-5)


def test_set_gradient_clip_takes_clips_only():
    with fresh(), pytest.raises(TypeError, match="GradientClipByValue"):
        fluid.clip.set_gradient_clip(fluid.clip.ErrorClipByValue(1.0))


def test_errors_are_clipped_where_they_pass():
    with fresh() as net:
        x = layers.data("x", [2])
        w = layers.create_parameter([2, 1], "float32", name="w")
        y = layers.mul(x, w)
        y.error_clip = fluid.clip.ErrorClipByValue(max=0.1)
        (_, grad), = fluid.append_backward(layers.mean(y))
        np.testing.assert_allclose(net.run([grad], feed=FEED)[0].ravel(),
                                   [0.4, 0.6], rtol=1e-6)


@pytest.mark.parametrize("decay,pull", [
    (fluid.regularizer.L2Decay(0.5), 1.0),
    (fluid.regularizer.L1Decay(0.5), 0.5)], ids=str)
def test_decay_is_added_to_gradients(decay, pull):
    for by_attr in (True, False):
        with fresh() as net:
            w, loss = line(2.0, regularizer=decay if by_attr else None)
            optimizer.SGD(1.0, regularization=None if by_attr
                          else decay).minimize(loss)
            got, = net.run([w], feed=FEED)
            np.testing.assert_allclose(
                got.ravel(), [2 - 2 - pull, 2 - 3 - pull], rtol=1e-6)


def test_a_regularizer_of_ones_own_is_called_back():
    class Tenth(fluid.regularizer.WeightDecayRegularizer):
        def __call__(self, param, grad, block):
            return layers.scale(param, 0.1)

    with fresh() as net:
        w, loss = line(2.0, regularizer=Tenth())
        optimizer.SGD(1.0).minimize(loss)
        np.testing.assert_allclose(net.run([w], feed=FEED)[0].ravel(),
                                   [-0.2, -1.2], rtol=1e-5)


# --- how parameters start ---

def start(initializer, shape=(200, 100)):
    with fresh() as net:
        w = layers.create_parameter(list(shape), "float32", attr=initializer)
        return net.run([w])[0]


I = fluid.initializer


@pytest.mark.parametrize("initializer,mean,deviation", [
    (I.Constant(3.0), 3, 0),
    (I.Uniform(0.0, 2.0), 1, 2 / 12 ** 0.5),
    (I.Normal(1.0, 2.0), 1, 2),
    (I.TruncatedNormal(0.0, 1.0), 0, 0.8796),
    (I.Xavier(), 0, (2 / 300) ** 0.5),
    (I.Xavier(uniform=False), 0, (2 / 300) ** 0.5),
    (I.Xavier(fan_in=2, fan_out=4), 0, (2 / 6) ** 0.5),
    (I.MSRA(), 0, (2 / 200) ** 0.5),
    (I.MSRA(uniform=False, fan_in=8), 0, 0.5)])
def test_starts_are_spread_as_said(initializer, mean, deviation):
    got = start(fluid.ParamAttr(initializer=initializer))
    assert abs(got.mean() - mean) < 0.03 + 0.02 * deviation
    assert abs(got.std() - deviation) < 0.03 * deviation + 1e-6


def test_a_seed_gives_the_same_numbers():
    a, b, c = (start(I.Normal(seed=s)) for s in (5, 5, 6))
    assert (a == b).all() and (a != c).any()


def test_an_array_is_a_start():
    want = np.arange(6, dtype="float32").reshape(2, 3)
    assert (start(I.NumpyArrayInitializer(want), (2, 3)) == want).all()
    with pytest.raises(TypeError, match="expected numpy.ndarray"):
        I.NumpyArrayInitializer([1, 2])


def test_an_initializer_of_ones_own_is_called_back():
    class Two(I.Initializer):
        def __call__(self, var, block):
            return block._prepend_op(
                type="fill_constant", outputs={"Out": var},
                attrs={"shape": list(var.shape), "dtype": int(var.dtype),
                       "value": 2.0})

    assert (start(Two(), (2, 2)) == 2).all()


def test_an_initializer_can_be_called_with_a_block():
    with fresh():
        program = fluid.Program()
        block = program.global_block()
        p = block.create_parameter(name="p", shape=[2, 2], dtype="float32",
                                   initializer=I.Uniform(seed=3))
        assert [op.type for op in block.ops] == ["uniform_random"]
        assert block.ops[0].output("Out") == [p.name]


def test_attributes_in_short_forms():
    with fresh() as net:
        x = layers.data("x", [2])
        layers.fc(x, 1, param_attr="named", bias_attr=I.Constant(5.0))
        layers.fc(x, 1, param_attr=fluid.regularizer.L2Decay(0.1),
                  bias_attr=False)
        names = {p.name: p for p in net.main.global_block().all_parameters()}
        assert list(names) == ["named", "fc_0.b_0", "fc_1.w_0"]
        assert net.run(["fc_0.b_0"], feed=FEED)[0].item() == 5.0
        assert str(names["fc_1.w_0"].regularizer) == \
            "L2Decay, regularization_coeff=0.100000"


def test_init_on_cpu_changes_nothing():
    with I.init_on_cpu():
        assert I.force_init_on_cpu() is False


def test_an_optimizer_that_fails_to_be_made_leaves_nothing_behind():
    with fresh() as net:
        for _ in range(200):  # each had written to memory it had freed
            with pytest.raises(TypeError, match='"beta1" must be a number'):
                optimizer.Adam(0.1, beta1="x")
        w, loss = line()
        optimizer.Adam(0.1).minimize(loss)
        net.run([w], feed=FEED)


def test_gradients_are_of_and_by_variables():
    with fresh():
        w, loss = line()
        with pytest.raises(ValueError, match="targets has a NULL at index 0"):
            fluid.gradients([None], [w])
        with pytest.raises(ValueError, match="inputs has a NULL at index 1"):
            fluid.gradients([loss], [w, None])


def test_accumulators_are_listed_by_kind_and_parameter():
    with fresh() as net:
        w, loss = line()
        adam = optimizer.Adam(learning_rate=0.1)
        adam.minimize(loss)
        assert adam._accumulators["moment1"]["w"].name == "w_moment1_0"
        assert sorted(adam._accumulators) == [
            "beta1_pow_acc", "beta2_pow_acc", "moment1", "moment2"]
        assert adam._accumulators["moment2"]["w"] is \
            net.main.global_block().var("w_moment2_0")
        assert optimizer.SGD(learning_rate=0.1)._accumulators == {}


def test_gradients_are_clipped_and_decayed_by_hand():
    with fresh() as net:
        w, loss = line(gradient_clip=fluid.clip.GradientClipByValue(2.5))
        pairs = fluid.backward.append_backward(loss)
        clipped = fluid.clip.append_gradient_clip_ops(pairs)
        decayed = optimizer.append_regularization_ops(
            clipped, fluid.regularizer.L2Decay(0.5))
        assert net.types()[-3:] == ["clip", "scale", "sum"]
        (param, grad), = decayed
        assert param is w
        got, = net.run([grad], feed=FEED)
        assert got.ravel().tolist() == [2.5, 3.0]  # min(g, 2.5) + 0.5 * w


def test_gradients_without_clip_and_decay_stay():
    with fresh():
        _, loss = line()
        pairs = fluid.backward.append_backward(loss)
        assert fluid.clip.append_gradient_clip_ops(pairs) == pairs
        assert optimizer.append_regularization_ops(pairs) == pairs
