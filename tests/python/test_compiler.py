# SPDX-License-Identifier: Apache-2.0
"""CompiledProgram, ParallelExecutor and their settings."""
import glob
import json
import signal
import subprocess
import sys

import numpy as np
import pytest

from cluster import LIMIT
import paddle.fluid as fluid
from conftest import ROOT
from paddle.fluid.executor import _fetch_var

X = np.random.RandomState(0).rand(20, 13).astype("float32")
Y = X.sum(1, keepdims=True)


def start_again():
    for name in ("fc_0.w_0", "fc_0.b_0"):
        tensor = fluid.global_scope().find_var(name).get_tensor()
        tensor.set(np.zeros(tensor.shape(), "float32"), None)


def on_places(program, count=2, **fields):
    build = fluid.BuildStrategy()
    for name, value in fields.items():
        setattr(build, name, value)
    return fluid.CompiledProgram(program).with_data_parallel(
        build_strategy=build, places=fluid.cpu_places(count))


def halves(*names):
    values = {"x": X, "y": Y}
    return [{n: values[n][part] for n in names}
            for part in (slice(0, 10), slice(10, 20))]


def test_places_learn_what_one_learns(line, exe, programs):
    start_again()
    want = [np.mean(exe.run(feed={"x": X, "y": Y}, fetch_list=[line[0]])[0])
            for _ in range(5)]
    weight = _fetch_var("fc_0.w_0")
    bits = []
    for _ in range(2):
        start_again()
        compiled = on_places(programs[0])
        got = [exe.run(compiled, feed={"x": X, "y": Y}, fetch_list=[line[0]])[0]
               for _ in range(4)]
        got += exe.run(compiled, feed=halves("x", "y"), fetch_list=[line[0]])
        assert all(g.shape == (2,) for g in got)
        np.testing.assert_allclose(np.mean(got, axis=1), want, atol=1e-5)
        np.testing.assert_allclose(_fetch_var("fc_0.w_0"), weight, atol=1e-5)
        bits.append((np.array(got).tobytes(),
                     np.array(_fetch_var("fc_0.w_0")).tobytes()))
    assert bits[0] == bits[1]


def test_gradients_are_scaled_as_asked(line, exe, programs):
    def gradient(program, **more):
        start_again()
        return exe.run(program, feed=dict({"x": X, "y": Y}, **more),
                       fetch_list=["fc_0.w_0@GRAD"])[0]

    def scaled(name, **more):
        how = fluid.BuildStrategy.GradientScaleStrategy[name]
        return gradient(on_places(programs[0], gradient_scale_strategy=how),
                        **more)
    one = gradient(programs[0])
    whole = np.concatenate([one, one])  # what is common comes from each place
    seeds = {line[0].name + "@GRAD": np.array([1.5, 1.5], "float32")}
    for times, got in ((1, scaled("CoeffNumDevice")), (2, scaled("One")),
                       (3, scaled("Customized", **seeds))):
        np.testing.assert_allclose(got, times * whole, atol=1e-5)


def test_a_row_for_each_sample_comes_back(programs, exe):
    out = fluid.layers.fc(fluid.layers.data("x", [13]), 1)
    exe.run(programs[1])
    for rows in (20, 7, 2):  # on three places: 6, 6 and 8; 2, 2, 3; 1, 1
        want, got = (exe.run(p, feed={"x": X[:rows]}, fetch_list=[out])[0]
                     for p in (programs[0], on_places(programs[0], 3)))
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_sequences_stay_whole(programs, exe):
    words = fluid.layers.data("words", [1], lod_level=1)
    out = fluid.layers.sequence_pool(words, "sum")
    compiled = on_places(programs[0])

    def lod(*lengths):
        return {"words": fluid.create_lod_tensor(
            np.full((sum(lengths), 1), 1.0, "float32"), [list(lengths)],
            None)}
    for feed in ([lod(1, 2), lod(4)], lod(1, 2, 4), [lod(1, 2, 4)]):
        got, = exe.run(compiled, feed=feed, fetch_list=[out])
        assert got.tolist() == [[1.0], [2.0], [4.0]]
    whole, = exe.run(compiled, feed=lod(1, 2, 4), fetch_list=[words],
                     return_numpy=False)
    assert whole.recursive_sequence_lengths() == [[1, 2, 4]]
    with pytest.raises(ValueError, match="a list of 3, but the program runs on 2 "
                       "places"):
        exe.run(compiled, feed=[lod(1)] * 3, fetch_list=[out])
    with pytest.raises(ValueError, match="one is fed .'words'."):
        exe.run(compiled, feed=[lod(1), {"x": X}], fetch_list=[out])


def test_every_place_has_a_thread(line, exe, programs, tmp_path, monkeypatch):
    monkeypatch.setenv("CPU_NUM", "3")
    pe = fluid.ParallelExecutor(use_cuda=False, loss_name=line[0].name,
                                main_program=programs[0])
    assert pe.device_count == 3
    trace = str(tmp_path / "trace")
    with fluid.profiler.profiler("CPU", profile_path=trace):
        loss, = pe.run([line[0]], feed={"x": X, "y": Y})
    assert loss.shape == (3,)
    with open(trace) as f:
        events = json.load(f)["traceEvents"]
    threads = {t: {e["name"] for e in events if e["tid"] == t}
               for t in range(4)}
    assert "sgd" in threads[0] and "mean" not in threads[0]
    for place in (1, 2, 3):
        assert "mean" in threads[place] and "sgd" not in threads[place]
    names = [open(f).read().strip()
             for f in glob.glob("/proc/self/task/*/comm")]
    assert {"place-0", "place-1", "place-2"} <= set(names)


