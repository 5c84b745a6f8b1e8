# SPDX-License-Identifier: Apache-2.0
"""The communicator: nothing that was handed over is lost, or counts twice."""
import os

import numpy as np
import pytest

import gather_job
import paddle.fluid as fluid
from cluster import Cluster
from paddle.fluid.communicator import Communicator

SERVERS = "127.0.0.1:6174,127.0.0.1:6175"


def saved(folder):
    """What the model on disk has."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), \
            fluid.scope_guard(fluid.Scope()):
        gather_job.network()
        exe = fluid.Executor(fluid.CPUPlace())
        fluid.io.load_persistables(exe, os.path.join(folder, "model"), main)
        return [np.array(fluid.global_scope().find_var(name).get_tensor())
                for name in ("w", "table")]


def run(folder, argv, servers=2, trainers=2, **env):
    with Cluster(folder, gather_job.__file__, servers, trainers, argv=argv,
                 env={"FLUID_LINGER": "0.1", **env}) as job:
        job.start()
        for trainer in job.trainer[1:]:
            trainer.end()
        open(os.path.join(folder, "go"), "w").close()
        job.finish()
        return job.trainer[0].text()


def check(folder, trainers=2):
    for got, want in zip(saved(folder), gather_job.expected(trainers)):
        assert np.array_equal(got, want)


@pytest.mark.parametrize("argv", [
    ("async", "run", "1"), ("async", "run", "1", "end"),
    ("async", "dataset", "2"), ("half", "run", "1", "end"),
    ("half", "dataset", "2")], ids=" ".join)
def test_every_gradient_is_applied_once(tmp_path, argv):
    run(tmp_path, argv)
    check(tmp_path)


def test_flags_change_the_way_and_not_the_sum(tmp_path):
    run(tmp_path, ("async", "dataset", "2"), servers=1,
        FLAGS_communicator_independent_recv_thread="0",
        FLAGS_communicator_max_merge_var_num="1",
        FLAGS_communicator_min_send_grad_num_before_recv="1",
        FLAGS_communicator_send_wait_times="0")
    check(tmp_path)


def test_saving_brings_parameters_home(tmp_path):
    said = run(tmp_path, ("async", "run", "1"), trainers=1)
    w = ["[%d.]" % x for x in gather_job.expected(1)[0][:, 0]]
    assert said.split("w ", 1)[1].split("\n")[0] == " ".join(w)


@pytest.mark.parametrize("point", ["join.granted", "push.sent"])
def test_a_worker_that_is_killed_takes_along_what_is_its_own(tmp_path, point):
    with Cluster(tmp_path, gather_job.__file__, 1, 2,
                 argv=("async", "run", "1"),
                 env={"FLUID_LINGER": "0.1", "FLUID_REJOIN": "0",
                      "FLUID_LEASE": "30"}) as job:
        job.start_server(0)
        job.start_trainer(1, argv=("async", "run", "1", "end"))
        job.trainer[1].end()
        job.start_trainer(0, FLUID_FAILPOINT=point + ":1").end(code=-9)
        assert job.server[0].end(code=None) != 0
        assert "trainer 0" in job.server[0].text()


def test_ctrl_c_ends_a_pass_whose_server_is_silent(tmp_path):
    with Cluster(tmp_path, gather_job.__file__, 1, 1,
                 argv=("async", "dataset", "1"),
                 env={"FLUID_DURABILITY": "process"}) as job:
        job.start_server(0, FLUID_FAILPOINT="owner.done:3:stop")
        job.start_trainer(0)
        job.server[0].stopped()
        job.trainer[0].interrupt()
        job.trainer[0].end(code=None)
        assert "was ended by Ctrl-C" in job.trainer[0].text()
        assert "SystemError" not in job.trainer[0].text()


# --- what it refuses ---------------------------------------------------------

@pytest.fixture
def programs():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        fluid.optimizer.SGD(0.1).minimize(gather_job.network()[1])
        yield main, startup


def cut(programs, **fields):
    config = fluid.DistributeTranspilerConfig()
    for key, value in fields.items():
        setattr(config, key, value)
    t = fluid.DistributeTranspiler(config)
    t.transpile(0, programs[0], SERVERS, 2, startup_program=programs[1])
    return t.get_trainer_program(wait_port=False)


def test_it_starts_and_stops(programs):
    c = Communicator(cut(programs, sync_mode=False,
                         runtime_split_send_recv=True))
    assert not c.is_running()
    c.stop()  # nothing to do


def test_it_is_for_asynchronous_trainers(programs):
    with pytest.raises(ValueError, match="meet after every step"):
        Communicator(cut(programs)).start()
    with pytest.raises(TypeError, match="program"):
        Communicator("program")


def test_it_wants_programs_of_a_job(programs):
    with pytest.raises(ValueError, match="is not part of a job"):
        Communicator(programs[0]).start()
    assert not Communicator(programs[0]).is_running()


def test_half_async_has_a_barrier_of_its_own(programs):
    ops = cut(programs, half_async=True).global_block().ops
    assert [op.type for op in ops][-2:] == ["send_barrier", "recv"]
    barrier = next(op for op in ops if op.type == "send_barrier")
    assert barrier.attr("half_async") is True
