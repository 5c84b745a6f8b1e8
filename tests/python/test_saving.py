# SPDX-License-Identifier: Apache-2.0
"""Models that a trainer saves from all servers, and servers load."""
import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

import paddle.fluid as fluid
import save_job
from cluster import BUILD, LIMIT, Cluster

SCRIPT = save_job.__file__
QUICK = {"FLUID_LINGER": "0.1", "FLUID_NO_FUSE": "1"}


def files(folder):
    """Every file of a folder with its bytes."""
    found = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as f:
            found[name] = f.read()
    return found


def job(folder, *words, servers=2, trainers=2, **env):
    with Cluster(folder, SCRIPT, servers, trainers, env={**QUICK, **env},
                 argv=words) as run:
        run.start().finish()


def alone(folder, **more):
    """What one machine saves after the same steps."""
    env = dict(os.environ, PYTHONPATH=os.path.join(BUILD, "python"),
               FLUID_NO_FUSE="1", **more)
    env.pop("PADDLE_TRAINING_ROLE", None)
    subprocess.run([sys.executable, SCRIPT, "train"], cwd=folder, env=env,
                   check=True, timeout=LIMIT)
    return folder


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    return alone(tmp_path_factory.mktemp("local"))


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    folder = tmp_path_factory.mktemp("together")
    job(folder, "train")
    return folder


def test_the_files_are_those_of_one_machine(local, together):
    whole, mine = files(local / "whole"), files(together / "whole")
    assert {"table", "fc_0.w_0", "fc_0.b_0"} <= mine.keys()
    assert any("moment" in name for name in mine)
    assert not [name for name in mine if name.startswith(".save-")]
    for name in mine.keys() & whole.keys():
        assert mine[name] == whole[name], name
    assert whole.keys() == mine.keys()


def test_the_model_is_that_of_one_machine(local, together):
    assert files(local / "model") == files(together / "model")
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        program, names, targets = fluid.io.load_inference_model(
            str(together / "model"), exe)
        ids = fluid.create_lod_tensor(np.array([[1], [2]]), [[2]],
                                      fluid.CPUPlace())
        out, = exe.run(program, feed={names[0]: ids}, fetch_list=targets)
        assert out.shape == (1, 1) and np.isfinite(out).all()


@pytest.mark.parametrize("servers", [1, 2, 3])
def test_any_number_of_servers_loads_them(together, tmp_path, servers):
    job(tmp_path, "load", str(together / "whole"), servers=servers,
        trainers=1)
    assert files(tmp_path / "again") == files(together / "whole")


def test_a_save_amid_others_steps_is_one_version(tmp_path):
    folders = [tmp_path / "alone", tmp_path / "job"]
    for folder in folders:
        folder.mkdir()
    alone(folders[0], MIDST="2")
    job(folders[1], "train", MIDST="2")
    for saved in "whole", "model":  # it trained on
        one, two = (files(folder / saved) for folder in folders)
        assert one == two


@pytest.mark.parametrize("trainers", [1, 2])
def test_an_asynchronous_job_saves_too(local, tmp_path, trainers):
    job(tmp_path, "train", trainers=trainers, SYNC="0")
    whole = files(tmp_path / "whole")
    assert whole.keys() == files(local / "whole").keys()
    assert files(tmp_path / "model").keys() == files(local / "model").keys()
    job(tmp_path, "load", str(tmp_path / "whole"), servers=1, trainers=1)
    assert files(tmp_path / "again") == whole


VAST = 10**12  # rows: those that there are are listed


@pytest.fixture(scope="module", params=["sgd 20000", "adagrad 20000",
                                        "adagrad %d" % VAST])
def by_id(request, tmp_path_factory):
    """A table of which few rows were touched, and what it was saved by."""
    rule, rows = request.param.split()
    env = {"BY_ID": rows, "RULE": rule}
    folder = tmp_path_factory.mktemp(rule)
    job(folder, "train", trainers=1, **env)
    return folder, env


def test_a_table_by_id_is_saved_from_all_servers(by_id, tmp_path):
    folder, env = by_id
    job(tmp_path, "train", servers=1, trainers=1, **env)
    saved = files(folder / "whole")
    assert files(tmp_path / "whole") == saved
    assert files(tmp_path / "model") == files(folder / "model")
    rows = min(int(env["BY_ID"]), 30 * save_job.STEPS)
    assert len(saved["table"]) >= 4 * rows * save_job.WIDTH
    assert any("moment" in name for name in saved) == (env["RULE"] != "sgd")


