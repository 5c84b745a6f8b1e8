# SPDX-License-Identifier: Apache-2.0
"""fluid.layers and fluid.nets: from the tables of C to programs that run."""
import inspect

import numpy as np
import pytest

import paddle.fluid as fluid
from fresh import fresh
from paddle.fluid import layers


def test_a_layer_appends_its_ops_under_fluids_names():
    with fresh() as net:
        x = layers.data(name="x", shape=[13])
        y = layers.fc(input=x, size=2, act="relu")
        assert net.types() == ["mul", "elementwise_add", "relu"]
        assert (y.shape, y.name) == ((-1, 2), "fc_0.tmp_2")
        names = [p.name for p in net.main.global_block().all_parameters()]
        assert names == ["fc_0.w_0", "fc_0.b_0"]


def test_positional_and_named_arguments_are_the_same():
    with fresh() as net:
        x = layers.data("x", [4])
        a = layers.fc(x, 3, 1, None, False)
        b = layers.fc(input=x, size=3, num_flatten_dims=1, bias_attr=False)
        assert a.shape == b.shape == (-1, 3)
        assert net.types() == ["mul", "mul"]


def test_a_call_that_lacks_an_argument_names_it():
    with fresh(), pytest.raises(TypeError, match=r"fc\(\): missing a required "
                                "argument: 'size'"):
        layers.fc(input=layers.data("x", [4]))


@pytest.mark.parametrize("layer,argument", [("fc", "input"),
                                            ("mean", "x")])
def test_an_array_where_a_variable_goes_is_named(layer, argument):
    size = dict(size=1) if layer == "fc" else {}
    with fresh(), pytest.raises(TypeError, match='%s: argument "%s" must be a '
                                "Variable, not .*ndarray" % (layer, argument)):
        getattr(layers, layer)(np.zeros((2, 3)), **size)


def test_a_whole_number_parameter_needs_an_initializer():
    with fresh(), pytest.raises(TypeError, match="is int64, but the default "
                                "initializer makes floats"):
        layers.create_parameter([2], "int64")
    with fresh():
        start = fluid.initializer.Constant(3)
        layers.create_parameter([2], "int64", default_initializer=start)


@pytest.mark.parametrize("dim,lengths", [(None, (1, 1)), (0, (4, 1)),
                                         (1, (1, 3))])
def test_a_normalised_weight_is_a_direction_and_a_length(dim, lengths):
    attr = fluid.WeightNormParamAttr(dim=dim, name="w")
    with fresh() as net:
        x = layers.data("x", [4])
        y = layers.fc(x, 3, param_attr=attr, bias_attr=False)
        names = {p.name: p.shape
                 for p in net.main.global_block().all_parameters()}
        assert names == {"w_v": (4, 3), "w_g": lengths}
        fluid.optimizer.SGD(0.5).minimize(layers.reduce_sum(y))
        ones = np.eye(4, dtype="float32")
        first, v, g = net.run([y, "w_v", "w_g"], feed={"x": ones})
        assert g.shape == lengths
        second, = net.run([y], feed={"x": ones})
        axis = None if dim is None else 1 - dim
        norm = np.sqrt((v ** 2).sum(axis, keepdims=True))
        np.testing.assert_allclose(second, v * g / norm, rtol=1e-5)
        assert np.abs(first - second).max() > 1e-3  # it did learn


def test_a_normalised_weight_starts_as_its_initializer_says():
    def weight(cls):
        with fresh() as net:
            attr = cls(name="w", initializer=fluid.initializer.Uniform(
                seed=7))
            y = layers.fc(layers.data("x", [4]), 3, param_attr=attr,
                          bias_attr=False)
            return net.run([y], feed={"x": np.eye(4, dtype="float32")})[0]
    np.testing.assert_allclose(weight(fluid.WeightNormParamAttr),
                               weight(fluid.ParamAttr), rtol=1e-6)


