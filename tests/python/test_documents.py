# SPDX-License-Identifier: Apache-2.0
"""The quick start of the document on Fleet, whole: its listing as it stands."""
import glob
import os
import re
import textwrap

import pytest

from cluster import ROOT, Cluster, hold_port

SHARED = os.environ.get("FLUID_SHARED", os.path.join(ROOT, "..", "shared"))
HOSTS = ["127.0.0.1", "127.0.0.2"]


def listing():
    """From the first import to the call of train()."""
    for path in glob.glob(os.path.join(SHARED, "seeds", "002_*")):
        with open(path, encoding="utf-8") as f:
            found = re.search(r"^    import os\n    import paddle\n.*?"
                              r"^    train\(\)\n", f.read(), re.S | re.M)
        return textwrap.dedent(found.group(0))
    pytest.skip("the document is not here")


def port_of_both():
    """Two sockets that hold one port, on both hosts."""
    while True:
        first = hold_port(HOSTS[0])
        try:
            return first, hold_port(HOSTS[1], first.getsockname()[1])
        except OSError:
            first.close()


@pytest.mark.parametrize("trainers_first", [False, True])
def test_the_listing_trains(tmp_path, trainers_first):
    held = port_of_both()
    env = {"PADDLE_PSERVER_IPS": ",".join(HOSTS), "PADDLE_TRAINERS": "2",
           "PADDLE_PSERVER_PORT": str(held[0].getsockname()[1]),
           "PADDLE_PSERVER_ENDPOINTS": None, "PADDLE_TRAINERS_NUM": None,
           "PADDLE_CURRENT_ENDPOINT": None, "FLUID_LINGER": "0.1",
           "PADDLE_DATA_HOME": os.path.join(SHARED, "data")}
    with held[0], held[1], Cluster(tmp_path, listing(), 2, 2) as job:
        def servers():
            for i, host in enumerate(HOSTS):
                job.start_server(i, **env, PADDLE_CURRENT_IP=host)

        if not trainers_first:
            servers()
        for i in range(2):
            job.start_trainer(i, **env)
        if trainers_first:
            job.trainer[0].says("0 of 2 servers up")
            servers()
        job.finish()
        for trainer in job.trainer:
            losses = [float(x) for x in re.findall(
                r"^Epoch: \d+, Batch: \d+, loss: (\S+)", trainer.text(), re.M)]
            assert "Epoch: 29, Batch:" in trainer.text()
            assert sum(losses[-20:]) < 0.5 * sum(losses[:20])
