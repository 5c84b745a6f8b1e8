#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/collective.py BUILD - all-reduce between processes of this host.

Ours (bench/allreduce: shared memory, and TCP) beside OpenMPI's MPI_Allreduce
(bench/allreduce_mpi.c) and gloo, for 4 KB, 1 MB and 64 MB with 2 and 4 ranks.
They run in turn, so that all see the same minutes of the machine; a figure is
the best turn's. Peers that are not installed are left out: OpenMPI comes with
`scripts/deps mpi`, gloo with PyTorch (`scripts/deps bench`). At the end stands
what was aimed at (AIMS); a miss is the exit code. The machine must be quiet: `make
bench-ranks` runs this and row 11 of bench/run.
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

# ours, the peer, ranks, sizes, least ratio of the peer's time to ours
AIMS = [
    ("tcp", "mpi tcp", (2, 4), (1 << 20, 64 << 20), 1.2),
    ("memory", "mpi memory", (2, 4), (1 << 20, 64 << 20), 1.0),
    ("tcp", "mpi tcp", (2, 4), (4 << 10,), 1.0),
    ("memory", "mpi memory", (2,), (4 << 10,), 1.0),
]

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


def missed(best):
    """Print every aim whose peer was measured; how many were missed."""
    wrong = 0
    for ours, peer, all_ranks, sizes, least in AIMS:
        for ranks in all_ranks:
            for size in sizes:
                if (ranks, peer, size) not in best:
                    continue
                ratio = best[ranks, peer, size] / best[ranks, ours, size]
                wrong += ratio < least
                print("%d ranks %-6s %-6s %5.2f times %-10s aim %.1f%s" % (
                    ranks, dict(SIZES)[size], ours, ratio, peer, least,
                    "" if ratio >= least else "  MISSED"))
    return wrong


def main(build):
    all_peers, best = peers(build), {}
    print("%-14s" % "us" + "".join("%14s" % name for name, _ in all_peers))
    for ranks in (2, 4):
        for _ in range(TURNS):
            for name, run in all_peers:
                for size, us in run(ranks).items():
                    key = ranks, name, size
                    best[key] = min(us, best.get(key, us))
        for size, text in SIZES:
            print("%d ranks %-6s" % (ranks, text) + "".join(
                "%14.1f" % best[ranks, name, size] for name, _ in all_peers))
    return missed(best)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "build") > 0)