def test_a_dimension_that_is_not_there_is_not_normalised():
    attr = fluid.WeightNormParamAttr(dim=2, name="w")
    with fresh(), pytest.raises(ValueError, match='"w": dim of its weight '
                                "normalisation is 2, but"):
        layers.fc(layers.data("x", [4]), 3, param_attr=attr)


def test_data_takes_free_dimensions():
    with fresh():
        assert layers.data("a", [3]).shape == (-1, 3)
        assert layers.data("b", [None, 3]).shape == (-1, 3)
        assert layers.data("c", [3, -1]).shape == (3, -1)
        assert layers.data("d", [3], append_batch_size=False).shape == (3,)
        d = layers.data("e", [1], dtype="int64", lod_level=1)
        assert (d.dtype, d.lod_level) == (fluid.core.VarDesc.VarType.INT64, 1)
        assert d.stop_gradient and d.is_data


def test_several_results_come_as_a_tuple_or_list():
    with fresh() as net:
        x = layers.assign(np.array([[1, 5, 3]], "float32"))
        values, indices = layers.topk(x, k=2)
        a, b, c = layers.split(x, num_or_sections=3, dim=1)
        got = net.run([values, indices, b])
        assert [g.tolist() for g in got] == [[[5, 3]], [[1, 2]], [[5]]]


def test_outputs_can_be_given():
    with fresh() as net:
        a = layers.fill_constant([1], "float32", 2.0)
        b = layers.fill_constant([1], "float32", 3.0)
        cond = layers.create_tensor("bool")
        total = layers.create_tensor("float32")
        scaled = layers.create_tensor("float32")
        assert layers.less_than(a, b, cond=cond) is cond
        assert layers.sums([a, b], out=total) is total
        assert layers.ops._scale(x=a, scale=10.0, out=scaled) is scaled
        got = net.run([cond, total, scaled])
        assert [g.item() for g in got] == [True, 5.0, 20.0]


def test_a_name_may_be_that_of_the_output():
    with fresh():
        x = layers.data("x", [2])
        assert layers.mean(x=x, name="the_mean").name == "the_mean"
        assert layers.scale(x, 2.0, name="twice").name == "twice"


def test_parameters_and_global_variables_start_in_startup():
    with fresh() as net:
        p = layers.create_parameter(
            [2], "float32", default_initializer=fluid.initializer.Constant(4))
        g = layers.create_global_var([1], 7.0, "float32", persistable=True)
        assert isinstance(p, fluid.framework.Parameter)
        assert [v.tolist() for v in net.run([p, g])] == [[4, 4], [7]]


def test_a_step_counter_counts_runs():
    with fresh() as net:
        counter = layers.autoincreased_step_counter(begin=5)
        assert [net.run([counter])[0].item() for _ in range(3)] == [5, 6, 7]


@pytest.mark.parametrize("step,want", [(1.0, 10.0), (2.0, 20.0),
                                       (9.0, 30.0)])
def test_the_first_case_that_holds_runs(step, want):
    with fresh() as net:
        t = layers.fill_constant([1], "float32", step)
        out = layers.create_global_var([1], 0.0, "float32", persistable=True)

        def is_(number):
            return layers.equal(t, layers.fill_constant(
                [1], "float32", number))

        def give(number):
            layers.assign(layers.fill_constant([1], "float32", number), out)

        with layers.Switch() as switch:
            with switch.case(is_(1.0)):
                give(10.0)
            with switch.case(is_(2.0)):
                give(20.0)
            with switch.default():
                give(30.0)
        assert net.main.current_block().idx == 0
        assert net.run([out])[0].item() == want


def test_a_case_stands_inside_its_switch():
    with fresh():
        switch = layers.Switch()
        with pytest.raises(ValueError, match="inside"):
            with switch.default():
                pass


def test_schedules_are_layers():
    with fresh() as net:
        rate = layers.exponential_decay(0.1, 2, 0.5, staircase=True)
        got = [net.run([rate])[0].item() for _ in range(4)]
        np.testing.assert_allclose(got, [0.1, 0.1, 0.05, 0.05], rtol=1e-6)


