# SPDX-License-Identifier: Apache-2.0
"""A killed `paddle pserver` that is started again goes on with its job."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

from kills import scene_word
from test_v2_servers import SCRIPT, Job, costs

KEPT = {"FLUID_DURABILITY": "process", "FLUID_RESTART": "60",
        "FLUID_LINGER": "0.1"}

# Settings of the job, and where server 0 and 1 are killed.
SCENES = [
    ({"optimizer": "Momentum", "args": {"momentum": 0.5}},
     {0: "owner.applied:9"}),
    ({"optimizer": "Adam", "hidden": 900, "args": {
        "learning_rate_schedule": "poly", "learning_rate_decay_a": 0.05,
        "learning_rate_decay_b": 1.0}},
     {0: "stage.count:5", 1: "owner.live:12"}),
    ({"optimizer": "AdaGrad"}, {1: "image.selected:9"}),
    ({"optimizer": "AdaGrad", "passes": 6},
     {0: "owner.applied:9 owner.applied:9"}),
]


# Asynchronous: every use of a parameter subtracts 1/64, which is exact.
COUNTS = {"count": True, "passes": 8,
          "args": {"is_async": True, "learning_rate": 1 / 64}}


def kept(folder, servers=2, trainers=2, **more):
    job = Job(folder, servers, trainers, **more)
    job.env.update(KEPT)
    return job


def tars(folder):
    return [(folder / ("tar%d" % i)).read_bytes() for i in range(2)]


def states(job):
    path = os.path.join(job.folder, "state")
    return sorted(os.listdir(path)) if os.path.isdir(path) else []


def play(job, killed, **asked):
    """Play a job; killed: the failpoints of each server's first process, of
    its second one and so on. The costs of each trainer."""
    with job:
        points = [killed.get(i, "").split() for i in range(job.servers)]
        servers = [job.server(i, FLUID_FAILPOINT=points[i][0] if points[i]
                              else "") for i in range(job.servers)]
        trainers = [job.trainer(i, out="tar", **asked)
                    for i in range(job.trainers)]
        for i in killed:
            for point in points[i][1:] + [""]:
                servers[i].end(-signal.SIGKILL)
                servers[i] = job.server(i, FLUID_FAILPOINT=point)
                servers[i].says("going on at version")
        for process in trainers + servers:
            process.end()
        assert not states(job)
        return [costs(t) for t in trainers]


@pytest.mark.parametrize("asked, killed", SCENES, ids=scene_word)
def test_a_killed_server_changes_no_bit(tmp_path, asked, killed):
    calm, disturbed = tmp_path / "calm", tmp_path / "disturbed"
    for folder in calm, disturbed:
        folder.mkdir()
    want = play(kept(calm, ports=2), {}, **asked)
    assert play(kept(disturbed, ports=2), killed, **asked) == want
    found = {*tars(disturbed), *tars(calm)}
    assert len(found) == 1


@pytest.mark.parametrize("killed", [
    {0: "owner.live:9"}, {0: "owner.marked:7", 1: "owner.window:20"},
    {0: "owner.live:9 owner.window:9"}], ids=scene_word)
def test_every_asynchronous_gradient_counts_once(tmp_path, killed):
    with Job(tmp_path) as job:
        job._run("alone", [sys.executable, SCRIPT, json.dumps(
            {**COUNTS, "local": True, "out": "alone"})]).end()
    play(kept(tmp_path), killed, **COUNTS)
    # Who ends last has all that the other one sent.
    assert (tmp_path / "alone0").read_bytes() in tars(tmp_path)


def test_a_server_that_is_killed_during_the_set_up_gets_its_job_again(
        tmp_path):
    with kept(tmp_path, servers=1, trainers=1) as job:
        first = job.server(FLUID_FAILPOINT="setup.kept:1")
        trainer = job.trainer()
        first.end(-signal.SIGKILL)
        again = job.server()
        again.says("has brought the program$")
        trainer.end()
        again.end()


def test_trainers_wait_aloud_for_a_killed_server(tmp_path):
    with kept(tmp_path, servers=1, trainers=1) as job:
        job.env["FLUID_STALL"] = "0.2"
        server = job.server(0, FLUID_FAILPOINT="owner.applied:3")
        trainer = job.trainer()
        server.end(-signal.SIGKILL)
        assert states(job) == ["pserver-127.0.0.1:%d" % (job.port + i)
                               for i in range(2)]
        trainer.says(r"waits for (server \d|the coordinator) \(127.0.0.1:\d+\)"
                     r": answer to \w+ .*\(limit [0-9.]+ s\)")
        server = job.server()
        trainer.end()
        server.end()


@pytest.mark.parametrize("asked, point", [
    ({"optimizer": "Adam"}, "owner.applied:30"), (COUNTS, "owner.marked:9")])
def test_a_lost_host_changes_no_bit(tmp_path, asked, point):
    """Its memory is gone: the journal has the program, too."""
    calm, lost = tmp_path / "calm", tmp_path / "lost"
    for folder in calm, lost:
        folder.mkdir()
    with kept(calm, servers=1, trainers=1) as job:
        server, trainer = job.server(), job.trainer(out="tar", **asked)
        trainer.end()
        server.end()
    with kept(lost, servers=1, trainers=1) as job:
        job.env.update(FLUID_DURABILITY="host",
                       FLUID_JOURNAL_DIR=str(lost / "journal"))
        server = job.server(FLUID_FAILPOINT=point)
        trainer = job.trainer(out="tar", **asked)
        server.end(-signal.SIGKILL)
        for name in states(job):
            shutil.rmtree(lost / "state" / name)
        assert os.listdir(lost / "journal")
        server = job.server()
        server.says("has brought the program, which the state has kept")
        server.says("the state was made again from")
        trainer.end()
        server.end()
        assert not states(job) and not os.listdir(lost / "journal")
    assert (lost / "tar0").read_bytes() == (calm / "tar0").read_bytes()


def test_the_flag_wins_over_the_variable(tmp_path):
    with kept(tmp_path, servers=1, trainers=1) as job:
        wrong = job.server(0, "--durability=disk")
        wrong.end(2)
        assert 'paddle: pserver: --durability is "disk"; the levels are' \
            in wrong.text()
        server = job.server(0, "--durability", "memory")
        trainer = job.trainer()
        trainer.end()
        server.end()
        assert not states(job) and "durability: memory;" in server.text()
        server = job.server(0, "--durability=process", FLUID_DURABILITY="")
        trainer = job.trainer()
        trainer.end()
        server.end()
        assert "durability: process; the state is in" in server.text()


def test_a_kept_server_is_killed_in_its_second_job(tmp_path):
    with kept(tmp_path, servers=1, trainers=1) as job:
        server = job.server(0, "--keep", FLUID_FAILPOINT="owner.applied:60")
        trainer = job.trainer(trains=3)
        server.end(-signal.SIGKILL)
        server = job.server(0, "--keep")
        server.says("going on at version")
        trainer.end()
        assert len(costs(trainer)) == 24
        server.terminate()
        server.end(0)
        assert not states(job)


# Trainers renew their lease often, so that only one that is not there loses it
# on servers where it runs out soon.
OFTEN, RUNS_OUT = {"FLUID_LEASE": "1"}, {"FLUID_LEASE": "15"}


def test_all_processes_are_killed_and_the_job_goes_on(tmp_path):
    with kept(tmp_path, servers=1, trainers=1) as job:
        job.env.update(OFTEN)
        server = job.server(FLUID_FAILPOINT="owner.applied:9", **RUNS_OUT)
        trainer = job.trainer()
        server.end(-signal.SIGKILL)
        trainer.kill()
        server = job.server(**RUNS_OUT)
        version = int(server.says(r"going on at version (\d+)")[1])
        assert version > 0
        job.trainer().end()
        server.end()


@pytest.mark.parametrize("rejoin, words", [
    ("30", r"gives up the job that \S+:%d \S+ brought and its state has "
     "kept: none of its trainers has come back"),
    ("0", "the job has failed: trainer 0: its lease ran out; this server "
     "waits for another job")])
def test_a_job_without_trainers_makes_way_for_another(tmp_path, rejoin,
                                                      words):
    with kept(tmp_path, servers=1, trainers=1) as job:
        job.env.update(OFTEN, FLUID_REJOIN=rejoin)
        server = job.server(FLUID_FAILPOINT="owner.applied:9", **RUNS_OUT)
        trainer = job.trainer()
        server.end(-signal.SIGKILL)
        trainer.kill()
        server = job.server(**RUNS_OUT)
        other = job.trainer(hidden=9)
        server.says(words % trainer.pid if "%" in words else words)
        other.end()
        server.end()
        assert not states(job)


def test_a_state_for_other_numbers_is_refused_with_its_name(tmp_path):
    with kept(tmp_path, servers=1, trainers=1) as job:
        server = job.server(0, FLUID_FAILPOINT="owner.applied:9")
        trainer = job.trainer()
        server.end(-signal.SIGKILL)
        trainer.kill()
        server = job.server(trainers=2)
        server.end(2)
        assert re.search(
            r"this server was started for 2 trainers .* trainer 0 says 1 .*"
            r"pserver-127.0.0.1:\d+; remove it with `paddle state rm",
            server.text())


def test_a_journal_for_other_numbers_is_refused_with_its_name(tmp_path):
    with kept(tmp_path, servers=1, trainers=1) as job:
        job.env.update(FLUID_DURABILITY="host",
                       FLUID_JOURNAL_DIR=str(tmp_path / "journal"))
        server = job.server(0, FLUID_FAILPOINT="owner.applied:9")
        trainer = job.trainer()
        server.end(-signal.SIGKILL)
        trainer.kill()
        shutil.rmtree(tmp_path / "state")
        server = job.server(trainers=2)
        server.end(2)
        path = re.search(
            r"this server was started for 2 trainers .* trainer 0 says 1 .*"
            r"\(in (\S+); remove it with `paddle state rm \1`", server.text())[1]
        assert os.path.dirname(path) == str(tmp_path / "journal")
        for name in os.listdir(tmp_path / "journal"):
            subprocess.run(["paddle", "state", "rm",
                            str(tmp_path / "journal" / name)], check=True)
        job.server(trainers=2).says("Server listening on")
