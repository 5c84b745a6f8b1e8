# SPDX-License-Identifier: Apache-2.0
"""fluid.framework: programs, blocks, operators and variables as views."""
import numpy as np
import pytest

import paddle.fluid as fluid
from paddle.fluid import core, framework, unique_name
from paddle.fluid.framework import OpRole, Program

VarType = core.VarDesc.VarType


@pytest.fixture
def block(programs):
    return programs[0].global_block()


def test_views_are_the_same_object_each_time(block):
    var = block.create_var(name="a", shape=[2, -1], dtype="float32")
    var.mine = 7
    assert block.var("a") is var and block.var("a").mine == 7
    assert block.program.block(0) is block
    assert isinstance(var, framework.Variable)


def test_a_variable_shows_its_fields(block):
    var = block.create_var(name="a", shape=[2, -1], dtype=np.float32,
                           lod_level=1, persistable=True)
    assert (var.shape, var.lod_level, var.persistable) == ((2, -1), 1, True)
    assert var.dtype is VarType.FP32 and var.type is VarType.LOD_TENSOR
    assert str(var.dtype) == "VarType.FP32"
    var.stop_gradient = True
    assert var.stop_gradient and not var.is_data and var.op is None


def test_a_variable_that_exists_must_agree(block):
    first = block.create_var(name="a", shape=[2, 3], dtype="float32")
    assert block.create_var(name="a", shape=[2, 3]) is first
    for wrong in (dict(shape=[3, 2]), dict(dtype="int64"),
                  dict(lod_level=1), dict(type=VarType.SELECTED_ROWS)):
        with pytest.raises(ValueError, match="a"):
            block.create_var(name="a", **wrong)


def test_a_variable_without_a_name_gets_one(block):
    assert block.create_var(dtype="float32").name == "_generated_var_0"


def test_a_missing_variable_is_named(block):
    block.create_var(name="label")
    with pytest.raises(ValueError, match="lable not in.*mean label"):
        block.var("lable")
    with pytest.raises(TypeError, match="name"):
        block.var(1)
    assert not block.has_var("lable")


def test_a_parameter_has_its_settings(block):
    param = block.create_parameter(
        name="w", shape=[2, 3], dtype="float32", trainable=False,
        optimize_attr={"learning_rate": 0.5})
    assert isinstance(param, framework.Parameter)
    assert param.persistable and not param.trainable
    assert param.optimize_attr == {"learning_rate": 0.5}
    param.optimize_attr["learning_rate"] = 0.25
    assert param.optimize_attr["learning_rate"] == 0.25
    assert block.all_parameters()[0] is param
    assert param.do_model_average in (None, False, True)


@pytest.mark.parametrize("shape", [[], [2, -1]])
def test_a_parameter_needs_a_known_shape(block, shape):
    with pytest.raises(ValueError, match="w"):
        block.create_parameter(name="w", shape=shape, dtype="float32")


def test_parameters_live_in_the_global_block(programs):
    inner = programs[0]._create_block()
    inner.create_parameter(name="w", shape=[1], dtype="float32")
    programs[0]._rollback()
    assert programs[0].global_block().has_var("w")
    assert not inner.has_var("w")


def scale(block, **attrs):
    x = block.create_var(name="x", shape=[-1, 3], dtype="float32")
    y = block.create_var(name="y", dtype="float32")
    return block.append_op(type="scale", inputs={"X": x},
                           outputs={"Out": ["y"]}, attrs=attrs), x, y


def test_an_operator_shows_its_fields(block):
    op, x, y = scale(block, scale=2.0)
    assert op.type == "scale" and op.idx == 0 and op.block is block
    assert op.input("X") == ["x"] and op.output("Out") == ["y"]
    assert op.input_arg_names == ["x"] and op.output_arg_names == ["y"]
    assert "X" in op.input_names and "Out" in op.output_names
    assert op.attr("scale") == 2.0 and op.attr("bias") == 0.0
    assert op.attr_type("scale") == core.AttrType.FLOAT
    assert op.has_attr("bias_after_scale") and "scale" in op.attr_names
    assert op.all_attrs()["scale"] == 2.0
    assert y.shape == (-1, 3) and y.op is op


