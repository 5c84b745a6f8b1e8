# SPDX-License-Identifier: Apache-2.0
"""What the logs of servers tell, and how to make them tell more or less."""
import re

import pytest

import fault_job
from cluster import Cluster

SCRIPT = fault_job.__file__
LINE = r"^[EWI]\d{4} [\d:.]+ +\d+ \S+\] "


def run(folder, *words, servers=1, trainers=1, **env):
    """The logs of the servers of a job that ends well."""
    with Cluster(folder, SCRIPT, servers, trainers, argv=words,
                 env={"FLUID_LINGER": "0.1", **env}) as job:
        job.start().finish()
        return [s.text() for s in job.server]


def test_every_server_tells_of_trainers_versions_and_the_end(tmp_path):
    first, second = run(tmp_path, "steps=8", servers=2, trainers=2)
    for text in (first, second):
        assert re.search(LINE + r"version \d+: the job trains", text, re.M)
        assert re.search(LINE + "the job ends with code 0", text, re.M)
    for rank in range(2):
        assert re.search(LINE + "trainer %d is " % rank, first, re.M)
        assert re.search(LINE + "trainer %d has joined" % rank, second, re.M)
        assert re.search(LINE + "trainer %d has left.*it completed" % rank,
                         second, re.M)


@pytest.mark.parametrize("setting", [
    {"FL_LOG": "error"}, {"FL_LOG": "0"}, {"GLOG_minloglevel": "2"}])
def test_a_server_may_be_silent(tmp_path, setting):
    assert not re.search(LINE, run(tmp_path, "steps=2", **setting)[0], re.M)


@pytest.mark.parametrize("setting", [{"FL_LOG": "debug"}, {"GLOG_v": "1"}])
def test_a_server_may_show_every_message(tmp_path, setting):
    text = run(tmp_path, "steps=2", **setting)[0]
    for kind in ("JOIN", "PULL", "PUSH", "BARRIER", "COMPLETE"):
        assert re.search(LINE + kind + ": round ", text, re.M)
