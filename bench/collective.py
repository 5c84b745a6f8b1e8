#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/collective.py BUILD - all-reduce between processes of this host.

Ours (bench/allreduce: shared memory, and TCP) beside OpenMPI's MPI_Allreduce
(bench/allreduce_mpi.c) and gloo, for 4 KB, 1 MB and 64 MB with 2 and 4 ranks.
They run in turn, so that all see the same minutes of the machine; a figure is
the best turn's. Peers that are not installed are left out: OpenMPI comes with
`scripts/deps mpi`, gloo with PyTorch (`scripts/deps bench`).
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

TURNS = 3
PYTHON = "/usr/bin/python3"  # which has Debian's PyTorch
SIZES = [(4 << 10, "4 KB"), (1 << 20, "1 MB"), (64 << 20, "64 MB")]

GLOO = """
import os, sys, time
import torch, torch.distributed as dist
rank, ranks, where = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)
dist.init_process_group("gloo", rank=rank, world_size=ranks, init_method="file://" + where)
for size, times in ((4 << 10, 300), (1 << 20, 50), (64 << 20, 2)):
    x, best = torch.zeros(size // 4), 1e18
    for _ in range(6):
        dist.barrier()
        start = time.perf_counter()
        for _ in range(times):
            dist.all_reduce(x)
        best = min(best, (time.perf_counter() - start) / times)
    if not rank:
        print('{"bytes": %d, "us": %.1f}' % (size, best * 1e6), flush=True)
"""


def figures(text):
    """Microseconds by bytes."""
    rows = [json.loads(line) for line in text.splitlines()
            if line.startswith("{")]
    return {row["bytes"]: row["us"] for row in rows}


def output(argv):
    return subprocess.run(argv, check=True, text=True, timeout=600,
                          stdout=subprocess.PIPE).stdout


def gloo(ranks):
    with tempfile.TemporaryDirectory() as where:
        at = os.path.join(where, "meet")
        argv = [PYTHON, "-c", GLOO]
        others = [subprocess.Popen(argv + [str(i), str(ranks), at])
                  for i in range(1, ranks)]
        text = output(argv + ["0", str(ranks), at])
        for p in others:
            p.wait(60)
    return figures(text)


def peers(build):
    """Name and a function from ranks to figures."""
    ours = os.path.join(build, "bench", "allreduce")
    found = [("memory", lambda n: figures(output([ours, str(n)]))),
             ("tcp", lambda n: figures(output([ours, str(n), "tcp"])))]
    if shutil.which("mpicc") and shutil.which("mpirun"):
        mpi = os.path.join(build, "bench", "allreduce_mpi")
        subprocess.run(["mpicc", "-O2", os.path.join(
            os.path.dirname(__file__), "allreduce_mpi.c"), "-o", mpi],
                       check=True)
        run = ["mpirun", "--oversubscribe"]
        if os.getuid() == 0:
            run.append("--allow-run-as-root")
        found.append(("mpi memory", lambda n: figures(
            output(run + ["-np", str(n), mpi]))))
        found.append(("mpi tcp", lambda n: figures(
            output(run + ["--mca", "btl", "tcp,self", "-np", str(n), mpi]))))
    if not subprocess.run([PYTHON, "-c", "import torch.distributed"],
                          stderr=subprocess.DEVNULL).returncode:
        found.append(("gloo", gloo))
    return found


def main(build):
    all_peers = peers(build)
    print("%-14s" % "us" + "".join("%14s" % name for name, _ in all_peers))
    for ranks in (2, 4):
        best = {}
        for _ in range(TURNS):
            for name, run in all_peers:
                for size, us in run(ranks).items():
                    key = name, size
                    best[key] = min(us, best.get(key, us))
        for size, text in SIZES:
            print("%d ranks %-6s" % (ranks, text) + "".join(
                "%14.1f" % best[name, size] for name, _ in all_peers))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "build")