def test_an_operator_can_be_changed(block):
    op, _, _ = scale(block, scale=2.0)
    op._set_attr("scale", 3)
    op._rename_input("x", "z")
    assert op.attr("scale") == 3.0 and op.input("X") == ["z"]
    op._remove_attr("bias")
    assert not op.has_attr("bias")


def test_every_operator_says_where_it_was_made(block):
    op, _, _ = scale(block)
    assert op.attr("op_role") == OpRole.Forward
    assert op.attr("op_namescope") == "/"
    assert __file__ in "".join(op.attr("op_callstack"))


def test_an_unknown_operator_is_refused(block):
    with pytest.raises(ValueError, match='^Operator "no_such_op" has not '
                       'been registered.$'):
        block.append_op(type="no_such_op")
    with pytest.raises(ValueError, match="registered; did you mean scale?"):
        block._prepend_op(type="scalee")
    with pytest.raises(ValueError, match="can not be None"):
        block.append_op()
    with pytest.raises(ValueError, match="mul: input Y is missing"):
        scale(block)
        block.append_op("mul", {"X": "x"}, {"Out": "y"})
    assert len(block.ops) == 1


def test_operators_are_inserted_sliced_and_removed(block):
    first, x, _ = scale(block)
    block.create_var(name="z", dtype="float32")
    front = block._prepend_op(type="relu", inputs={"X": x},
                              outputs={"Out": "z"})
    assert [op.type for op in block.ops] == ["relu", "scale"]
    assert (front.idx, first.idx) == (0, 1)
    assert block._slice_ops(1, 2)[0] is first
    block._remove_op(0)
    assert first.idx == 0 and len(block.ops) == 1


def test_a_renamed_variable_is_renamed_in_operators(block):
    op, x, _ = scale(block)
    block._rename_var("x", "in")
    assert op.input("X") == ["in"] and block.var("in").shape == (-1, 3)
    assert not block.has_var("x")
    with pytest.raises(ValueError, match="x is not in"):
        block._rename_var("x", "y")


def test_blocks_nest(programs):
    main = programs[0]
    main.global_block().create_var(name="a", dtype="float32")
    inner = main._create_block()
    assert (inner.idx, inner.parent_idx, main.num_blocks) == (1, 0, 2)
    assert main.current_block() is inner and len(main.blocks) == 2
    assert inner._find_var_recursive("a") is main.global_block().var("a")
    assert inner._find_var_recursive("b") is None
    with pytest.raises(ValueError, match="b"):
        inner._var_recursive("b")
    inner._set_forward_block_idx(0)
    assert inner.forward_block_idx == 0
    main._rollback()
    assert main.current_block().idx == 0


def test_a_variable_is_cloned_into_another_program(block):
    var = block.create_var(name="a", shape=[2], dtype="int64", lod_level=1)
    copy = Program().global_block()._clone_variable(var)
    assert (copy.shape, copy.dtype, copy.lod_level) == ((2,), VarType.INT64,
                                                        1)
    assert copy.persistable and not var.persistable


def test_roles_are_stamped_within_guards(programs):
    main = programs[0]
    block = main.global_block()
    pair = [block.create_var(name=n, shape=[1], dtype="float32")
            for n in ("p", "p@GRAD")]
    with main._optimized_guard(pair):
        op, _, _ = scale(block)
    with main._lr_schedule_guard():
        rate, _, _ = scale(block)
    assert op.attr("op_role") == OpRole.Optimize
    assert op.attr("op_role_var") == ["p", "p@GRAD"]
    assert rate.attr("op_role") == OpRole.LRSched
    assert main._op_role == OpRole.Forward
    assert not scale(block)[0].has_attr("op_role_var")


def test_a_clone_is_a_program_of_its_own(programs):
    main = programs[0]
    block = main.global_block()
    param = block.create_parameter(name="w", shape=[2], dtype="float32",
                                   trainable=False)
    scale(block, scale=2.0)
    main._is_distributed, main.random_seed = True, 5
    copy = main.clone()
    assert copy is not main and copy._is_distributed
    assert copy.random_seed == 5
    twin = copy.global_block().var("w")
    assert twin is not param and isinstance(twin, framework.Parameter)
    assert not twin.trainable
    copy.global_block()._remove_op(0)
    assert len(block.ops) == 1