@pytest.mark.parametrize("servers", [1, 2, 3])
def test_any_number_of_servers_loads_a_table_by_id(by_id, tmp_path, servers):
    folder, env = by_id
    with Cluster(tmp_path, SCRIPT, servers, 1, env={**QUICK, **env},
                 argv=["load", str(folder / "whole")]) as run:
        run.start().finish()
        rows = sum(int(s.says(r"table table: (\d+) rows after").group(1))
                   for s in run.server)
    assert files(tmp_path / "again") == files(folder / "whole")
    assert 80 < rows <= 30 * save_job.STEPS  # those that were touched


def test_a_damaged_file_is_named(by_id, tmp_path):
    folder, env = by_id
    for i, name in enumerate(["table", "fc_0.w_0"]):
        hurt = tmp_path / str(i)
        shutil.copytree(folder / "whole", hurt)
        (hurt / name).write_bytes((hurt / name).read_bytes()[:-1])
        with Cluster(tmp_path, SCRIPT, 1, 1, env={**QUICK, **env},
                     argv=["load", str(hurt)]) as run:
            run.start_server(0).end(code=1)
            assert "%s/%s: " % (hurt, name) in run.server[0].text()


def test_a_table_of_another_shape_is_refused(by_id, tmp_path):
    folder, env = by_id
    rows = int(env["BY_ID"])
    with Cluster(tmp_path, SCRIPT, 1, 1, env={**QUICK, **env, "BY_ID": rows + 1},
                 argv=["load", str(folder / "whole")]) as run:
        run.start_server(0).end(code=1)
        assert 'whole/table: it has float32[%d,20], but "table" is ' \
            "float32[%d,20]" % (rows, rows + 1) in run.server[0].text()


def test_a_vast_table_is_not_loaded_on_one_machine(tmp_path):
    job(tmp_path, "train", servers=1, trainers=1, BY_ID=str(VAST))
    with fluid.scope_guard(fluid.Scope()), \
            pytest.raises(RuntimeError, match="loaded by servers, not on one"):
        fluid.io.load_inference_model(str(tmp_path / "model"),
                                      fluid.Executor(fluid.CPUPlace()))


def test_a_server_killed_amid_a_save_leaves_the_old_model(tmp_path):
    """It is stopped before, so that the save cannot be over."""
    whole, gate = tmp_path / "whole", tmp_path / "gate"
    whole.mkdir()
    (whole / "table").write_bytes(b"old")
    with Cluster(tmp_path, SCRIPT, 2, 1, argv=["train"],
                 env={**QUICK, "BY_ID": "20000", "RULE": "sgd", "SYNC": "0",
                      "FLUID_DURABILITY": "memory", "GATE": str(gate)}) as run:
        run.start()
        run.trainer[0].says("trained")
        run.server[1].stop()
        gate.touch()
        while not list(whole.glob(".save-*/*")):
            assert run.trainer[0].code() is None
            time.sleep(0.01)
        run.server[1].kill()
        run.trainer[0].end(code=1)
        assert "server 1 (%s) " % run.endpoints[1] \
            in run.trainer[0].text()  # does not answer, says one or the other
    assert files(whole) == {"table": b"old"}


def test_a_save_that_fails_leaves_the_old_model(tmp_path):
    """The disk is full before the table, the last of the files, is whole."""
    old = tmp_path / "whole" / "fc_0.b_0"
    old.parent.mkdir()
    old.write_bytes(b"old")
    with Cluster(tmp_path, SCRIPT, 1, 1, argv=["train"],
                 env={**QUICK, "FLUID_REJOIN": "0", "LIMIT": 40000}) as run:
        run.start()
        run.trainer[0].end(code=1)
        assert "whole/table" in run.trainer[0].text()
        run.server[0].end(code=1)
    assert files(old.parent) == {"fc_0.b_0": b"old"}


def test_a_job_saves_elsewhere_where_its_folder_cannot_be(local, tmp_path):
    """The error says where, and what lies there is the whole model."""
    (tmp_path / "whole").write_bytes(b"no folder")
    with Cluster(tmp_path, SCRIPT, 2, 1, argv=["train"],
                 env={**QUICK, "FLUID_REJOIN": "0"}) as run:
        run.start()
        run.trainer[0].end(code=1)
        other = tmp_path / "fluid-saved-whole"
        assert "; it was saved to %s instead" % other \
            in run.trainer[0].text()
    assert files(other) == files(local / "whole")


def test_a_folder_without_the_variables_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with Cluster(tmp_path, SCRIPT, 1, 1, argv=["load", "empty"],
                 env=QUICK) as run:
        run.start_server(0).end(code=1)
        assert "has no variable that server 0" in run.server[0].text()
