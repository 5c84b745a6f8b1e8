"""Trainers and servers as real processes: what they learn, how they end."""
import os
import re
import signal
import struct
import subprocess
import sys
import time

import pytest

from cluster import Cluster, BUILD

HERE = os.path.dirname(os.path.abspath(__file__))
LINE = os.path.join(HERE, "dist_line.py")
WORDS = os.path.join(HERE, "dist_words.py")
# Quick to notice, and bits that do not depend on the plan.
ENV = {"FLUID_LINGER": "0.2", "FLUID_NO_FUSE": "1"}


def job(folder, servers, trainers, *argv, script=LINE, **env):
    return Cluster(folder, script, servers, trainers, {**ENV, **env}, argv)


def alone(folder, *argv, script=LINE):
    """What one process without servers says."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("PADDLE_", "TRAIN"))}
    env.update(ENV, PYTHONPATH=os.path.join(BUILD, "python"))
    return subprocess.run([sys.executable, script, *argv], env=env, text=True,
                          check=True, capture_output=True, cwd=folder).stdout


def losses(text):
    return [float.fromhex(x) for x in re.findall(r"^loss \d+ (\S+)", text,
                                                 re.M)]


def params(text):
    """The floats of every parameter, in order."""
    found = re.findall(r"^param \S+ (\S+)", text, re.M)
    assert found
    return [x for h in found for x in struct.unpack("<%df" % (len(h) // 8),
                                                    bytes.fromhex(h))]


@pytest.mark.parametrize("argv", [
    ["--optimizer", "SGD"], ["--optimizer", "Momentum"],
    ["--optimizer", "Adam"], ["--optimizer", "Decay"],
    ["--optimizer", "Schedule"], ["--wide", "--optimizer", "Momentum"]],
    ids=lambda argv: argv[-1] + "-wide" * (len(argv) > 2))
def test_trainers_that_are_fed_the_same_learn_as_one(tmp_path, argv):
    with job(tmp_path, 2, 2, "--same", *argv) as j:
        j.start()
        local = alone(tmp_path, *argv)
        j.finish()
        for t in j.trainer:
            assert t.text() == local


def test_a_server_and_a_trainer_learn_as_one(tmp_path):
    with job(tmp_path, 1, 1) as j:
        j.start()
        local = alone(tmp_path)
        j.finish()
        assert j.trainer[0].text() == local


@pytest.mark.parametrize("trainers,argv", [
    (2, ["--optimizer", "Adam"]), (2, ["--padding", "7"]),
    (1, ["--async", "--cut-late"]), (2, ["--table"]),
    (1, ["--table", "--async", "--padding", "7"])],
    ids=lambda x: "".join(x).strip("-") if isinstance(x, list) else None)
def test_rows_are_looked_up_on_servers(tmp_path, trainers, argv):
    with job(tmp_path, 2, trainers, *argv, script=WORDS) as j:
        j.start()
        local = alone(tmp_path, *argv, script=WORDS)
        j.finish()
        for t in j.trainer:
            assert t.text() == local


def test_trainers_that_share_a_batch_learn_as_one(tmp_path):
    with job(tmp_path, 2, 2, "--optimizer", "Adam") as j:
        j.start(trainers_first=True).finish()
        local = params(alone(tmp_path, "--optimizer", "Adam"))
        for t in j.trainer:
            assert params(t.text()) == pytest.approx(local, abs=1e-5)


def test_trainers_may_run_apart(tmp_path):
    with job(tmp_path, 2, 3, "--async", "--steps", "300") as j:
        j.start().finish()
        seen = [losses(t.text()) for t in j.trainer]
        assert max(s[0] for s in seen) > 3  # one at least was the first
        assert max(sum(s[-20:]) / 20 for s in seen) < 1


def test_close_completes_and_the_others_go_on(tmp_path):
    with job(tmp_path, 1, 2, "--close", "--steps", "3") as j:
        j.start_server(0)
        j.start_trainer(0)
        j.argv = ["--steps", "8"]
        j.start_trainer(1)
        j.finish()
        assert len(losses(j.trainer[1].text())) == 8
        assert "every trainer is complete" in j.server[0].text()


def test_one_command_for_both_will_do(tmp_path):
    """Neither knows its number: they get them in the order they come."""
    with job(tmp_path, 1, 2, "--same") as j:
        j.start(PADDLE_TRAINER_ID=None)
        j.finish()
        assert "trainer 1 (" in j.server[0].text()
        assert j.trainer[0].text() == j.trainer[1].text()


def test_an_exception_fails_and_the_others_go_on(tmp_path):
    with job(tmp_path, 1, 2, FLUID_REJOIN="0.2") as j:
        j.start_server(0)
        whole = j.start_trainer(0)
        j.argv = ["--fail", "3"]
        j.start_trainer(1).end(code=1)
        whole.end()
        assert len(losses(whole.text())) == 10
        assert j.server[0].end(code=None) != 0
        assert "ArithmeticError: as was asked for" in j.server[0].text()


def test_a_trainer_that_is_killed_is_missed_at_once(tmp_path):
    with job(tmp_path, 1, 2, "--steps", "30", "--sleep", "0.1",
             FLUID_REJOIN="20") as j:
        j.start()
        dead = j.trainer[1]
        dead.says("^loss 3")
        dead.kill()
        j.server[0].says("is lost: its connection broke", seconds=5)
        again = j.start_trainer(1)
        again.says("^loss 2")
        j.finish(but=[dead])
        assert len(losses(j.trainer[0].text())) == 30


def test_a_trainer_that_slept_too_long_joins_again(tmp_path):
    with job(tmp_path, 1, 2, "--steps", "60", "--sleep", "0.1",
             FLUID_LEASE="1", FLUID_REJOIN="20") as j:
        j.start()
        slept = j.trainer[1]
        slept.says("^loss 3")
        slept.stop()
        j.server[0].says("is lost", seconds=10)
        time.sleep(1)
        slept.go_on()
        slept.says("it joins again", seconds=10)
        j.finish()
        assert len(losses(slept.text())) == 60


def test_a_trainer_is_interrupted_while_it_waits(tmp_path):
    with job(tmp_path, 1, 2) as j:
        j.start_server(0)
        waiting = j.start_trainer(0)  # nobody else comes
        waiting.says("^started")
        time.sleep(0.3)
        began = time.monotonic()
        waiting.interrupt()
        assert waiting.end(code=None) == -signal.SIGINT
        assert time.monotonic() - began < 2
        assert "KeyboardInterrupt" in waiting.text()


def test_programs_that_differ_are_told_apart(tmp_path):
    with job(tmp_path, 1, 1) as j:
        j.start_server(0)
        j.argv = ["--optimizer", "Adam"]
        wrong = j.start_trainer(0)
        assert wrong.end(code=None) == 1
        assert "not the same programs" in wrong.text()
        j.argv = []
        j.start_trainer(0)
        j.finish()
