# SPDX-License-Identifier: Apache-2.0
"""Ranks that are late, wrong or dead, keys, several hosts, and MPI."""
import os
import re
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

from cluster import BUILD, FOREIGN, LIMIT, Hosts, Ranks
from test_ranks import ENV, JOB, losses, needs_hosts, params, texts

FOR_EVER = ["program", "steps=1000000"]


def last_line(process):
    return process.text().strip().splitlines()[-1]


def test_overlap_and_every_run_give_the_same_bits(tmp_path):
    runs = [texts(tmp_path, JOB, 3, "program", "net=words", FLUID_OVERLAP=on)
            for on in ("1", "1", "0")]
    for said in runs:
        for text in said:
            assert params(text) == params(runs[0][0])
        assert [list(losses(t)) for t in said] == \
            [list(losses(t)) for t in runs[0]]


@pytest.mark.parametrize("net", ["words", "clicks"])
def test_fused_lookups_learn_the_same(tmp_path, net):
    plain, fused = [texts(tmp_path, JOB, 2, "program", "net=" + net,
                          FLUID_NO_FUSE=off) for off in ("1", "0")]
    assert params(fused[0]) == params(fused[1])
    for a, b in zip(plain, fused):
        assert np.allclose(losses(a), losses(b), atol=1e-5)


@pytest.mark.parametrize("overlap", ["0", "1"])
@pytest.mark.parametrize("victim", [0, 1, 2])
def test_a_rank_that_is_killed_is_named_with_the_step(tmp_path, victim,
                                                      overlap):
    with Ranks(tmp_path, JOB, 3, {**ENV, "FLUID_OVERLAP": overlap},
               FOR_EVER) as job:
        job.start()
        for t in job.trainer:
            t.says("^step 20 ")
        job.trainer[victim].kill()
        for i, t in enumerate(job.trainer):
            if i != victim:
                t.end(code=1)
                assert re.search(r"rank %d \(127.*has died.*after \d+ steps"
                                 % victim, last_line(t)), t.text()


def nothing_is_left(job):
    """No process, connection or shared memory. Memory of ranks has no name,
    so it ends with them."""
    for t in job.trainer:
        with pytest.raises(ProcessLookupError):
            os.killpg(t.pid, 0)
    ports = {"%04X" % int(e.rpartition(":")[2]) for e in job.endpoints}
    with open("/proc/net/tcp") as f:
        lines = [line.split() for line in f.readlines()[1:]]
    live = ("01", "0A")  # connected, listening
    assert not [x for x in lines if x[3] in live and
                {x[1][-4:], x[2][-4:]} & ports]
    # Servers, also those of others, have directories of their states, and C
    # tests that run meanwhile have files of their own.
    assert not [x for x in os.listdir("/dev/shm") if "fluid" in x
                and not re.fullmatch(r"fluid\.\d+|fluid-test-\w+", x)]


@pytest.mark.parametrize("victim", [0, 1, 2])
@pytest.mark.parametrize("place", ["start", "backward", "reduce", "save"])
def test_a_rank_may_die_anywhere_and_nothing_is_left(tmp_path, place, victim):
    argv = ["program", "net=wide", "kill=%d:%s" % (victim, place)]
    with Ranks(tmp_path, JOB, 3, {**ENV, "FLUID_OVERLAP": "1"}, argv) as job:
        job.start()
        for i, t in enumerate(job.trainer):
            t.end(code=-signal.SIGKILL if i == victim else 1)
            if i != victim:
                assert re.search(r"rank %d \(127.*has died" % victim,
                                 last_line(t)), t.text()
            # One that is killed at the save has made its step; another one may
            # still be receiving the last sums of it.
            assert len(losses(t.text())) in (
                {place == "save"} if i == victim else {0, place == "save"})
        saved = [p.name for p in tmp_path.glob("saved/*")]
        assert len(saved) == (place == "save")
        nothing_is_left(job)


def test_a_late_rank_and_one_that_dies_meanwhile_are_named(tmp_path):
    with Ranks(tmp_path, JOB, 3, ENV, FOR_EVER) as job:
        for i in range(2):
            job.start_trainer(i)
        for i in range(2):
            job.trainer[i].says(r"rank %d has waited .* s for rank 2 \(127" % i)
        job.trainer[1].kill()
        job.trainer[0].end(code=1)
        assert re.search(r"rank 1 \(127.*has died", last_line(job.trainer[0]))


def test_another_program_is_explained(tmp_path):
    with Ranks(tmp_path, JOB, 2, ENV) as job:
        job.start_trainer(0, argv=["program"])
        job.start_trainer(1, argv=["program", "net=words"])
        for t in job.trainer:
            t.end(code=1)
            assert "rank 1 runs another program than rank 0" in last_line(t)
            assert "rank 1 has `" in last_line(t)


