# SPDX-License-Identifier: Apache-2.0
"""Jobs on hosts of their own: network namespaces, and links that break."""
import os
import signal
import subprocess
import sys
import time

import pytest

import fault_job
import sync_job
from cluster import LIMIT, Cluster, Hosts
from test_faults import ends
from test_sync import alone, load, same_bits

pytestmark = pytest.mark.skipif(not Hosts.can_be(),
                                reason="needs root and iproute2")
QUICK = {"FLUID_LINGER": "0.1", "FLUID_NO_FUSE": "1"}


def test_four_hosts_give_the_bits_of_one_machine(tmp_path):
    local = alone(tmp_path, "adam")
    with Hosts(4) as hosts, Cluster(
            tmp_path, sync_job.__file__, 2, 2, env=QUICK, hosts=hosts,
            argv=["adam", "same"]) as job:
        job.start().finish()
    for i in range(2):
        same_bits(load(tmp_path, i), local)


def test_a_link_that_breaks_and_heals_costs_nothing(tmp_path):
    """Cut for a part of the lease in the middle of a run: nobody is lost, no
    push is lost or doubled, so the end has the bits of a quiet run."""
    seconds = float(os.environ.get("FLUID_CUT_SECONDS", "2"))
    quick = {**QUICK, "FLUID_LEASE": str(60 + 4 * seconds)}
    results = []
    for cut in (False, True):
        folder = tmp_path / str(cut)
        folder.mkdir()
        gate = folder / "gate"  # trainers wait for it before step 20
        with Hosts(3) as hosts, Cluster(
                folder, fault_job.__file__, 1, 2, env=quick, hosts=hosts,
                argv=["steps=100", "hold=20:%s" % gate]) as job:
            job.start()
            job.trainer[1].says("step 19 ")
            if cut:
                hosts.cut(2)
            gate.touch()
            if cut:
                time.sleep(seconds)
                assert "step 99 " not in job.trainer[1].text()
                hosts.heal(2)
            job.finish()
            assert "lost" not in job.server[0].text()
            results.append([ends(t) for t in job.trainer])
    assert results[0] == results[1] and results[0][0]


def test_a_stranger_from_another_host_gets_no_names(tmp_path):
    """Trainer 1 does not come. Its host asks why the job waits, and then the
    server's own host does."""
    with Hosts(3) as hosts, Cluster(
            tmp_path, fault_job.__file__, 1, 2, hosts=hosts,
            env={**QUICK, "FLUID_STALL": "0.5"}) as job:
        job.start_server(0)
        job.start_trainer(0)
        job.trainer[0].says("waits for trainer 1: to come")

        def why(host):
            asked = subprocess.run(
                [*hosts.enter(host), "paddle", "why", job.endpoints[0]],
                capture_output=True, text=True, timeout=LIMIT)
            assert asked.returncode == 0, asked.stderr
            return asked.stdout

        abroad, at_home = why(2), why(0)
        assert "waits: " in abroad and "ask on the server's own host" in abroad
        for name in ("trainer 0", "trainer 1", hosts.address(1)):
            assert name not in abroad
        assert "waits for trainer 1: to come" in at_home


SILENT = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 53))
print("bound", flush=True)
s.recv(512)
print("asked", flush=True)
time.sleep(600)
"""


def test_sigterm_ends_a_server_whose_name_server_is_silent(tmp_path):
    """The system asks a silent name server five times, for 30 s each."""
    (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.1\n"
                                          "options timeout:30 attempts:5\n")
    env = dict(os.environ, PADDLE_TRAINING_ROLE="PSERVER",
               PADDLE_TRAINERS_NUM="1", PADDLE_TRAINER_ID="0",
               PADDLE_PSERVER_ENDPOINTS="ps0.example:6174",
               PADDLE_CURRENT_ENDPOINT="ps0.example:6174")
    with Hosts(1) as hosts, subprocess.Popen(
            [*hosts.enter(0), sys.executable, "-c", SILENT],
            stdout=subprocess.PIPE, text=True) as silent:
        assert silent.stdout.readline() == "bound\n"
        with subprocess.Popen(
                [*hosts.enter(0), "unshare", "-m", "sh", "-c",
                 "mount --bind resolv.conf /etc/resolv.conf && exec "
                 '"$@"', "sh", sys.executable, fault_job.__file__],
                cwd=tmp_path, env=env, stderr=subprocess.DEVNULL) as server:
            assert silent.stdout.readline() == "asked\n"
            began = time.monotonic()
            server.send_signal(signal.SIGTERM)
            code = server.wait(LIMIT)
            waited = time.monotonic() - began
        silent.kill()
    assert code != 0 and waited < 100