# Some seconds of matrix products on two places.
SLOW = """
import signal, sys, threading, time
import numpy as np, paddle.fluid as fluid
signal.signal(signal.SIGINT, signal.default_int_handler)
y = fluid.layers.data('x', [1500])
for _ in range(500):  # nobody waits for the end
    y = fluid.layers.fc(y, 1500, param_attr='w', bias_attr=False)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
compiled = fluid.CompiledProgram(
    fluid.default_main_program()).with_data_parallel(
        places=fluid.cpu_places(2))

def others_run():
    for _ in range(100):
        time.sleep(0.001)
    print('others run', file=sys.stderr, flush=True)
threading.Thread(target=others_run).start()
exe.run(compiled, feed={'x': np.zeros((3000, 1500), 'float32')},
        fetch_list=[y])
print('done')
"""


def test_a_run_on_places_leaves_others_the_lock_and_hears_ctrl_c():
    child = subprocess.Popen(
        [sys.executable, "-c", SLOW], stderr=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert "others run" in child.stderr.readline()
    assert child.poll() is None
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=LIMIT)
    assert "KeyboardInterrupt" in err and out == ""
    assert child.returncode != 0


def test_the_first_place_keeps_running_means(programs, exe):
    x = fluid.layers.data("x", [13])
    mean = fluid.layers.mean(fluid.layers.batch_norm(
        x, momentum=0.5, moving_mean_name="moving"))
    exe.run(programs[1])
    exe.run(on_places(programs[0]), feed={"x": X}, fetch_list=[mean])
    np.testing.assert_allclose(_fetch_var("moving"), X[:10].mean(0) / 2,
                               atol=1e-6)


def test_a_plain_compiled_program_runs(line, exe, programs):
    compiled = fluid.CompiledProgram(programs[0])
    got, = exe.run(compiled, feed={"x": X, "y": Y}, fetch_list=[line[0]])
    assert got.shape == (1,)


def test_variables_are_shared_before_the_first_run(line, exe, programs):
    train = fluid.CompiledProgram(programs[0]).with_data_parallel()
    other = fluid.CompiledProgram(programs[0].clone(for_test=True))
    other.with_data_parallel(share_vars_from=train)
    feed = {"x": X, "y": Y}
    exe.run(train, feed=feed)
    first, = exe.run(other, feed=feed, fetch_list=[line[0].name])
    exe.run(train, feed=feed)
    second, = exe.run(other, feed=feed, fetch_list=[line[0].name])
    assert second.sum() < first.sum()
    with pytest.raises(TypeError, match="must be a CompiledProgram, not Prog"):
        fluid.CompiledProgram(programs[0]).with_data_parallel(
            share_vars_from=programs[0])
    with pytest.raises(AssertionError, match="Already compiled"):
        other.with_data_parallel()


def test_a_parallel_executor_shares_variables_before_it_runs(line, programs):
    scope = fluid.Scope()
    fluid.Executor(fluid.CPUPlace()).run(programs[1], scope=scope)
    strategy = fluid.ExecutionStrategy()
    strategy.use_experimental_executor = True
    strategy.num_iteration_per_run = 1
    train = fluid.ParallelExecutor(
        use_cuda=False, loss_name=line[0].name, main_program=programs[0],
        exec_strategy=strategy, scope=scope)
    test = fluid.ParallelExecutor(
        use_cuda=False, main_program=programs[0].clone(for_test=True),
        share_vars_from=train)
    assert test._need_create_local_exe_scopes()
    got, = test.run([line[0].name], feed={"x": X, "y": Y})
    assert np.isfinite(got).all()


def test_a_parallel_executor_runs(line, programs):
    pe = fluid.ParallelExecutor(use_cuda=False, loss_name=line[0].name,
                                main_program=programs[0])
    assert pe.device_count >= 1
    first, = pe.run([line[0].name], feed={"x": X, "y": Y})
    second, = pe.run(fetch_list=[line[0].name], feed_dict={"x": X, "y": Y})
    assert second < first
    assert not pe._need_create_local_exe_scopes()
    pe.drop_local_exe_scopes()
    assert pe._need_create_local_exe_scopes()
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
    with pytest.raises(ValueError, match="trainer_id is 2, but num_trainers"):
        on_places(programs[0], num_trainers=2, trainer_id=2)
    build = fluid.BuildStrategy()
    passes = build._finalize_strategy_and_create_passes()
    passes.append_pass("graph_viz_pass")
    passes.insert_pass(0, "multi_batch_merge_pass").set("num_repeats", 2)
    assert [p.type() for p in passes.all_passes()] == [
        "multi_batch_merge_pass", "graph_viz_pass"]
    with pytest.raises(NotImplementedError, match="multi_batch_merge_pass"):
        fluid.CompiledProgram(programs[0]).with_data_parallel(
            build_strategy=build)