def test_another_number_of_ranks_is_explained(tmp_path):
    with Ranks(tmp_path, JOB, 3, ENV, ["program"]) as job:
        job.start_trainer(0, PADDLE_TRAINER_ENDPOINTS=",".join(
            job.endpoints[:2]))
        job.start_trainer(1)
        for t in job.trainer[:2]:
            t.end(code=1)
            assert "rank 1 (127.0.0.1:" in last_line(t)
            assert "is of a job of 3 ranks, rank 0" in last_line(t)


def test_ranks_with_another_key_stay_out(tmp_path):
    keys = []
    for name in ("one", "two"):
        keys.append(str(tmp_path / name))
        with open(keys[-1], "w") as f:
            f.write("a secret of 32 letters, " + name * 4)
        os.chmod(keys[-1], 0o600)
    with Ranks(tmp_path, JOB, 2, {**ENV, "FLUID_JOB_KEY_FILE": keys[0]},
               ["program"]) as job:
        job.start().finish()
    for start in ("2", "20", "200"):  # seconds in which rank 1 must come
        with Ranks(tmp_path, JOB, 2, {**ENV, "FLUID_START": start},
                   ["program"]) as job:
            for i in range(2):
                job.start_trainer(i, FLUID_JOB_KEY_FILE=keys[i])
            for t in job.trainer:
                t.end(code=1)
            said = last_line(job.trainer[0])
        if "another job key" in said:
            return
    pytest.fail(said)


def test_a_rank_trains_on_a_dataset_with_one_thread(tmp_path):
    import paddle.fluid as fluid
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x = fluid.layers.data("x", [1])
        loss = fluid.layers.mean(x)
        main.global_block().append_op(
            "c_allreduce_sum", inputs={"X": loss}, outputs={"Out": loss})
    files = [str(tmp_path / name) for name in "ab"]
    for name in files:
        with open(name, "w") as f:
            f.write("1 0.5\n")
    data = fluid.DatasetFactory().create_dataset("QueueDataset")
    data.set_use_var([x])
    data.set_filelist(files)
    data.set_thread(2)
    with pytest.raises(Exception, match="2 threads train a program of ranks "
                       "without servers .*set thread=1"):
        fluid.Executor().train_from_dataset(main, data)


@needs_hosts
def test_hosts_reduce_over_their_network_and_miss_one_that_is_cut_off(
        tmp_path):
    with Hosts(2) as hosts:
        where = ["%s:6175" % hosts.address(i) for i in range(2)]
        env = {**ENV, "PADDLE_TRAINER_ENDPOINTS": ",".join(where)}
        with Ranks(tmp_path, JOB, 2, env, FOR_EVER, hosts=hosts) as job:
            job.start()
            for t in job.trainer:
                t.says("^step 5 ")
                assert "is not a loopback address" in t.text()
            hosts.cut(1)
            for i, t in enumerate(job.trainer):
                t.end(code=1)
                assert "rank %d (%s)" % (1 - i, where[1 - i]) in last_line(t)


@pytest.mark.skipif(not shutil.which("mpirun") or not os.path.exists(
    os.path.join(BUILD, "lib", "libfluid-mpi.so")), reason="needs OpenMPI")
def test_mpi_gives_the_bits_of_the_ring(tmp_path):
    """Two floats have one sum, whoever adds them."""
    ring = texts(tmp_path, JOB, 2, "program", "net=words")
    script = "exec \"$0\" \"$@\" >out.$OMPI_COMM_WORLD_RANK"
    env = {k: v for k, v in os.environ.items() if not FOREIGN.match(k)}
    env.update(ENV, PYTHONPATH=os.path.join(BUILD, "python"),
               FLUID_COLLECTIVE="mpi",
               PADDLE_TRAINER_ENDPOINTS="127.0.0.1:1,127.0.0.1:2")
    as_root = ["--allow-run-as-root"] if os.getuid() == 0 else []
    subprocess.run(
        ["mpirun", *as_root, "--oversubscribe", "-np", "2", "sh", "-c",
         "PADDLE_TRAINER_ID=$OMPI_COMM_WORLD_RANK " + script,
         sys.executable, JOB, "program", "net=words"],
        env=env, cwd=tmp_path, check=True, timeout=LIMIT)
    for i in range(2):
        with open(tmp_path / ("out.%d" % i)) as f:
            text = f.read()
        assert params(text) == params(ring[i])
        assert list(losses(text)) == list(losses(ring[i]))
