# SPDX-License-Identifier: Apache-2.0
"""A big table: is it trained, saved and loaded within its memory?

    python big.py [ROWS [FOLDER]]    50,000,000 rows by default; `bench/run BUILD big`

2 servers and 2 trainers, asynchronous; a table [ROWS, 10] of float32 by id, and
every row of it is trained once. Then trainer 1 trains on, alone for some
seconds, while trainer 0 saves the model after that. The model is loaded on 1, 2
and 3 servers and saved again: the bytes must be equal. Printed is what the
servers take (VmRSS, VmHWM) beside what docs/tables.md states, and how long
things take. FOLDER has room for the model twice, 2 GB each; a temporary one by
default. The exit code is 1 where something is not as it must be.
"""
import filecmp
import math
import os
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, BATCH, ALONE = 10, 50000, 5.0  # seconds of trainer 1 alone
STATED = 61 * 33 / 32  # bytes a row at most, docs/tables.md
SPREAD = 982451653  # a prime: its multiples visit all rows, far apart
SPARE = 64e6  # bytes of a server for messages on their way
HOUR = 3600


# --- in the job ---

def network(rows):
    import paddle.fluid as fluid
    ids = fluid.layers.data("ids", [1], dtype="int64")
    emb = fluid.layers.embedding(
        ids, [rows, WIDTH], is_sparse=True, is_distributed=True,
        param_attr=fluid.ParamAttr(
            "table", initializer=fluid.initializer.Uniform(-1.0, 1.0)))
    return fluid.layers.reduce_sum(fluid.layers.square(emb))


def run_step(exe, rows, first):
    import numpy as np
    import paddle.fluid as fluid
    k = np.arange(first, min(first + BATCH, rows), dtype="int64")
    exe.run(fluid.default_main_program(),
            feed={"ids": (k * SPREAD % rows).reshape(-1, 1)})
    return len(k)


def train_until(exe, rows, path, word):
    """Rows a second of this trainer until the path is there."""
    began, done, step = time.time(), 0, 0
    while not os.path.exists(path):
        done += run_step(exe, rows, step * BATCH % rows)
        step += 1
    print("%s: %.0f rows/s" % (word, done / (time.time() - began)))


def train(exe, rows, rank, trainers):
    import paddle.fluid as fluid
    began, done = time.time(), 0
    for first in range(rank * BATCH, rows, trainers * BATCH):
        done += run_step(exe, rows, first)
    fluid.io.save_vars(exe, "rate%d" % rank, predicate=lambda v: v.name.startswith(
        "learning_rate"))  # until all that was sent is applied
    print("trained: %.0f rows/s" % (done / (time.time() - began)))
    while not os.path.exists("go"):
        time.sleep(0.01)
    if rank == 1:
        train_until(exe, rows, "save", "alone")
        train_until(exe, rows, "saved", "meanwhile")
    while not os.path.exists("save"):
        time.sleep(0.01)
    if rank == 0:
        save(exe, "model")
        open("saved", "w").close()


def save(exe, folder):
    import paddle.fluid as fluid
    began = time.time()
    fluid.io.save_persistables(exe, folder)
    print("saved: %.1f s" % (time.time() - began))


def work(rows, folder=None):
    import paddle.fluid as fluid
    from paddle.fluid.incubate.fleet.base import role_maker
    from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler \
        import DistributeTranspilerConfig, fleet
    rows = int(rows)
    loss = network(rows)
    fleet.init(role_maker.PaddleCloudRoleMaker())
    config = DistributeTranspilerConfig()
    config.sync_mode = False
    fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), config).minimize(loss)
    if fleet.is_server():
        fleet.init_server(folder)
        return fleet.run_server()
    fleet.init_worker()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)
    if folder:
        save(exe, "again")
    else:
        train(exe, rows, fleet.worker_index(), fleet.worker_num())
    return fleet.stop_worker()


# --- around it ---

def memory(processes, field="VmRSS"):
    """Bytes of all of them."""
    total = 0
    for p in processes:
        with open("/proc/%d/status" % p.pid) as f:
            total += sum(int(line.split()[1]) * 1024 for line in f
                         if line.startswith(field + ":"))
    return total


def figure(process, word):
    return float(process.says(r"^%s: ([\d.]+)" % word).group(1))


def watch(groups, done):
    """The most that each group takes until it is done."""
    most = [memory(g) for g in groups]
    while not done():
        most = [max(m, memory(g)) for m, g in zip(most, groups)]
        time.sleep(0.05)
    return most


def touch(folder, name):
    with open(os.path.join(folder, name), "w"):
        pass


def say(words, *args):
    print(words % args, flush=True)


def train_and_save(cluster, folder, rows):
    """Less than 10 % more memory, and no more than is stated?"""
    with cluster.Cluster(folder, __file__, 2, 2, argv=["work", str(rows)],
                         seconds=HOUR) as job:
        for i in range(2):
            job.start_server(i).says("Server listening")
        base = memory(job.server)
        for i in range(2):
            job.start_trainer(i)
        speed = sum(figure(t, "trained") for t in job.trainer)
        before, most = memory(job.server), memory(job.server, "VmHWM")
        say("trained   %d rows at %.0f rows/s; the servers take %.1f bytes a "
            "row (at most %.1f), at most %.1f are stated", rows, speed,
            (before - base) / rows, (most - base) / rows, STATED)
        touch(folder, "go")
        time.sleep(ALONE)
        touch(folder, "save")
        saver, other = job.trainer
        during, own = watch([job.server, [saver]],
                            lambda: "saved:" in saver.text())
        say("saved     in %.1f s; the servers took %.0f MB before, %.0f MB at "
            "most meanwhile (%+.1f %%), trainer 0 %.0f MB; trainer 1 trained "
            "%.0f rows/s alone, %.0f meanwhile", figure(saver, "saved"), before / 1e6,
            during / 1e6, 100 * (during / before - 1), own / 1e6,
            figure(other, "alone"),
            figure(other, "meanwhile"))
        job.finish()
    return most - base <= STATED * rows + 2 * SPARE and during <= 1.1 * before


def load(cluster, folder, rows, servers):
    """Are its contents those of the model?"""
    model, again = (os.path.join(folder, f) for f in ("model", "again"))
    began = time.time()
    with cluster.Cluster(folder, __file__, servers, 1, seconds=HOUR,
                         argv=["work", str(rows), model]) as job:
        job.start()
        for s in job.server:
            s.says("Server listening")
        ready, taken = time.time() - began, memory(job.server)
        job.finish()
    names = sorted(os.listdir(model))
    same = sorted(os.listdir(again)) == names and not any(
        filecmp.cmpfiles(model, again, names, shallow=False)[1:])
    say("loaded    on %d: %.1f s until all servers listen, which take %.0f MB; "
        "%s", servers, ready, taken / 1e6, "equal" if same else "DIFFERENT")
    shutil.rmtree(again)
    return same


def main(rows="50000000", folder=None):
    sys.path.insert(0, os.path.join(HERE, "..", "tests", "python"))
    import cluster
    rows = int(rows)
    if math.gcd(rows, SPREAD) != 1:
        sys.exit("big: %d rows cannot be visited in steps of %d" % (rows, SPREAD))
    with tempfile.TemporaryDirectory(dir=folder) as place:
        good = [train_and_save(cluster, place, rows)]
        good += [load(cluster, place, rows, n) for n in (1, 2, 3)]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        work(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
