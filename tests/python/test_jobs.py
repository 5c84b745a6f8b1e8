# SPDX-License-Identifier: Apache-2.0
"""Jobs whose tables live on servers, and two that the documents play."""
import os
import signal
import subprocess
import sys

import pytest

from cluster import BUILD, Cluster

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      "dist_words.py")
# Quick to end, and bits that do not depend on the plan.
ENV = {"FLUID_LINGER": "0.2", "FLUID_NO_FUSE": "1"}


def job(folder, servers, trainers, *argv, **env):
    return Cluster(folder, SCRIPT, servers, trainers, {**ENV, **env}, argv)


def alone(folder, *argv):
    """What one process without servers says."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("PADDLE_", "TRAIN"))}
    env.update(ENV, PYTHONPATH=os.path.join(BUILD, "python"))
    return subprocess.run([sys.executable, SCRIPT, *argv], env=env, text=True,
                          check=True, capture_output=True, cwd=folder).stdout


def losses(text):
    """Beside them stands what a slow machine made it say while it waited."""
    found = [s for s in text.splitlines() if s.startswith(("loss ", "test "))]
    assert len(found) in (8, 16)
    return found


@pytest.mark.parametrize("trainers,argv", [
    (2, ["--optimizer", "Adam", "--test"]), (2, ["--padding", "7"]),
    (1, ["--async", "--cut-late"]),
    (1, ["--async", "--padding", "7", "--test"]), (2, ["--table"]),
    (2, ["--table", "--padding", "7", "--test"]),
    (1, ["--table", "--async", "--padding", "7"])],
    ids=lambda x: "".join(x).strip("-") if isinstance(x, list) else None)
def test_rows_are_looked_up_on_servers(tmp_path, trainers, argv):
    with job(tmp_path, 2, trainers, *argv) as j:
        j.start()
        local = losses(alone(tmp_path, *argv))
        j.finish()
        for t in j.trainer:
            assert losses(t.text()) == local


def test_one_command_for_both_will_do(tmp_path):
    """Neither knows its number: they get them in the order they come."""
    with job(tmp_path, 1, 2) as j:
        j.start(PADDLE_TRAINER_ID=None)
        j.finish()
        assert "trainer 1 (" in j.server[0].text()
        first, second = j.trainer
        assert losses(first.text()) == losses(second.text())


def test_a_trainer_says_for_whom_it_waits_until_it_is_interrupted(tmp_path):
    with job(tmp_path, 1, 2, FLUID_STALL="0.5") as j:
        j.start_server(0)
        waiting = j.start_trainer(0)  # nobody else comes
        waiting.says(r"waits for server 0 .*answer to PULL")
        waiting.says("coordinator waits for trainer 1: to come")
        waiting.interrupt()  # it would wait for ten minutes
        waiting.end(code=-signal.SIGINT)
        # It does not wait long until the server knows why.
        j.server[0].says("is lost: (KeyboardInterrupt|its connection broke)")
