# SPDX-License-Identifier: Apache-2.0
"""Executor.train_from_dataset and infer_from_dataset."""
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from cluster import LIMIT
import paddle.fluid as fluid
from paddle.fluid import executor

LINES = 60


def write_files(folder, n=3):
    """Clicks that follow their id."""
    files = []
    for f in range(n):
        path = folder / ("part-%d" % f)
        ids = [(f * LINES + i) * 37 % 50 for i in range(LINES)]
        path.write_text("".join("1 %d 1 %d\n" % (i, i % 2) for i in ids))
        files.append(str(path))
    return files


def net(sgd=True):
    """Programs, the inputs, loss and AUC."""
    main, startup = fluid.Program(), fluid.Program()
    startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        ids = fluid.layers.data(name="ids", shape=[1], lod_level=1,
                                dtype="int64")
        label = fluid.layers.data(name="label", shape=[1], dtype="int64")
        rows = fluid.layers.embedding(ids, size=[50, 4], is_sparse=True)
        x = fluid.layers.sequence_pool(rows, "sum")
        predict = fluid.layers.fc(x, 2, act="softmax")
        cost = fluid.layers.mean(fluid.layers.cross_entropy(predict, label))
        auc, _, _ = fluid.layers.auc(predict, label)
        if sgd:
            fluid.optimizer.SGD(0.5).minimize(cost)
    return main, startup, [ids, label], cost, auc


def dataset_of(inputs, files, threads=1, kind="QueueDataset"):
    dataset = fluid.DatasetFactory().create_dataset(kind)
    dataset.set_use_var(inputs)
    dataset.set_batch_size(10)
    dataset.set_thread(threads)
    dataset.set_filelist(files)
    return dataset


@pytest.fixture
def job(tmp_path):
    """An executor and a scope in which the network has started."""
    main, startup, inputs, cost, auc = net()
    scope, exe = fluid.Scope(), fluid.Executor(fluid.CPUPlace())
    exe.run(startup, scope=scope)

    class Job:
        files = write_files(tmp_path)

        def dataset(self, *args):
            return dataset_of(inputs, self.files, *args)

        def train(self, dataset, **args):
            exe.train_from_dataset(program=main, dataset=dataset, scope=scope,
                                   **args)

        def weight(self):
            return executor._fetch_var("embedding_0.w_0", scope).copy()
    Job.main, Job.cost, Job.auc, Job.exe, Job.scope = main, cost, auc, exe, scope
    return Job()


def auc_values(text):
    return [float(line[len("\tdata: ["):-1]) for line in text.splitlines()
            if line.startswith("\tdata: [")]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_network_learns_from_files(job, threads, capfd):
    dataset = job.dataset(threads)
    for _ in range(8):
        job.train(dataset, fetch_list=[job.auc], fetch_info=["auc"],
                  print_period=2)
    out, err = capfd.readouterr()
    assert out.startswith("auc\t%s\t\n\tlod: {}\n\tdim: 1\n\tlayout: NCHW\n"
                          "\tdtype: double\n\tdata: [" % job.auc.name)
    values = auc_values(out)
    # of two threads the first prints, and it may get few batches
    assert len(values) >= (8 if threads == 1 else 2)
    assert values[-1] > values[0]
    assert "epoch 8  180 examples in " in err


def test_examples_in_memory_teach_the_same(job, capfd):
    queue, memory = job.dataset(1), job.dataset(1, "InMemoryDataset")
    start = job.weight()
    job.train(queue)
    first = job.weight()
    value = job.scope.find_var("embedding_0.w_0").get_tensor()
    assert not (first == start).all()
    _, startup, _, _, _ = net()
    job.exe.run(startup, scope=job.scope)
    assert (np.asarray(value) == start).all()
    memory.load_into_memory()
    job.train(memory)
    assert (job.weight() == first).all()
    assert capfd.readouterr().out == ""


def test_inference_changes_nothing(job, capfd):
    main, startup, inputs, cost, auc = net(sgd=False)
    before = job.weight()
    # one thread: of several, the first prints, and it may get few batches
    job.exe.infer_from_dataset(program=main, dataset=job.dataset(),
                               scope=job.scope, fetch_list=[cost],
                               print_period=3)
    out, err = capfd.readouterr()
    assert out.startswith("%s\t%s\t\n" % (cost.name, cost.name))
    assert "epoch" not in err and "180 examples in" in err
    assert (job.weight() == before).all()


