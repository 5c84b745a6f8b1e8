# SPDX-License-Identifier: Apache-2.0
"""Programs that are written down operator by operator, as operator testers do
it: descs, gradients of single operators, messages, values of a scope."""
import numpy as np
import pytest

import paddle.fluid as fluid
from paddle.fluid import core
from paddle.fluid.op import Operator
from paddle.fluid.proto import framework_pb2
from fresh import fresh


def variable(block, name, shape):
    var = block.var(name)
    var.set_type(core.VarDesc.VarType.LOD_TENSOR)
    var.set_shape(shape)
    var.set_dtype(core.VarDesc.VarType.FP32)
    return var


def sum_of_two(block):
    op = block.append_op()
    op.set_type("sum")
    op.set_input("X", ["a", "b"])
    op.set_output("Out", ["out"])
    return op


def test_a_program_is_built_from_descs():
    program = core.ProgramDesc()
    block = program.block(0)
    variable(block, b"a", [10, 20])
    variable(block, "b", [10, 20])
    out = variable(block, "out", [])
    op = sum_of_two(block)
    assert (block.op_size(), op.type()) == (1, "sum")
    op.check_attrs()
    op.infer_var_type(block)
    op.infer_shape(block)
    assert out.shape() == [10, 20]
    assert block.op_size() == 1 and block.op(0) == op
    copy = core.ProgramDesc(program.serialize_to_string())
    assert copy.block(0).op(0).input("X") == ["a", "b"]
    assert copy.append_block(copy.block(0)).parent == 0
    assert copy.num_blocks() == 2


def test_a_draft_holds_anything_until_it_is_checked():
    block = core.ProgramDesc().block(0)
    op = block.append_op()
    op.set_type("test")
    op.set_input("X", ["a", "b"])
    for name, value, kind in (
            ("flag", True, "BOOL"), ("n", 3, "INT"), ("f", 0.5, "FLOAT"),
            ("s", "x", "STRING"), ("ns", [1, 2], "INTS"),
            ("fs", [0.5], "FLOATS"), ("ss", ["x"], "STRINGS"),
            ("flags", [True], "BOOLS"), ("block", block, "BLOCK")):
        op._set_attr(name, value)
        assert op.attr(name) == value
        assert op.attr_type(name) == getattr(core.AttrType, kind)
    with pytest.raises(ValueError, match='"test" has not been registered'):
        op.check_attrs()


def test_check_attrs_fills_in_defaults():
    program = core.ProgramDesc()
    block = program.block(0)
    variable(block, "a", [2, 3]), variable(block, "b", [3, 4])
    variable(block, "out", [])
    op = block.append_op()
    op.set_type("mul")
    op.set_input("X", ["a"]), op.set_input("Y", ["b"])
    op.set_output("Out", ["out"])
    op.check_attrs()
    assert op.attr("x_num_col_dims") == 1


def test_operators_of_a_block_desc_are_removed():
    block = core.ProgramDesc().block(0)
    for name in ("a", "b", "out"):
        variable(block, name, [2])
    first, second = sum_of_two(block), sum_of_two(block)
    first.check_attrs()
    assert block.op_size() == 2
    block._remove_op(0, 1)
    assert block.op_size() == 1 and block.op(0) is second
    block._remove_op(0, 1)
    assert block.op_size() == 0


def test_the_inputs_of_an_operator_are_set_again():
    block = core.ProgramDesc().block(0)
    for name in ("a", "b", "out"):
        variable(block, name, [2])
    op = sum_of_two(block)
    op.check_attrs()
    op.set_input("X", ["b"])
    assert block.op(0).input("X") == ["b"]


def test_the_gradient_of_one_operator():
    with fresh() as net:
        x = fluid.layers.data("x", [3])
        y = fluid.layers.data("y", [3])
        fluid.layers.elementwise_mul(x, y)
        op = net.main.global_block().ops[0]
        grads, names = core.get_grad_op_desc(op.desc, set(), [])
        assert [g.type() for g in grads] == ["elementwise_mul_grad"]
        assert grads[0].input("X") == ["x"]
        assert grads[0].output("X@GRAD") == ["x@GRAD"]
        assert names == {"x@GRAD": "x", "y@GRAD": "y"}
        grads, names = core.get_grad_op_desc(op.desc, {"y@GRAD"}, [])
        assert grads[0].output("Y@GRAD") == ["@EMPTY@"]
        assert names == {"x@GRAD": "x"}
        assert net.types() == ["elementwise_mul"]  # nothing was appended


