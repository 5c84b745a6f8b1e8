"""Jobs on hosts of their own: network namespaces, and links that break."""
import os
import time

import pytest

import fault_job
import sync_job
from cluster import Cluster, Hosts
from test_faults import ends
from test_sync import alone, load, same_bits

pytestmark = pytest.mark.skipif(not Hosts.can_be(),
                                reason="needs root and iproute2")
QUICK = {"FLUID_LINGER": "0.1", "FLUID_NO_FUSE": "1"}


def test_four_hosts_give_the_bits_of_one_machine(tmp_path):
    local = alone(tmp_path, "adam")
    with Hosts(4) as hosts, Cluster(
            tmp_path, sync_job.__file__, 2, 2, env=QUICK, hosts=hosts,
            argv=["adam", "same"], seconds=120) as job:
        job.start().finish()
    for i in range(2):
        same_bits(load(tmp_path, i), local)


def test_a_link_that_breaks_and_heals_costs_nothing(tmp_path):
    """Cut for half the lease in the middle of a run: nobody is lost, no push
    is lost or doubled, so the end has the bits of a quiet run."""
    seconds = float(os.environ.get("FLUID_CUT_SECONDS", "2"))
    quick = {**QUICK, "FLUID_LEASE": str(2 * seconds)}
    results = []
    for cut in (False, True):
        folder = tmp_path / str(cut)
        folder.mkdir()
        with Hosts(3) as hosts, Cluster(
                folder, fault_job.__file__, 1, 2, env=quick, hosts=hosts,
                argv=["steps=1500"], seconds=120) as job:
            job.start()
            job.trainer[1].says("step 20 ")
            if cut:
                hosts.cut(2)
                time.sleep(seconds)
                assert "step 1499 " not in job.trainer[1].text()
                hosts.heal(2)
            job.finish()
            assert "lost" not in job.server[0].text()
            results.append([ends(t) for t in job.trainer])
    assert results[0] == results[1] and results[0][0]
