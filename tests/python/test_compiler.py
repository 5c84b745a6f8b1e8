"""CompiledProgram, ParallelExecutor and their settings."""
import numpy as np
import pytest

import paddle.fluid as fluid
from paddle.fluid.executor import _fetch_var

X = np.random.RandomState(0).rand(20, 13).astype("float32")
Y = X.sum(1, keepdims=True)


def start_again():
    for name in ("fc_0.w_0", "fc_0.b_0"):
        tensor = fluid.global_scope().find_var(name).get_tensor()
        tensor.set(np.zeros(tensor.shape(), "float32"), None)


def test_places_train_as_one(line, exe, programs):
    start_again()
    for _ in range(5):
        want, = exe.run(feed={"x": X, "y": Y}, fetch_list=[line[0]])
    weight = _fetch_var("fc_0.w_0")
    start_again()
    with pytest.warns(UserWarning, match="2 places run as one"):
        compiled = fluid.CompiledProgram(programs[0]).with_data_parallel(
            loss_name=line[0].name, places=fluid.cpu_places(2))
    for _ in range(4):
        exe.run(compiled, feed={"x": X, "y": Y}, fetch_list=[line[0]])
    halves = [{"x": X[:10], "y": Y[:10]}, {"x": X[10:], "y": Y[10:]}]
    got, = exe.run(compiled, feed=halves, fetch_list=[line[0]])
    assert np.array_equal(_fetch_var("fc_0.w_0"), weight)
    assert np.mean(got) == np.mean(want)


def test_a_row_for_each_sample_comes_back(line, exe, programs):
    compiled = fluid.CompiledProgram(programs[0]).with_data_parallel(
        places=fluid.cpu_places(2))
    got, = exe.run(compiled, feed={"x": X, "y": Y}, fetch_list=[line[1]])
    assert got.shape == (20, 1)


def test_sequences_of_places_are_joined(programs, exe):
    words = fluid.layers.data("words", [1], lod_level=1)
    out = fluid.layers.sequence_pool(words, "sum")
    compiled = fluid.CompiledProgram(programs[0]).with_data_parallel(
        places=fluid.cpu_places(2))
    feeds = [{"words": fluid.create_lod_tensor(
        np.full((sum(lengths), 1), 1.0, "float32"), [lengths], None)}
        for lengths in ([1, 2], [4])]
    got, = exe.run(compiled, feed=feeds, fetch_list=[out])
    assert got.tolist() == [[1.0], [2.0], [4.0]]
    with pytest.raises(ValueError, match="3 feeds for 2 places"):
        exe.run(compiled, feed=feeds + feeds[:1], fetch_list=[out])


def test_a_plain_compiled_program_runs(line, exe, programs):
    compiled = fluid.CompiledProgram(programs[0])
    got, = exe.run(compiled, feed={"x": X, "y": Y}, fetch_list=[line[0]])
    assert got.shape == (1,)


def test_variables_are_shared_after_a_run(line, exe, programs):
    train = fluid.CompiledProgram(programs[0]).with_data_parallel()
    other = fluid.CompiledProgram(programs[0].clone(for_test=True))
    with pytest.raises(ValueError, match="not compiled and run"):
        other.with_data_parallel(share_vars_from=train)
    exe.run(train, feed={"x": X, "y": Y})
    other.with_data_parallel(share_vars_from=train)
    with pytest.raises(AssertionError, match="Already compiled"):
        other.with_data_parallel()


def test_a_parallel_executor_runs(line, programs):
    pe = fluid.ParallelExecutor(use_cuda=False, loss_name=line[0].name,
                                main_program=programs[0])
    assert pe.device_count >= 1
    first, = pe.run([line[0].name], feed={"x": X, "y": Y})
    second, = pe.run(fetch_list=[line[0].name], feed_dict={"x": X, "y": Y})
    assert second < first
    pe.drop_local_exe_scopes()
    with pytest.raises(RuntimeError, match="no GPU kernels"):
        fluid.ParallelExecutor(use_cuda=True)


def test_settings_are_kept_and_misspellings_refused():
    build, run = fluid.BuildStrategy(), fluid.ExecutionStrategy()
    build.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
    build.fuse_all_reduce_ops = run.allow_op_delay = True
    run.num_threads = 4
    assert build.reduce_strategy == 1 and run.num_threads == 4
    with pytest.raises(AttributeError, match="mean memory_optimize"):
        build.memory_optimise = True
    assert not fluid.BuildStrategy().fuse_all_reduce_ops


def test_what_cannot_be_done_is_said(programs):
    def compile(**fields):
        build = fluid.BuildStrategy()
        for name, value in fields.items():
            setattr(build, name, value)
        return fluid.CompiledProgram(programs[0]).with_data_parallel(
            build_strategy=build, places=fluid.cpu_places(2))
    scale = fluid.BuildStrategy.GradientScaleStrategy
    with pytest.raises(NotImplementedError, match="strategy is One"):
        compile(gradient_scale_strategy=scale.One)
    with pytest.raises(NotImplementedError, match="num_trainers is 2"):
        compile(num_trainers=2)
    build = fluid.BuildStrategy()
    passes = build._finalize_strategy_and_create_passes()
    passes.append_pass("graph_viz_pass")
    passes.insert_pass(0, "multi_batch_merge_pass").set("num_repeats", 2)
    assert [p.type() for p in passes.all_passes()] == [
        "multi_batch_merge_pass", "graph_viz_pass"]
    with pytest.raises(NotImplementedError, match="multi_batch_merge_pass"):
        fluid.CompiledProgram(programs[0]).with_data_parallel(
            build_strategy=build)
