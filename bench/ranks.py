# SPDX-License-Identifier: Apache-2.0
"""ranks.py SECONDS [RANKS] - the click model by ranks without servers.

Each rank trains batches of 100 on a thread of its own; after every step the
ranks add up their gradients (1.7 MB of tensors, and the rows of the table).
Prints one line of JSON: samples a second of all ranks together; "apart": of as
many processes that do not talk to each other, which is the most there can be;
and the processor time of a step, in ms, of both.
"""
import json
import os
import socket
import subprocess
import sys
import time

import numpy as np

import paddle.fluid as fluid

from quality import BATCH, DENSE, DIM, RATE, SLOTS, network

BATCHES = 50


def batches(seed):
    rng = np.random.RandomState(seed)
    lod = [[1] * BATCH]
    for _ in range(BATCHES):
        feed = {"C%d" % i: fluid.create_lod_tensor(
            rng.randint(0, DIM, (BATCH, 1)), lod, fluid.CPUPlace())
            for i in range(SLOTS)}
        feed["dense"] = rng.uniform(0, 1, (BATCH, DENSE)).astype("float32")
        feed["label"] = rng.randint(0, 2, (BATCH, 1))
        yield feed


def train(rank, ranks, seconds):
    """Steps a second of this rank, and processor time of a step; ranks:
    endpoints, or none."""
    _, _, loss = network()
    fluid.optimizer.SGD(RATE).minimize(loss)
    if ranks:
        config = fluid.DistributeTranspilerConfig()
        config.mode = "collective"
        fluid.DistributeTranspiler(config).transpile(rank, trainers=ranks)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feeds, program = list(batches(rank)), fluid.default_main_program()
    for feed in feeds[:10]:
        exe.run(program, feed)
    # All ranks make the same number of steps: as many as a second had.
    begin, cpu = time.perf_counter(), time.process_time()
    for feed in feeds:
        exe.run(program, feed)
    steps = BATCHES
    if not ranks:
        while time.perf_counter() - begin < seconds:
            exe.run(program, feeds[steps % BATCHES])
            steps += 1
        return (steps / (time.perf_counter() - begin),
                (time.process_time() - cpu) / steps)
    for steps in range(BATCHES, int(300 * seconds)):
        exe.run(program, feeds[steps % BATCHES])
    return ((steps + 1) / (time.perf_counter() - begin),
            (time.process_time() - cpu) / (steps + 1))


def start(n, ranks, seconds):
    """Samples a second of n processes together, and ms of a step."""
    told = ",".join(ranks)
    all_ranks = [subprocess.Popen(
        [sys.executable, __file__, "--rank", str(i), told, str(seconds)],
        stdout=subprocess.PIPE, text=True) for i in range(n)]
    found = [[float(x) for x in p.communicate()[0].split()] for p in all_ranks]
    return (BATCH * sum(rate for rate, _ in found),
            1000 * sum(cpu for _, cpu in found) / n)


def endpoints(n):
    held = [socket.socket() for _ in range(n)]
    for s in held:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", 0))
    return held, ["%s:%d" % s.getsockname() for s in held]


def main(seconds, n="2"):
    n, seconds = int(n), float(seconds)
    held, names = endpoints(n)
    together, cpu = start(n, names, seconds)
    apart, cpu_apart = start(n, [], seconds)
    for s in held:
        s.close()
    print(json.dumps({"samples_per_s": round(together), "apart": round(apart),
                      "ratio": round(together / apart, 3),
                      "cpu_ms": round(cpu, 3),
                      "cpu_ms_apart": round(cpu_apart, 3)}))


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    if sys.argv[1:2] == ["--rank"]:
        print(*train(int(sys.argv[2]), [e for e in sys.argv[3].split(",") if e],
                    float(sys.argv[4])))
    elif len(sys.argv) in (2, 3):
        main(*sys.argv[1:])
    else:
        sys.exit(__doc__)
