# SPDX-License-Identifier: Apache-2.0
"""Jobs to which things happen: nobody hangs, nothing is lost or doubled."""
import os
import re
import signal
import subprocess

import pytest

import fault_job
from cluster import LIMIT, Cluster

SCRIPT = fault_job.__file__
QUICK = {"FLUID_LINGER": "0.1", "FLUID_STALL": "0.5"}


def cluster(folder, *words, servers=1, trainers=2, **env):
    return Cluster(folder, SCRIPT, servers, trainers, env={**QUICK, **env},
                   argv=words)


def ends(process):
    """The parameters that a trainer ended with."""
    return re.findall(r"^end (\S+ \S+)$", process.text(), re.M)


def test_a_trainer_killed_at_a_barrier_comes_back(tmp_path):
    gate = tmp_path / "gate"
    with cluster(tmp_path, "hold=3:%s" % gate) as job:
        job.start_server(0)
        first = job.start_trainer(0, argv=["steps=8"])
        second = job.start_trainer(1)
        second.says("step 2 ")
        first.says("step 2 ")
        second.kill()
        first.says("step 4 ")  # it goes on alone
        gate.touch()
        again = job.start_trainer(1)
        job.finish()
        assert "step 7 " in first.text() and "step 7 " in again.text()
        assert ends(first)


def test_a_frozen_trainer_is_fenced_and_goes_on(tmp_path):
    gate = tmp_path / "gate"
    with cluster(tmp_path, "steps=40", FLUID_LEASE="5") as job:
        job.start_server(0)
        first = job.start_trainer(0, argv=["steps=40", "hold=20:%s" % gate])
        second = job.start_trainer(1, FLUID_FAILPOINT="step.begin:6:stop")
        first.says("step 19 ")  # it goes on alone
        assert "step 5 " not in second.text()
        second.go_on()
        second.says("lease ran out|lost")
        gate.touch()
        job.finish()
        assert "step 39 " in second.text()


def test_a_slow_step_is_not_a_death(tmp_path):
    """The lease is renewed as long as the step takes."""
    gate = tmp_path / "gate"
    with cluster(tmp_path, "slow=2:%s" % gate, FL_LOG="debug") as job:
        job.start_server(0)
        for i in range(2):
            job.start_trainer(i, FLUID_LEASE="5")  # renewed every second
        for trainer in job.trainer:
            trainer.says("slow step")
        server, renewals = job.server[0], 4
        renewals += server.text().count("RENEW: ")
        server._until(lambda: server.text().count("RENEW: ") >= renewals, None,
                      "has got no renewal")
        gate.touch()
        job.finish()
        assert "lost" not in job.server[0].text()
        assert ends(job.trainer[0]) == ends(job.trainer[1])


def test_nobody_trains_alone_before_all_have_come(tmp_path):
    with cluster(tmp_path) as job:
        job.start_server(0)
        first = job.start_trainer(0)
        first.says("started|waits|waiting")
        job.server[0].says("1 of 2")
        assert "step 0 " not in first.text()
        job.start_trainer(1)
        job.finish()


def test_trainers_may_come_before_servers(tmp_path):
    with cluster(tmp_path, servers=2) as job:
        for i in range(2):
            job.start_trainer(i)
        job.trainer[0].says("0 of 2 servers up")
        for i in range(2):
            job.start_server(i)
        job.finish()


@pytest.mark.parametrize("how", ["close=0", "leave=4"])
def test_a_plain_exit_completes(tmp_path, how):
    with cluster(tmp_path, how) as job:
        job.start().finish()


def test_who_leaves_early_lets_the_others_go_on(tmp_path):
    with cluster(tmp_path) as job:
        job.start_server(0)
        job.start_trainer(0)
        job.start_trainer(1, argv=["leave=3"])
        job.finish()
        assert "step 7 " in job.trainer[0].text()


def test_an_exception_is_the_jobs_verdict(tmp_path):
    with cluster(tmp_path, FLUID_REJOIN="0") as job:
        job.start_server(0)
        job.start_trainer(0)
        job.start_trainer(1, argv=["fail=3"])
        job.trainer[0].end()
        job.trainer[1].end(code=1)
        job.server[0].end(code=1)
        assert "bad luck in step 3" in job.server[0].text()


