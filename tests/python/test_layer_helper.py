# SPDX-License-Identifier: Apache-2.0
"""LayerHelper: layers that scripts write themselves."""
import numpy as np
import pytest

import paddle.fluid as fluid
from fresh import fresh
from paddle.fluid.layer_helper import LayerHelper


@pytest.fixture(autouse=True)
def programs():
    with fresh():
        yield


def dense(input, size, param_attr=None, bias_attr=None, act=None, name=None):
    """fc as Fluid's own sources had it."""
    helper = LayerHelper("dense", **locals())
    dtype = helper.input_dtype()
    products = []
    for x, attr in helper.iter_inputs_and_params():
        w = helper.create_parameter(attr=attr, shape=[x.shape[1], size],
                                    dtype=dtype, is_bias=False)
        product = helper.create_variable_for_type_inference(dtype)
        helper.append_op(type="mul", inputs={"X": x, "Y": w},
                         outputs={"Out": product},
                         attrs={"x_num_col_dims": 1, "y_num_col_dims": 1})
        products.append(product)
    total = products[0]
    if len(products) > 1:
        total = helper.create_variable_for_type_inference(dtype)
        helper.append_op(type="sum", inputs={"X": products},
                         outputs={"Out": total})
    return helper.append_activation(helper.append_bias_op(total))


def data(name="x"):
    return fluid.layers.data(name, shape=[4])


def parameters():
    block = fluid.default_main_program().global_block()
    return [p.name for p in block.all_parameters()]


def test_a_layer_of_a_script_gives_what_fc_gives():
    half = fluid.initializer.Constant(0.5)
    x = data()
    own = dense(x, 3, param_attr=half, bias_attr=half, act="tanh")
    ours = fluid.layers.fc(x, 3, param_attr=half, bias_attr=half, act="tanh")
    loss = fluid.layers.mean(own)
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    a, b = exe.run(feed={"x": np.arange(8, dtype="f").reshape(2, 4) / 8},
                   fetch_list=[own, ours])
    assert np.array_equal(a, b) and a.shape == (2, 3)
    after, = exe.run(feed={"x": np.zeros((2, 4), "f")}, fetch_list=[own])
    assert (after < np.tanh(0.5)).all()  # the bias was trained


def test_names_are_made_as_fluid_made_them():
    dense(data(), 3)
    dense(data("y"), 3, name="mine", bias_attr=False)
    assert parameters() == ["dense_0.w_0", "dense_0.b_0", "mine.w_0"]


def test_several_inputs_have_weights_of_their_own():
    out = dense([data("a"), data("b")], 2, param_attr=["wa", "wb"])
    assert out.shape == (-1, 2)
    assert {"wa", "wb"} <= set(parameters())


def test_a_global_variable_starts_as_it_was_told():
    helper = LayerHelper("counter")
    count = helper.create_global_variable(
        name="count", persistable=True, dtype="float32", shape=[1])
    helper.set_variable_initializer(count, fluid.initializer.Constant(7.0))
    assert helper.create_or_get_global_variable("count").name == "count"
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    assert exe.run(fetch_list=["count"])[0] == [7.0]


@pytest.mark.parametrize("build, sentence", [
    (lambda: LayerHelper("l", input=[data("a"), data("b")]).input(),
     "l layer needs one input, got 2"),
    (lambda: LayerHelper("l", input=[]).input_dtype(),
     "the variables of input have 0 element types"),
    (lambda: LayerHelper("l", param_attr=3).param_attr,
     "a parameter attribute is 3, expected a ParamAttr"),
    (lambda: dense([data("a"), data("b")], 2, param_attr=["w"] * 3),
     "dense layer has 3 param_attr and 2 inputs"),
    (lambda: LayerHelper("l", act=3).is_instance("act", str),
     "l layer: act is int, expected str"),
])
def test_what_is_wrong_gets_a_sentence(build, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        build()