def test_for_test_sets_is_test_and_drops_nothing(programs):
    x = fluid.layers.data("x", [4])
    fluid.layers.dropout(x, 0.5)
    copy = programs[0].clone(for_test=True)
    assert not programs[0].global_block().ops[-1].attr("is_test")
    assert copy.global_block().ops[-1].attr("is_test")
    assert len(copy.global_block().ops) == len(programs[0].global_block().ops)


def test_prune_keeps_what_targets_need(programs):
    x = fluid.layers.data("x", [4])
    wanted = fluid.layers.relu(x)
    fluid.layers.tanh(x)
    assert [op.type for op in programs[0]._prune([wanted]).global_block().ops
            ] == ["relu"]
    assert [op.type for op in
            programs[0]._prune(wanted.op).global_block().ops] == ["relu"]


def test_text_is_the_message_in_text_form(block):
    op, x, _ = scale(block, scale=2.0)
    text = str(block.program)
    assert text == block.program.to_string(True)
    assert text.startswith("blocks {\n  idx: 0\n  parent_idx: -1\n  vars {\n")
    assert '    type: "scale"\n' in text
    assert 'name: "x"' in str(x) and 'type: "scale"' in str(op)
    assert "stop_gradient: False" in x.to_string(True, with_details=True)
    details = block.program.to_string(True, with_details=True)
    assert "  vars {\n    name:" in details and "error_clip: None" in details
    with pytest.raises(TypeError, match="throw_on_error"):
        block.program.to_string(1)


def test_a_program_is_read_back(block):
    scale(block, scale=2.0)
    data = block.program.desc.serialize_to_string()
    again = Program.parse_from_string(data)
    assert isinstance(again, Program)
    assert again.global_block().ops[0].attr("scale") == 2.0
    assert again.serialize_to_string() == data
    with pytest.raises(Exception, match="program"):
        Program.parse_from_string(data[:-3])


def test_desc_is_a_second_face(block):
    op, x, _ = scale(block, scale=2.0)
    desc = block.program.desc.block(0)
    assert desc.op(0).type() == "scale" and desc.op_size() == 1
    assert desc.op(0).input("X") == ["x"] and desc.op(0).attr("scale") == 2.0
    assert (desc.id, desc.parent) == (0, -1)
    assert desc.find_var(b"x").shape() == [-1, 3]
    assert desc.find_var("none") is None
    assert x.desc.name() == "x" and x.desc.dtype() == VarType.FP32
    x.desc.set_shape([5])
    assert x.shape == (5,)
    assert [v.name() for v in desc.all_vars()] == ["x", "y"]
    assert op.desc == desc.op(0)


