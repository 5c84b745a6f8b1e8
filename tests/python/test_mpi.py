# SPDX-License-Identifier: Apache-2.0
"""Ranks that mpirun starts over ssh, on hosts of their own."""
import os
import shutil
import sys
import time

import numpy as np
import pytest

from cluster import BUILD, FOREIGN, LIMIT, ROOT, Process
from sshd import LACKING, SshHosts
from test_ranks import ENV, TRAINER, losses, params, texts

lacking = LACKING + [what for what, there in (
    ("OpenMPI", shutil.which("mpirun")), ("libfluid-mpi.so", os.path.exists(
        os.path.join(BUILD, "lib", "libfluid-mpi.so")))) if not there]
pytestmark = pytest.mark.skipif(
    bool(lacking), reason="needs %s: scripts/deps mpi cluster, then make"
    % ", ".join(lacking))

PORT = "6175"


@pytest.fixture
def cluster(request, tmp_path):
    """As many hosts as the test says, which answer ssh, and one for mpirun.
    """
    with SshHosts(tmp_path, request.param + 1) as hosts:
        yield hosts, request.param


def mpirun(cluster, folder, *argv, good=True, **more):
    """What each rank has said. Nobody tells them their numbers."""
    hosts, ranks = cluster
    where = ",".join(hosts.address(i) for i in range(ranks))
    env = {k: v for k, v in os.environ.items() if not FOREIGN.match(k)}
    told = {**ENV, **more, "PYTHONUNBUFFERED": "1",
            "PADDLE_TRAINER_IPS": where, "PADDLE_PSERVER_PORT": PORT,
            "PYTHONPATH": os.path.join(BUILD, "python")}
    job = Process("mpirun", [
        *hosts.start_words(ranks), "mpirun", "--allow-run-as-root",
        "--host", where, "-np", str(ranks), "--map-by", "node",
        "--mca", "plm_rsh_agent", "ssh -F %s/ssh.conf" % folder,
        "--mca", "orte_tmpdir_base", str(folder), "--mca", "btl", "tcp,self",
        "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include",
        "eth0", *(word for name in told for word in ("-x", name)),
        "sh", "-c",
        'exec >out.$OMPI_COMM_WORLD_RANK 2>&1; hostname; exec "$0" "$@"',
        sys.executable, TRAINER, str(folder), "saves=0", *argv],
        str(folder), {**env, **told})
    try:
        assert (job.end(code=None) == 0) == good
    finally:
        job.clear()
        said = [p.read_text() for p in sorted(folder.glob("out.*"))]
        print(job.text(), *said, sep="\n---\n")  # pytest shows it on failure
    return said


@pytest.mark.parametrize("cluster", [2, 3, 4], indirect=True)
def test_mpirun_over_ssh_gives_the_numbers_of_one_machine(cluster, tmp_path):
    """The ring gives the same bits. MPI adds more than two floats in an order
    of its own, the same on all ranks."""
    _, ranks = cluster
    local = texts(tmp_path, TRAINER, ranks, str(tmp_path), "saves=0")
    for more in {}, {"FLUID_COLLECTIVE": "mpi"}:
        said = mpirun(cluster, tmp_path, **more)
        assert [text.split()[0] for text in said] == [
            "host%d" % i for i in range(ranks)]
        for mine, known in zip(said, local):
            # Only the ring listens, and warns that strangers may come.
            assert ("is not a loopback address" in mine) == (not more)
            assert np.allclose(losses(mine), losses(known), atol=1e-5)
            assert params(mine) == params(said[0])
            if ranks == 2 or not more:
                assert losses(mine).tolist() == losses(known).tolist()
                assert params(mine) == params(known)


@pytest.mark.parametrize("cluster,victim,more", [
    (2, 1, {}), (2, 1, {"FLUID_COLLECTIVE": "mpi"}), (3, 0, {}),
    (3, 1, {"FLUID_COLLECTIVE": "mpi"})], indirect=["cluster"],
    ids=["2-ring", "2-mpi", "3-ring", "3-mpi"])
