# SPDX-License-Identifier: Apache-2.0
"""The profiler, single operators, the debugger and smaller modules."""
import json

import numpy as np
import pytest

import paddle.fluid as fluid
from paddle.fluid import (core, debugger, default_scope_funcs, install_check,
                          profiler)
from paddle.fluid.op import Operator

X = np.random.RandomState(0).rand(20, 13).astype("float32")
FEED = {"x": X, "y": X.sum(1, keepdims=True)}


def test_the_profiler_counts_operators(line, exe, tmp_path, capfd):
    path = tmp_path / "profile"
    with profiler.profiler("CPU", "total", str(path)):
        for _ in range(3):
            exe.run(feed=FEED, fetch_list=[line[0]])
        fluid.Executor(fluid.CPUPlace()).run(feed=FEED)
    exe.run(feed=FEED)
    said = capfd.readouterr()
    assert said.out == "" and "Profiling Report" in said.err
    rows = {l.split()[0]: l.split() for l in said.err.splitlines()
            if len(l.split()) == 7}
    assert rows["mean"][1] == "4"
    totals = [float(r[2]) for k, r in rows.items() if k != "Event"]
    assert totals == sorted(totals, reverse=True)
    events = json.loads(path.read_text())["traceEvents"]
    assert sum(e.get("name") == "mean" for e in events) == 4


def test_the_profiler_says_what_is_wrong():
    with pytest.raises(ValueError, match="The state must be"):
        profiler.start_profiler("TPU")
    with pytest.raises(RuntimeError, match="no GPU kernels"):
        profiler.start_profiler("GPU")
    with pytest.raises(ValueError, match="sorted_key"):
        profiler.stop_profiler("size")


def test_the_profiler_can_start_anew(line, exe, capfd):
    profiler.start_profiler("All")
    exe.run(feed=FEED)
    profiler.reset_profiler()
    exe.run(feed=FEED)
    profiler.stop_profiler("calls", profile_path=None)
    row = next(l.split() for l in capfd.readouterr().err.splitlines()
               if l.startswith("mean "))
    assert row[1] == "1"
    profiler.stop_profiler()
    with profiler.cuda_profiler("x"):
        pass
    said = capfd.readouterr()
    assert said.out == "" and said.err.count("\n") == 1


def test_a_single_operator_runs_on_a_scope():
    scope = core.Scope()
    scope.var("x").get_tensor().set(np.ones((2, 3), "float32"), None)
    scope.var("y")
    op = Operator("scale", X="x", Out="y", scale=2.5)
    assert op.type() == "scale" and op.input("X") == ["x"]
    assert op.output_vars() == ["y"]
    op.run(scope, core.CPUPlace())
    got = np.asarray(scope.find_var("y").get_tensor())
    assert np.array_equal(got, np.full((2, 3), 2.5, "float32"))


def test_a_single_operator_takes_lists():
    scope = core.Scope()
    for name in ("a", "b"):
        scope.var(name).get_tensor().set(np.ones((2, 3), "float32"), None)
    Operator("sum", X=["a", "b"], Out="c").run(scope, core.CPUPlace())
    assert np.asarray(scope.find_var("c").get_tensor()).max() == 2.0


def test_a_single_operator_says_what_is_wrong():
    with pytest.raises(ValueError, match="scal.*registered.*mean scale"):
        Operator("scal")
    with pytest.raises(ValueError, match="no input.*Outt.*mean Out"):
        Operator("scale", X="x", Outt="y")
    with pytest.raises(ValueError, match="one positional argument, the type"):
        Operator()
    op = Operator("scale", X="x", Out="y")
    with pytest.raises(ValueError, match="no variable x"):
        op.run(core.Scope(), core.CPUPlace())
    with pytest.raises(RuntimeError, match="no GPU kernels"):
        op.run(core.Scope(), core.CUDAPlace(0))


def test_protos_name_slots_and_attributes():
    proto = Operator.get_op_info("mul")
    assert [s.name for s in proto.inputs] == ["X", "Y"]
    assert Operator.get_op_output_names("mul") == ["Out"]
    assert "x_num_col_dims" in Operator.get_op_attr_names("mul")
    assert "mul_grad" in Operator.types()


def test_a_program_reads_like_code(line, programs, tmp_path):
    text = debugger.pprint_program_codes(programs[0])
    assert "{Out=['fc_0.tmp_0']} = mul(inputs={X=['x'], Y=['fc_0.w_0']}" \
        in text
    assert "sgd(" in text and "op_callstack" not in text
    short = debugger.pprint_block_codes(programs[0].desc.block(0))
    assert "mul(" in short and "mul_grad" not in short
    path = tmp_path / "graph.dot"
    debugger.draw_block_graphviz(programs[0].global_block(), ["x"],
                                 str(path))
    assert '"x" [shape=ellipse, style=filled' in path.read_text()


def test_scopes_are_a_stack_for_each_thread():
    default_scope_funcs.var("outer")

    def inner():
        assert default_scope_funcs.find_var("outer") is not None
        default_scope_funcs.var("inner")
    default_scope_funcs.scoped_function(inner)
    assert default_scope_funcs.find_var("inner") is None
    with pytest.raises(RuntimeError, match="no scope was entered"):
        default_scope_funcs.leave_local_scope()


def test_an_installation_is_checked(capfd):
    install_check.run_check()
    said = capfd.readouterr()
    assert said.out == "" and "installed successfully" in said.err


def test_what_is_not_built_says_so():
    from paddle.fluid import dygraph, memory_opt
    from paddle.fluid.proto import framework_pb2
    assert not dygraph.enabled()
    with pytest.raises(NotImplementedError, match="dygraph"):
        dygraph.guard()
    program = fluid.Program()
    assert not program._is_mem_optimized
    assert memory_opt.memory_optimize(program) is None
    assert program._is_mem_optimized
    assert framework_pb2.VarType.FP32 == 5 and framework_pb2.LONGS == 11


def test_places_are_listed():
    assert fluid.layers.device.get_places(2) == fluid.cpu_places(2)
    with pytest.raises(RuntimeError, match="no GPU kernels"):
        fluid.layers.get_places(device_type="CUDA")


def test_a_logger_writes_to_stderr_once(capsys):
    import logging
    for _ in range(2):
        logger = fluid.log_helper.get_logger(
            "test_tools", logging.INFO, fmt="%(levelname)s: %(message)s")
    logger.handlers[0].setStream(__import__("sys").stderr)
    logger.info("once")
    logger.debug("never")
    assert capsys.readouterr().err == "INFO: once\n"