@pytest.mark.parametrize("sync", ["sync=1", "sync=0"])
def test_a_forked_child_is_told_and_the_parent_goes_on(tmp_path, sync):
    with cluster(tmp_path, "fork=3", sync) as job:
        job.start().finish()
        for trainer in job.trainer:
            assert "was forked from the trainer" in trainer.text()
            assert "child ran" not in trainer.text()
            assert "step 7 " in trainer.text()


def test_another_program_is_refused(tmp_path):
    with cluster(tmp_path, trainers=1) as job:
        job.start_server(0)
        stranger = job.start_trainer(0, argv=["width=14"])
        stranger.end(code=1)
        assert "fc_0.w_0: [14,1] here, [13,1] there" in stranger.text()
        job.start_trainer(0).end()
        job.server[0].end()


def test_servers_in_another_order_are_told(tmp_path):
    with cluster(tmp_path, servers=2) as job:
        for i in range(2):
            job.start_server(i)
        other = job.start_trainer(1, PADDLE_PSERVER_ENDPOINTS=",".join(
            reversed(job.endpoints)))
        other.end(code=1)
        assert "is of another job than this trainer: servers: %s here, %s " \
            "there" % (",".join(reversed(job.endpoints)),
                       ",".join(job.endpoints)) in other.text()
        for i in range(2):
            job.start_trainer(i)
        job.finish()


def test_servers_of_two_jobs_are_told(tmp_path):
    with cluster(tmp_path, servers=2) as job:
        other = job.start_server(1, argv=["width=14"])
        first = job.start_server(0)
        for server, sizes in (first, (13, 14)), (other, (14, 13)):
            server.says(r"is of another job than this server: .*"
                        r"fc_0.w_0: \[%d,1\] here, \[%d,1\] there" % sizes)


def test_who_comes_too_many_is_told(tmp_path):
    gate = tmp_path / "gate"
    with cluster(tmp_path, "hold=2:%s" % gate) as job:
        job.start(PADDLE_TRAINER_ID=None)
        for trainer in job.trainer:
            trainer.says("step 1 ")
            trainer.says("this is trainer . of 2: ids are given in order")
        first = job.trainer[1]
        third = job.start_trainer(1, PADDLE_TRAINER_ID=None)
        third.says("every rank is held, done or kept")
        gate.touch()
        first.end()
        job.finish(but=[third])
        third.end(code=1)
        assert "the job has ended before it could take in" in third.text()


def test_a_second_process_with_an_id_is_turned_away(tmp_path):
    with cluster(tmp_path) as job:
        job.start_server(0)
        first = job.start_trainer(1)
        job.server[0].says("trainer 1 is ")
        second = job.start_trainer(1)
        second.end(code=1)
        assert re.search(r"trainer id 1 is held by \S+:%d\b" % first.pid,
                         second.text())
        first.says(":%d was started with trainer id 1 as well" % second.pid)
        job.start_trainer(0)
        job.finish(but=[second])


@pytest.mark.parametrize("servers,sync", [(1, 1), (2, 1), (1, 0)])
def test_servers_that_start_again_without_their_state_end_the_job(
        tmp_path, servers, sync):
    gate = tmp_path / "gate"
    with cluster(tmp_path, "hold=5:%s" % gate, "sync=%d" % sync,
                 servers=servers, FLUID_LINGER=LIMIT,
                 FLUID_DURABILITY="memory") as job:
        job.start()
        for trainer in job.trainer:
            trainer.says("step 4 ")
        for trainer in job.trainer:
            trainer.stop()  # else it gives up servers that start slowly
        for server in job.server:
            server.kill()
        again = [job.start_server(i) for i in range(servers)]
        for server in again:
            server.says("Server listening on")
        for trainer in job.trainer:
            trainer.go_on()
        gate.touch()
        for trainer in job.trainer:
            trainer.end(code=1)
            assert re.search(r"server 0 \(%s\) was started again and has lost "
                             "its parameters" % job.endpoints[0],
                             trainer.text().splitlines()[-1])
        for server in again:
            server.says("has lost its parameters")


def test_a_job_whose_trainers_all_failed_ends_soon(tmp_path):
    with cluster(tmp_path, "fail=0", trainers=3, FLUID_REJOIN="1") as job:
        job.start_server(0)
        for i in range(2):  # the third never comes
            job.start_trainer(i, PADDLE_TRAINER_ID=None).end(code=1)
        job.server[0].end(code=1)
        assert "trainer 0: ValueError: bad luck in step 0" in \
            job.server[0].text()