@pytest.mark.parametrize("act,kind", [
    (lambda x: x + 1, ["fill_constant", "elementwise_add"]),
    (lambda x: 1 - x, ["fill_constant_batch_size_like", "elementwise_sub"]),
    (lambda x: x * x, ["elementwise_mul"]),
    (lambda x: x / 2.0, ["fill_constant", "elementwise_div"]),
    (lambda x: x ** 2, ["fill_constant", "elementwise_pow"]),
    (lambda x: x // 2, ["fill_constant", "elementwise_floordiv"]),
    (lambda x: x % 2, ["fill_constant", "elementwise_mod"]),
    (lambda x: x < x, ["less_than"]),
    (lambda x: x == x, ["equal"]),
    (lambda x: x != x, ["not_equal"]),
    (lambda x: x >= x, ["greater_equal"]),
])
def test_variables_calculate(programs, act, kind):
    x = fluid.layers.data("x", [4])
    before = len(programs[0].global_block().ops)
    out = act(x)
    assert [o.type for o in programs[0].global_block().ops[before:]] == kind
    assert out.name.startswith("tmp_") and out.shape == (-1, 4)


def test_a_variable_is_not_equal_to_other_things(programs):
    x = fluid.layers.data("x", [4])
    before = len(programs[0].global_block().ops)
    assert not x == None and x != "x" and {x: 1}[x] == 1  # noqa: E711
    for act in (lambda: x + "1", lambda: np.ones(3) * x):
        with pytest.raises(TypeError):
            act()
    assert len(programs[0].global_block().ops) == before


ARRAY = np.arange(24, dtype="float32").reshape(2, 3, 4)


@pytest.mark.parametrize("key", [
    0, -1, (1, 2), slice(1, None), (slice(None), 1), (Ellipsis, 2),
    (slice(None), slice(0, 2), slice(1, -1)), (0, slice(None), -1)])
def test_indices_give_what_numpy_gives(programs, exe, key):
    x = fluid.layers.data("x", [2, 3, 4], append_batch_size=False)
    got, = exe.run(feed={"x": ARRAY}, fetch_list=[x[key]])
    assert np.array_equal(got, ARRAY[key])


def test_an_index_of_all_dimensions_leaves_one(programs, exe):
    x = fluid.layers.data("x", [2, 3, 4], append_batch_size=False)
    got, = exe.run(feed={"x": ARRAY}, fetch_list=[x[1, 2, 3]])
    assert got.tolist() == [23.0]


@pytest.mark.parametrize("key,sentence", [
    ("a", "an int or a slice, not str"),
    (2, "index 2 is out of range, the dimension has 2 elements"),
    (-3, "index -3 is out of range"),
    ((0, 0, 0, 0), "4 indices for 3"),
    ((Ellipsis, Ellipsis), "one Ellipsis"),
    (slice(None, None, 2), "step of a slice is 2")])
def test_wrong_indices_are_named(programs, key, sentence):
    x = fluid.layers.data("x", [2, 3, 4], append_batch_size=False)
    with pytest.raises((IndexError, TypeError, ValueError),
                       match="x: .*" + sentence):
        x[key]


@pytest.mark.parametrize("key", [
    slice(None, None, -1), slice(-1, 0, -1), slice(5, None, -1),
    slice(1, -4, -1)])
def test_slices_run_backwards(programs, exe, key):
    x = fluid.layers.data("x", [2, 3, 4], append_batch_size=False)
    for whole in (key, (0, key), (slice(None), key, key)):
        got, = exe.run(feed={"x": ARRAY}, fetch_list=[x[whole]])
        assert np.array_equal(got, ARRAY[whole])


def test_a_variable_is_not_looped_over(programs):
    with pytest.raises(TypeError):
        iter(fluid.layers.data("x", [2]))


def test_astype_converts(programs, exe):
    x = fluid.layers.data("x", [1])
    got, = exe.run(feed={"x": np.array([[1.5]], "float32")},
                   fetch_list=[x.astype("int64")])
    assert got.dtype == np.int64 and got.tolist() == [[1]]


def test_program_guard_switches_and_restores():
    main, before = Program(), fluid.default_main_program()
    with fluid.program_guard(main):
        assert fluid.default_main_program() is main
    assert fluid.default_main_program() is before
    with pytest.raises(TypeError, match="main_program must be a Program"):
        with fluid.program_guard(1):
            pass
    with pytest.raises(TypeError, match="startup_program must be a Program"):
        with fluid.program_guard(main, "x"):
            pass
    assert fluid.default_main_program() is before


def test_name_scopes_nest_and_count(block):
    seen = []
    with fluid.name_scope("test"):  # counts anew, however often this test runs
        outer = scale(block)[0].attr("op_namescope")
        for _ in range(2):
            with fluid.name_scope("a"):
                with fluid.name_scope("b"):
                    seen.append(scale(block)[0].attr("op_namescope"))
    assert outer.startswith("/test")
    assert seen == [outer + "a/b/", outer + "a_1/b/"]
    assert scale(block)[0].attr("op_namescope") == "/"


def test_names_are_counted_by_key():
    with unique_name.guard():
        assert [unique_name.generate(k) for k in ("a", "a", "b")] == [
            "a_0", "a_1", "b_0"]
        with unique_name.guard("p_"):
            assert unique_name.generate("a") == "p_a_0"
        assert unique_name.generate("a") == "a_2"
        old = unique_name.switch()
        assert unique_name.generate("a") == "a_0"
        unique_name.switch(old)
        assert unique_name.generate("a") == "a_3"


def test_places(monkeypatch, capsys):
    monkeypatch.setenv("CPU_NUM", "3")
    assert len(fluid.cpu_places()) == 3 and len(fluid.cpu_places(2)) == 2
    monkeypatch.setenv("CPU_NUM", "many")
    with pytest.raises(ValueError, match="CPU_NUM is 'many'"):
        fluid.cpu_places()
    monkeypatch.delenv("CPU_NUM")
    assert len(fluid.cpu_places()) == 1
    said = capsys.readouterr()
    assert said.out == "" and "CPU_NUM" in said.err
    for use in (fluid.cuda_places, lambda: fluid.Executor(fluid.CUDAPlace(0)),
                lambda: fluid.DataFeeder([], fluid.CUDAPinnedPlace())):
        with pytest.raises(RuntimeError, match="no GPU kernels"):
            use()
    assert not fluid.is_compiled_with_cuda()
    assert not core.op_support_gpu("mul")


def test_constants_are_the_originals():
    assert framework.grad_var_name("w") == "w@GRAD"
    assert core.kEmptyVarName() == framework.EMPTY_VAR_NAME == "@EMPTY@"
    assert int(core.op_proto_and_checker_maker.OpRole.Loss) == 256
    assert [int(VarType.FP32), int(VarType.LOD_TENSOR), int(VarType.INT8)
            ] == [5, 7, 21]
    assert framework.convert_np_dtype_to_dtype_("float64") == VarType.FP64
    assert not fluid.in_dygraph_mode()


def test_suggest_finds_what_was_meant():
    names = ["default_main_program", "default_startup_program", "trainers"]
    assert core.suggest("trianers", names) == "; did you mean trainers?"
    assert "default_main_program" in core.suggest("default_trainer_program",
                                                  names)
    assert core.suggest("zzz", names) == ""


def test_an_attribute_is_not_named_by_half_a_character(programs):
    fluid.layers.relu(fluid.layers.data("x", [3]))
    op = programs[0].global_block().ops[-1]
    with pytest.raises(UnicodeEncodeError):
        op._set_attr("\ud800", 1)


def test_gradients_of_a_target_with_sequences_run(programs):
    x = fluid.layers.data("x", [1], lod_level=1)
    x.stop_gradient = False
    grad, = fluid.gradients([1.0 - x * x], [x])
    rows = fluid.create_lod_tensor(np.arange(7.0, dtype="float32")[:, None],
                                   [[3, 4]], fluid.CPUPlace())
    out, = fluid.Executor(fluid.CPUPlace()).run(
        feed={"x": rows}, fetch_list=[grad], return_numpy=False)
    np.testing.assert_array_equal(np.array(out), -2 * np.array(rows))


def test_whole_numbers_are_raised(programs):
    x = fluid.layers.data("x", [3], dtype="int64")
    square, cube = fluid.Executor(fluid.CPUPlace()).run(
        feed={"x": np.array([[1, 2, -3]])},
        fetch_list=[x ** 2, fluid.layers.pow(x, 3.0)])
    assert square.tolist() == [[1, 4, 9]] and cube.tolist() == [[1, 8, -27]]


def test_a_program_keeps_attributes_of_other_machines(programs):
    x = fluid.layers.data("x", [3])
    programs[0].global_block().append_op(
        type="relu", inputs={"X": x}, outputs={"Out": x},
        attrs={"use_mkldnn": True, "use_cudnn": False, "is_test": True})
    again = Program.parse_from_string(programs[0].serialize_to_string())
    op = again.global_block().ops[-1]
    assert op.attr("use_mkldnn") is True and op.attr("use_cudnn") is False
    with pytest.raises(Exception, match='data_format is "NHWC"'):
        programs[0].global_block().append_op(
            type="relu", inputs={"X": x}, outputs={"Out": x},
            attrs={"data_format": "NHWC"})


def test_an_empty_batch_is_a_sentence(programs):
    mean = fluid.layers.mean(fluid.layers.data("x", [2]))
    with pytest.raises(Exception, match=r"mean: X \[0,2\] has no elements"):
        fluid.Executor(fluid.CPUPlace()).run(
            feed={"x": np.zeros((0, 2), "float32")}, fetch_list=[mean])