def test_errors_of_shapes_name_the_layer_and_both_values():
    with fresh():
        a = layers.data("a", [3, 4], append_batch_size=False)
        b = layers.data("b", [5, 2], append_batch_size=False)
        with pytest.raises(fluid.core.EnforceNotMet, match="4.*5"):
            layers.mul(a, b)


def test_the_help_of_a_layer_tells_its_arguments():
    text = inspect.getdoc(layers.fc)
    assert "num_flatten_dims" in text
    assert str(inspect.signature(layers.mean)) == "(x, name=None)"


# --- nets ---

def test_simple_img_conv_pool():
    with fresh() as net:
        x = layers.data("x", [1, 8, 8])
        y = fluid.nets.simple_img_conv_pool(x, 4, 3, 2, 2, act="relu")
        assert y.shape == (-1, 4, 3, 3)
        assert net.types() == ["conv2d", "elementwise_add", "relu", "pool2d"]


def test_img_conv_group_normalises_and_drops():
    with fresh() as net:
        x = layers.data("x", [3, 8, 8])
        y = fluid.nets.img_conv_group(
            x, [4, 4], pool_size=2, pool_stride=2, conv_act="relu",
            conv_with_batchnorm=True, conv_batchnorm_drop_rate=[0.3, 0.0])
        assert y.shape == (-1, 4, 4, 4)
        assert net.types() == [
            "conv2d", "elementwise_add", "batch_norm", "relu", "dropout",
            "conv2d", "elementwise_add", "batch_norm", "relu", "pool2d"]
        with pytest.raises(ValueError, match="3 values of conv_padding for 2"):
            fluid.nets.img_conv_group(x, [4, 4], 2, conv_padding=[1, 1, 1])


def test_sequence_conv_pool_gives_one_row_for_each_sequence():
    with fresh() as net:
        x = layers.data("x", [2], lod_level=1)
        y = fluid.nets.sequence_conv_pool(x, 3, 3, act="tanh",
                                          pool_type="sum")
        feed = fluid.create_lod_tensor(np.ones((5, 2), "float32"), [[2, 3]],
                                       fluid.CPUPlace())
        assert net.run([y], feed={"x": feed})[0].shape == (2, 3)


def test_glu_is_one_half_gated_by_the_other():
    with fresh() as net:
        x = layers.assign(np.array([[1, 2, 0, 0]], "float32"))
        got, = net.run([fluid.nets.glu(x)])
        np.testing.assert_allclose(got, [[0.5, 1.0]], rtol=1e-6)


@pytest.mark.parametrize("heads", [1, 2])
def test_attention_averages_values(heads):
    with fresh() as net:
        draw = np.random.RandomState(0)
        q, k, v = (layers.assign(draw.rand(2, n, 4).astype("float32"))
                   for n in (3, 5, 5))
        out = fluid.nets.scaled_dot_product_attention(q, k, v, heads)
        got, values = net.run([out, v])
        assert got.shape == (2, 3, 4)
        if heads == 1:
            assert values.min() < got.min() and got.max() < values.max()


def test_attention_refuses_what_does_not_fit():
    with fresh():
        q, k = layers.data("q", [3, 4]), layers.data("k", [5, 6])
        with pytest.raises(ValueError, match="queries are 4 wide, keys 6"):
            fluid.nets.scaled_dot_product_attention(q, k, k)


def test_outputs_that_were_not_asked_for_are_left_out():
    with fresh():
        x, y = layers.data("x", [3]), layers.data("y", [1], dtype="int64")
        loss = layers.softmax_with_cross_entropy(x, y)
        assert isinstance(loss, fluid.framework.Variable)
        loss, softmax = layers.softmax_with_cross_entropy(
            x, y, return_softmax=True)
        assert (loss.shape, softmax.shape) == ((-1, 1), (-1, 3))
