# SPDX-License-Identifier: Apache-2.0
"""fluid.Trainer and Inferencer: events, checkpoints, and what they save."""
import os
import re
import signal
import subprocess
import sys

import numpy as np
import paddle.fluid as fluid
import pytest
from paddle.fluid import layers

from cluster import BUILD, FOREIGN, LIMIT, Cluster

JOB = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                   "trainer_job.py")
ENV = {"FLUID_LINGER": "0.2", "FLUID_NO_FUSE": "1"}
BATCHES = [[(np.float32([i, j]), np.float32([i - j])) for i in range(3)]
           for j in range(4)]


def network():
    x = layers.data(name="x", shape=[2], dtype="float32")
    return layers.fc(input=x, size=1)


def train_func():
    out = network()
    y = layers.data(name="y", shape=[1], dtype="float32")
    return [layers.mean(layers.square_error_cost(input=out, label=y)), out]


def make(**options):
    return fluid.Trainer(train_func, lambda: fluid.optimizer.SGD(0.01),
                         **options)


def test_a_folder_that_cannot_be_written_is_noticed_before_training(tmp_path):
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OSError, match="^CheckpointConfig: checkpoint_dir "
                           "'.*' cannot be written .*; choose another"):
            make(checkpoint_config=fluid.CheckpointConfig(str(folder)))
    make(checkpoint_config=fluid.CheckpointConfig(str(tmp_path / "new")))
    assert not os.listdir(tmp_path / "new")


def train(trainer, handler, epochs=2):
    trainer.train(epochs, handler, lambda: iter(BATCHES), ["x", "y"])


def described(event):
    name = type(event).__name__.replace("Event", "")
    return "%s %s" % (name, " ".join(
        str(getattr(event, k)) for k in ("epoch", "step") if
        hasattr(event, k)))


def test_events_come_in_order_and_metrics_as_asked():
    told, metrics = [], []

    def handler(event):
        told.append(described(event))
        if isinstance(event, fluid.BeginStepEvent):
            assert event.fetch_metrics is True
            event.fetch_metrics = event.step != 1
        if isinstance(event, fluid.EndStepEvent):
            metrics.append([np.shape(m) for m in event.metrics])

    train(make(), handler)
    assert told == [
        line for e in range(2) for line in
        ["BeginEpoch %d" % e] + [
            "%s %d %d" % (kind, e, s) for s in range(4)
            for kind in ("BeginStep", "EndStep")] + ["EndEpoch %d" % e]]
    assert metrics == 2 * [[(1,), (3, 1)], [], [(1,), (3, 1)], [(1,), (3, 1)]]


def test_stop_ends_training_after_the_step():
    told = []
    trainer = make()

    def handler(event):
        told.append(described(event))
        if told[-1] == "EndStep 1 2":
            trainer.stop()

    train(trainer, handler)
    assert told[-1] == "EndStep 1 2"
    told.clear()
    train(trainer, told.append, epochs=1)  # and it can train again
    assert isinstance(told[-1], fluid.EndEpochEvent)


def test_what_is_trained_is_tested_saved_and_inferred(tmp_path):
    trainer = make()
    train(trainer, lambda event: None, epochs=200)
    cost, mean = trainer.test(lambda: iter(BATCHES), {"y": 1, "x": 0})
    assert cost < 0.02 and np.shape(mean) == (3,)
    trainer.save_params(str(tmp_path / "params"))
    out, = fluid.Inferencer(network, str(tmp_path / "params")).infer(
        {"x": np.float32([[2, 1], [1, 3]])})
    assert np.allclose(out, [[1], [-2]], atol=0.3)
    with pytest.raises(ValueError, match="inputs should be a map"):
        fluid.Inferencer(network, str(tmp_path / "params")).infer([1])
    trainer.save_inference_model(str(tmp_path / "model"), ["x"], [1])
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor()
        program, feeds, fetches = fluid.io.load_inference_model(
            str(tmp_path / "model"), exe)
        same, = exe.run(program, {feeds[0]: np.float32([[2, 1], [1, 3]])},
                        fetches)
    assert np.array_equal(out, same)
    again = make(param_path=str(tmp_path / "params"))
    assert again.test(lambda: iter(BATCHES), ["x", "y"])[0] == cost


def test_places_of_a_parallel_trainer_share_each_batch(monkeypatch):
    monkeypatch.setenv("CPU_NUM", "3")
    losses = {}
    for parallel in (False, True):
        found = losses[parallel] = []
        trainer = fluid.Trainer(
            lambda: layers.mean(layers.square_error_cost(
                input=layers.fc(layers.data("x", [2]), 1, param_attr=
                                fluid.initializer.Constant(0.1)),
                label=layers.data("y", [1]))),
            lambda: fluid.optimizer.SGD(0.01), parallel=parallel)
        train(trainer, lambda e: found.append(e.metrics[0]) if isinstance(
            e, fluid.EndStepEvent) else None)
    assert losses[True][0].shape == (3,)
    assert np.allclose([np.mean(m) for m in losses[True]],
                       np.ravel(losses[False]), rtol=1e-5)