def test_servers_leave_at_once_if_no_trainer_is_left(tmp_path):
    """Servers of a job that has failed answer for FLUID_LINGER seconds, but
    trainers that have failed and do not come back ask nothing."""
    with cluster(tmp_path, "fail=0", servers=2, trainers=2,
                 FLUID_REJOIN_FAILED="0", FLUID_LINGER=10 * LIMIT) as job:
        job.start()
        for p in job.trainer + job.server:
            p.end(code=1)


def test_servers_say_that_they_wait_for_a_trainer_to_come_back(tmp_path):
    with cluster(tmp_path, "fail=0", trainers=1, FLUID_STALL="0.2") as job:
        job.start()
        job.trainer[0].end(code=1)
        job.server[0].says("coordinator waits for trainer 0 .*: to come back, "
                           "else the job ends")


def test_a_gradient_that_is_no_number_is_named(tmp_path):
    with cluster(tmp_path, "nan=2", trainers=1, FLUID_REJOIN="0") as job:
        job.start()
        job.trainer[0].end(code=1)
        assert re.search(r"fc_0.\w_0@GRAD", job.trainer[0].text())
        assert re.search(r"NaN|nan|finite", job.trainer[0].text())
        job.server[0].end(code=1)


def test_a_taken_port_names_its_holder(tmp_path):
    with cluster(tmp_path, trainers=1, FLUID_DURABILITY="memory") as job:
        holder = job.start_server(0)
        holder.says("Server listening on")
        second = job.start_server(0, FLUID_PORT_HELD="0")
        second.end(code=1)
        assert "process %d (" % holder.pid in second.text()
        job.start_trainer(0).end()
        holder.end()


@pytest.mark.parametrize("number, code", [
    (signal.SIGTERM, 128 + signal.SIGTERM),
    (signal.SIGINT, -signal.SIGINT)])  # as Python ends with KeyboardInterrupt
def test_a_server_that_is_told_to_end_too_early_fails(tmp_path, number, code):
    with cluster(tmp_path, "steps=100000", trainers=1) as job:
        job.start()
        job.trainer[0].says("step 3 ")
        job.server[0].send(number)
        job.server[0].end(code=code)
        job.trainer[0].end(code=1)


@pytest.mark.parametrize("dead", [0, 1])  # 0 is the coordinator, too
@pytest.mark.parametrize("level, time", [("memory", 5), ("process", 7)])
def test_a_killed_server_is_named(tmp_path, dead, level, time):
    """At level process it may be started again, and is waited for."""
    with cluster(tmp_path, "steps=100000", servers=2, trainers=1,
                 FLUID_STALL="1", FLUID_REACH="60", FLUID_RESTART="7",
                 FLUID_LEASE="5",  # a server looks for server 0 after it
                 FLUID_DURABILITY=level) as job:
        job.start()
        trainer, other = job.trainer[0], job.server[1 - dead]
        trainer.says("step 3 ")
        job.server[dead].kill()
        trainer.says("%s refuses connections" % job.endpoints[dead])
        trainer.end(code=1)
        other.end(code=1)
        # whatever it asked for then: PULL, PUSH, or BARRIER of the coordinator
        last = trainer.text().splitlines()[-1]
        assert "server %d (%s)" % (dead, job.endpoints[dead]) in last
        assert "has refused connections for %d s" % time in last
        assert "FAILED" not in last  # the first failure, not its echo


def test_async_trainers_need_not_meet(tmp_path):
    with cluster(tmp_path, "sync=0", "steps=30", servers=2) as job:
        job.start().finish()


def test_the_waits_of_a_job_can_be_asked_for(tmp_path):
    gate = tmp_path / "gate"
    with cluster(tmp_path) as job:
        job.start_server(0)
        job.start_trainer(0)
        held = job.start_trainer(1, argv=["hold=2:%s" % gate])
        job.trainer[0].says("step 1 ")
        held.says("step 1 ")
        why = ["paddle", "why", job.endpoints[0]]
        said = subprocess.run(why, capture_output=True, text=True,
                              timeout=LIMIT)
        assert said.returncode == 0
        assert re.search("rank 1|trainer 1", said.stdout), said.stdout
        os.kill(job.server[0].pid, signal.SIGUSR1)
        job.server[0].says("waits for")
        gate.touch()
        job.finish()
