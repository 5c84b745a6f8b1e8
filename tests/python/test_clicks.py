# SPDX-License-Identifier: Apache-2.0
"""The example of the demo: alone, and as a job of servers and trainers."""
import os
import re
import subprocess
import sys

import pytest

from cluster import LIMIT, ROOT

SCRIPT = os.path.join(ROOT, "examples", "clicks.py")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clicks")
    python("make", folder, "4000")
    return folder


def python(*words):
    p = subprocess.run([sys.executable, SCRIPT, *map(str, words)], text=True,
                       capture_output=True, timeout=LIMIT)
    assert p.returncode == 0, p.stderr
    return p.stdout


def auc(folder):
    return float(re.search(r": (\d\.\d+);", python("score", folder)).group(1))


def test_one_process_learns(folder):
    python("train", folder)
    assert auc(folder) > 0.68


@pytest.mark.parametrize("servers, trainers", [(1, 2), (2, 2)])
def test_a_job_learns(folder, tmp_path, servers, trainers):
    p = subprocess.run(
        ["paddle", "launch", "--server_num", str(servers), "--worker_num",
         str(trainers), "--python", sys.executable, SCRIPT, "train",
         str(folder)], cwd=tmp_path, text=True, capture_output=True,
        env=dict(os.environ, FLUID_LINGER="0.1"), timeout=LIMIT)
    assert p.returncode == 0, p.stderr
    assert "epoch 2" in p.stderr  # what trainer 0 says
    # Trainers do not wait for each other: where the other one was late, this is
    # what half of the lines teach, 0.68.
    assert auc(folder) > 0.66


def test_a_role_by_its_other_name_does_not_train_alone(folder):
    p = subprocess.run(
        [sys.executable, SCRIPT, "train", str(folder)], text=True,
        capture_output=True, timeout=LIMIT,
        env=dict(os.environ, PADDLE_TRAINING_ROLE="TRAINER"))
    assert p.returncode == 1
    assert "PADDLE_TRAINING_ROLE is TRAINER, but no servers are named" \
        in p.stderr