@pytest.mark.parametrize("order,error,words", [
    ({"x": 0, "y": 2}, ValueError, "places .0, 2., expected each of 0 to 1"),
    ("x", TypeError, "feed_order is 'x', expected a list of names"),
    (["x", "z"], ValueError, "z")])
def test_a_wrong_feed_order_is_named(order, error, words):
    with pytest.raises(error, match=words):
        make().train(1, print, lambda: iter(BATCHES), order)


def test_wrong_arguments_are_named():
    with pytest.raises(TypeError, match="optimizer_func returned 3"):
        fluid.Trainer(train_func, lambda: 3)
    with pytest.raises(TypeError, match="expected a CheckpointConfig"):
        make(checkpoint_config="folder")
    with pytest.raises(ValueError, match="step_interval is 0, expected 1"):
        fluid.CheckpointConfig(step_interval=0)
    with pytest.raises(TypeError, match="reader is None, expected a function"):
        make().train(1, print)
    with pytest.raises(ValueError, match="the reader gave no batch"):
        make().test(lambda: iter(()), ["x", "y"])
    with pytest.warns(UserWarning, match="no folder param_path='nowhere'"):
        make(param_path="nowhere")


def test_the_later_names_are_the_same_classes():
    import paddle.fluid.contrib.inferencer
    import paddle.fluid.contrib.trainer
    assert paddle.fluid.contrib.trainer.Trainer is fluid.Trainer
    assert fluid.contrib.Trainer is fluid.trainer.Trainer
    assert paddle.fluid.contrib.inferencer.Inferencer is fluid.Inferencer
    with pytest.raises(AttributeError, match="is not in this version yet"):
        fluid.contrib.slim


# --- checkpoints, with real processes ----------------------------------------

def run(folder, *words, code=0):
    """What a process alone says."""
    env = {k: v for k, v in os.environ.items() if not FOREIGN.match(k)}
    env.update(ENV, PYTHONPATH=os.path.join(BUILD, "python"))
    done = subprocess.run([sys.executable, JOB, str(folder), *words], env=env,
                          text=True, capture_output=True, timeout=LIMIT)
    assert done.returncode == code, done.stderr
    return done.stdout


def steps(text):
    return re.findall(r"^step .*$", text, re.M)


def saved(text):
    found = re.findall(r"^saved .*$", text, re.M)
    assert len(found) > 5
    return found


def test_a_killed_run_goes_on_where_it_was_with_the_same_bits(tmp_path):
    whole = run(tmp_path / "whole")
    assert "checkpoints left: 0" in whole
    run(tmp_path / "cut", "die=1:3", code=-signal.SIGKILL)
    assert len(os.listdir(tmp_path / "cut/saved")) == 2
    rest = run(tmp_path / "cut")
    # Step 2 of epoch 1 was the last with a checkpoint.
    assert steps(rest) == steps(whole)[9:]
    assert saved(rest) == saved(whole)


def test_a_failed_run_keeps_its_checkpoints(tmp_path):
    run(tmp_path, "raise=0:5", code=1)
    assert len(os.listdir(tmp_path / "saved")) == 2
    run(tmp_path, "raise=2:5", code=1)
    assert steps(run(tmp_path))[0].startswith("step 2 5 ")


def cluster(folder, *words, sub="job", **env):
    return Cluster(folder, JOB, 2, 2, {**ENV, **env},
                   [str(folder / sub), *words])


def test_servers_and_trainers_go_on_from_one_checkpoint(tmp_path):
    with cluster(tmp_path, "sparse=1", sub="whole") as job:
        job.start().finish()
        whole = job.trainer[0].text()
    with cluster(tmp_path, "sparse=1", "hold=1:3") as job:
        job.start()
        for t in job.trainer:
            t.says("^step 1 3 ")
        for p in job.started:  # power is lost
            p.kill()
    with cluster(tmp_path, "sparse=1") as job:
        job.start().finish()
        for t in job.trainer:
            assert "goes on from checkpoint" in t.text()
            assert saved(t.text()) == saved(whole)
        assert steps(job.trainer[0].text()) == steps(whole)[9:]


def test_trainers_refuse_a_checkpoint_that_servers_have_not(tmp_path):
    with cluster(tmp_path, "hold=1:3") as job:
        job.start()
        job.trainer[0].says("^step 1 3 ")
        for p in job.started:
            p.kill()
    with cluster(tmp_path) as job:
        for i in range(2):
            job.start_server(i, argv=[str(tmp_path / "elsewhere")])
        for i in range(2):
            job.start_trainer(i)
        for t in job.trainer:
            t.end(code=1)
            assert "the servers did not load it; give all processes" \
                in t.text()


def test_a_role_that_is_none_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("PADDLE_TRAINING_ROLE", "MASTER")
    monkeypatch.setenv("PADDLE_PSERVER_IPS", "127.0.0.1")
    with pytest.raises(ValueError, match="MASTER.*TRAINER or PSERVER"):
        make()
