# SPDX-License-Identifier: Apache-2.0
"""Tables that lie on servers: what a trainer has of them, and what it says."""
import os

import pytest

import table_job
from cluster import Cluster

SCRIPT = table_job.__file__
LARGE = 1000000  # rows, of 64 bytes
SENTENCE = '"table" is on the servers, and this process has no copy of it'
KINDS = pytest.mark.parametrize("env", [
    {}, {"ASYNC": "1"}, {"BY_ID": "1"}, {"BY_ID": "1", "ASYNC": "1"},
    {"TWO": "1", "BY_ID": "1"}, {"TWO": "1", "BY_ID": "1", "ASYNC": "1"}],
    ids=lambda env: "-".join(env) or "sync")


def job(folder, rows, env, trainers=2):
    return Cluster(folder, SCRIPT, 2, trainers, {"FLUID_LINGER": "0.2", **env},
                   [str(rows)])


@KINDS
def test_a_trainer_never_has_it_whole(tmp_path, env):
    """The table alone has 64 MB, with what Adagrad keeps 128."""
    with job(tmp_path, LARGE, env) as j:
        j.start()
        for t in j.trainer:
            grew = t.says(r"grew by (\d+) MB").group(1)
            assert int(grew) < 40
            t.kill()


@KINDS
def test_who_wants_it_is_told_where_it_is(tmp_path, env):
    trainers = 1 if "ASYNC" in env else 2  # nobody changes what is saved
    with job(tmp_path, 1000, env, trainers) as j:
        j.start().finish()
        said = j.trainer[0].text()
    assert "shape [1000, 16]" in said
    assert "read: RuntimeError: " + SENTENCE in said
    assert "set: RuntimeError: " + SENTENCE in said
    assert "fetch: " in said and said.count(SENTENCE) == 3
    assert '"table" was not loaded here' in said
    assert "test alike" in said and "model alike" in said
    assert said.count('"table" is on the servers, but programs that run in '
                      "this scope now read the copy from model") == 1
    tables = ["table", "other"] if "TWO" in env else ["table"]
    for name in [*tables, "fc_0.w_0"]:
        cut, uncut = (open(os.path.join(tmp_path, folder, name), "rb").read()
                      for folder in ("cut", "uncut"))
        assert cut == uncut
    assert all(len(cut) < 1000 < os.path.getsize(tmp_path / "cut" / name)
               for name in tables)