def test_an_operator_without_a_gradient_says_so():
    with fresh() as net:
        fluid.layers.fill_constant([1], "float32", 1.0)
        with pytest.raises(ValueError, match="fill_constant has no gradient"):
            core.get_grad_op_desc(net.main.global_block().ops[0].desc, set(),
                                  [])


def test_a_single_operator_tells_its_slots_and_prints():
    assert Operator.get_op_inputs("sum") == [("X", True)]
    assert Operator.get_op_outputs("mul") == [("Out", False)]
    assert str(Operator("sum", X=["a", "b"], Out="z")) == \
        "Op(sum), inputs:{X[a, b]}, outputs:{Out[z]}."
    from paddle.fluid.op import CondOp
    with pytest.raises(NotImplementedError, match="docs/compatibility.md"):
        CondOp()


def test_messages_of_a_serialized_program():
    with fresh() as net:
        fluid.layers.fc(fluid.layers.data("x", [3]), 2)
        program = framework_pb2.ProgramDesc()
        program.ParseFromString(net.main.desc.serialize_to_string())
    assert program.IsInitialized()
    assert [op.type for op in program.blocks[0].ops] == [
        "mul", "elementwise_add"]
    assert program.SerializeToString()
    proto = framework_pb2.OpProto()
    proto.type, proto.comment = "test", "a test"
    assert proto.IsInitialized()
    slot = proto.inputs.add()
    slot.name = "X"
    assert not proto.IsInitialized()  # the slot has no comment


def test_a_tensor_takes_its_lod_and_dims_before_its_data():
    tensor = core.LoDTensor()
    tensor.set_lod([[0, 1, 3]])
    tensor._set_dims([3, 2])
    tensor._alloc_float(core.CPUPlace())
    assert tensor._get_dims() == [3, 2]
    assert tensor.lod() == [[0, 1, 3]]


def test_a_variable_of_a_scope_may_be_a_number():
    var = core.Scope().var("n")
    assert not var.is_int()
    var.set_int(7)
    assert var.is_int() and var.get_int() == 7
    var.set_float(0.5)
    assert not var.is_int()


def test_feeds_and_fetches_are_kept_in_a_scope():
    scope, tensor = core.Scope(), core.LoDTensor()
    tensor.set(np.arange(6, dtype="float32").reshape(3, 2), core.CPUPlace())
    tensor.set_lod([[0, 1, 3]])
    core.set_feed_variable(scope, tensor, "feed", 1)
    back = core.get_fetch_variable(scope, "feed", 1)
    assert np.array_equal(np.asarray(back), np.asarray(tensor))
    assert back.lod() == [[0, 1, 3]]
    with pytest.raises(core.EnforceNotMet, match="no column 0 of feed"):
        core.get_fetch_variable(scope, "feed", 0)


def test_an_exception_can_be_asked_for():
    with pytest.raises(core.EnforceNotMet, match="test of exception"):
        core.__unittest_throw_exception__()


def test_a_predictor_runs_a_saved_model(tmp_path):
    with fresh() as net:
        x = fluid.layers.data("x", [3])
        y = fluid.layers.fc(x, 2, act="softmax")
        array = np.ones((4, 3), "float32")
        want, = net.run([y], {"x": array})
        fluid.io.save_inference_model(str(tmp_path), ["x"], [y], net.exe,
                                      net.main)
    config = core.AnalysisConfig(str(tmp_path))
    config.disable_gpu()
    config.switch_ir_optim(True)
    predictor = core.create_paddle_predictor(config)
    assert predictor.get_input_names() == ["x"]
    out, = predictor.run([core.PaddleTensor(array)])
    assert out.shape == [4, 2] and out.dtype == core.PaddleDType.FLOAT32
    np.testing.assert_array_equal(out.as_ndarray(), want)
    with pytest.raises(ValueError, match="is fed x, but 2 inputs are given"):
        predictor.run([core.PaddleTensor(array)] * 2)
    with pytest.raises(RuntimeError, match="no GPU kernels"):
        config.enable_use_gpu()