def test_a_rank_that_dies_ends_the_job_of_mpirun(cluster, tmp_path, victim,
                                                 more):
    hosts, ranks = cluster
    said = mpirun(cluster, tmp_path, "die=1:3", "rank=%d" % victim,
                  "epochs=1000000", good=False, **more)
    assert len(losses(said[victim])) == 6 + 4
    assert "sshd" in hosts.running(1)
    limit = time.monotonic() + LIMIT
    while (left := [name for i in range(ranks + 1)
                    for name in hosts.running(i)
                    if name not in ("unshare", "sshd")]):
        assert time.monotonic() < limit, left
        time.sleep(0.01)


def run_document(cluster, folder, more, script, code=0):
    """What mpirun says. As in the document: mpirun -hostfile machines -n 3
    start_mpi_train.sh."""
    hosts, _ = cluster
    shutil.copy(os.path.join(ROOT, "scripts", "cluster_train_v2", "openmpi",
                             "start_mpi_train.sh"), folder)
    (folder / "train.py").write_text(script)
    (folder / "machines").write_text("%s slots=2\n%s slots=1\n" % (
        hosts.address(0), hosts.address(1)))
    env = {k: v for k, v in os.environ.items() if not FOREIGN.match(k)}
    with Process("mpirun", [
            *hosts.start_words(2), "mpirun", "--allow-run-as-root",
            "-hostfile", "machines", "-n", "3", "--mca", "plm_rsh_agent",
            "ssh -F %s/ssh.conf" % folder, "--mca", "orte_tmpdir_base",
            str(folder), "--mca", "btl", "tcp,self", "--mca",
            "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include",
            "eth0", "-x", "PATH=" + os.path.join(BUILD, "bin") + ":" +
            os.environ["PATH"], str(folder / "start_mpi_train.sh"), *more],
            str(folder), env) as job:
        job.end(code=None)
        print(job.text())
        assert job.code() == code
        return job.text()


@pytest.mark.parametrize("cluster", [2], indirect=True)
def test_a_trainer_that_fails_ends_the_job_of_mpirun(cluster, tmp_path):
    """Before it has met the others, which would wait for it."""
    said = run_document(
        cluster, tmp_path, [],
        "import os, sys, time\n"
        "if os.environ.get('PADDLE_TRAINER_ID') == '1':\n"
        "    sys.exit('no data')\n"
        "time.sleep(%d)\n" % (2 * LIMIT), code=1)
    assert "launch: trainer 1 has failed; mpirun ends the job" in said
    assert "launch: reason: trainer 1: no data" in said


@pytest.mark.parametrize("cluster", [2], indirect=True)
@pytest.mark.parametrize("more", [[], ["--mode", "collective"]],
                         ids=["servers", "ranks"])
def test_launchers_under_mpirun_agree_on_one_job(cluster, tmp_path, more):
    """Two ranks share a host, and each has ports of its own."""
    hosts, _ = cluster
    run_document(
        cluster, tmp_path, more,
        "import os, socket, sys\n"
        "e = os.environ\n"
        "listed = e.get('PADDLE_PSERVERS_IP_PORT_LIST') or "
        "e['PADDLE_TRAINER_ENDPOINTS']\n"
        "print('see', socket.gethostname(), e['PADDLE_TRAINERS_NUM'],"
        " listed, len(open(e['FLUID_TLS_KEY']).read()) > 100)\n")
    said = [(tmp_path / "logs" / ("workerlog.%d" % i)).read_text().split()
            for i in range(3)]
    assert [words[1] for words in said] == ["host0", "host0", "host1"]
    endpoints = said[0][3].split(",")
    assert len(set(endpoints)) == 3
    assert [e.split(":")[0] for e in endpoints] == [
        hosts.address(0), hosts.address(0), hosts.address(1)]
    for words in said:
        assert words[2:] == ["3", said[0][3], "True"]