def test_updates_in_an_inference_are_warned_of(job, capfd):
    job.exe.infer_from_dataset(program=job.main, dataset=job.dataset(),
                               scope=job.scope)
    assert "updates parameters" in capfd.readouterr().err


def test_the_status_may_be_json_or_nothing(job, capfd, monkeypatch):
    monkeypatch.setenv("FLUID_STATUS", "json")
    job.train(job.dataset())
    last = json.loads(capfd.readouterr().err.splitlines()[-1])
    assert (last["examples"], last["epoch"], last["done"]) == (180, 1, True)
    assert 0 < last["auc"] <= 1 and last["loss"] > 0
    monkeypatch.setenv("FLUID_STATUS", "off")
    job.train(job.dataset())
    assert capfd.readouterr() == ("", "")
    monkeypatch.setenv("FLUID_STATUS", "loud")
    with pytest.raises(fluid.core.EnforceNotMet,
                       match="FLUID_STATUS.*loud"):
        job.train(job.dataset())


def test_debug_shows_times_of_operators(job, capfd):
    dataset = job.dataset(1)
    dataset.set_batch_size(1)
    job.train(dataset, debug=True)
    err = capfd.readouterr().err
    assert "train: thread 0, batch 100: " in err and " calls\n" in err


def test_what_is_missing_is_named(job):
    with pytest.raises(RuntimeError, match="dataset is needed"):
        job.exe.train_from_dataset()
    with pytest.raises(RuntimeError, match="set thread num first"):
        job.train(job.dataset(0))
    with pytest.raises(ValueError, match="1 labels for 0 fetches"):
        job.train(job.dataset(), fetch_info=["auc"])
    job.train(job.dataset(0), thread=1)
    job.files = []
    with pytest.raises(fluid.core.EnforceNotMet, match="files is empty"):
        job.train(job.dataset())
    with pytest.raises(RuntimeError, match="call load_into_memory"):
        job.train(job.dataset(1, "InMemoryDataset"))
    job.exe.close()
    with pytest.raises(RuntimeError, match="closed"):
        job.train(job.dataset())


@pytest.mark.parametrize("threads", [1, 2])
def test_a_bad_line_is_an_exception(job, tmp_path, threads):
    bad = tmp_path / "bad"
    bad.write_text("1 3 1 0\n1 x 1 0\n")
    job.files.append(str(bad))
    with pytest.raises(Exception, match="bad:2:3: .*1 x 1 0"):
        job.train(job.dataset(threads))


def test_a_pipe_command_that_fails_is_an_exception(job):
    dataset = job.dataset(2)
    dataset.set_pipe_command("echo no luck >&2; exit 3")
    with pytest.raises(Exception, match="(?s)3.*no luck"):
        job.train(dataset)


def test_what_print_raises_arrives(job, monkeypatch):
    def refuse(text):
        raise OSError("nobody reads this")
    monkeypatch.setattr(executor, "_print", refuse)
    with pytest.raises(OSError, match="nobody reads this"):
        job.train(job.dataset(), fetch_list=[job.auc], print_period=1)


SCRIPT = """
import sys
sys.path.insert(0, %r)
import paddle.fluid as fluid
from test_train import net, dataset_of
main, startup, inputs, cost, auc = net()
exe = fluid.Executor(fluid.CPUPlace())
exe.run(startup)
dataset = dataset_of(inputs, sys.argv[1:])
dataset.set_pipe_command("cat; touch ready; sleep 600")
for epoch in range(3):
    exe.train_from_dataset(main, dataset)
    print("saved", epoch, flush=True)
"""


def interrupted(tmp_path, **env):
    """The script's output and code, after Ctrl-C in its first pass."""
    files = write_files(tmp_path, 1)
    p = subprocess.Popen(
        [sys.executable, "-c", SCRIPT % os.path.dirname(__file__)] + files,
        env=dict(os.environ, **env), cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT,
                                         signal.default_int_handler))
    while not (tmp_path / "ready").exists():
        assert p.poll() is None
        time.sleep(0.02)
    p.send_signal(signal.SIGINT)
    out, _ = p.communicate(timeout=LIMIT)
    return out, p.returncode


def test_ctrl_c_interrupts(tmp_path):
    out, code = interrupted(tmp_path)
    assert out == "" and code in (-signal.SIGINT, 130)


def test_under_a_launcher_ctrl_c_lets_the_script_save(tmp_path):
    out, code = interrupted(tmp_path, FLUID_LAUNCHED="1")
    assert out == "saved 0\nsaved 1\nsaved 2\n" and code == 0
