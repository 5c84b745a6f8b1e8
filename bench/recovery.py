# SPDX-License-Identifier: Apache-2.0
"""A server is killed and started again: how long until the next step?

    python recovery.py [GIGABYTES]    1 by default; `bench/run BUILD recovery`

One server with an embedding of that size, at level `process`, and one trainer,
which steps all the time. The server is killed with SIGKILL and started again
at once by the same command. Printed is the time from the kill to the end of the
first step after it, and which part of it passed until the server listened: that
includes the start of Python and the startup program. The exit code is 1 if it
took longer than it may.
"""
import os
import re
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, BATCH = 64, 1000
STEP = re.compile(r"^step \d+ at ([\d.]+)\n", re.M)


def most(gigabytes):
    """Seconds that it may take: 3 for 1 GB, 6 for 5 GB."""
    return 3 + 0.75 * (gigabytes - 1)


# --- in the job ---

def work(gigabytes):
    import numpy as np
    import paddle.fluid as fluid
    rows = int(float(gigabytes) * 1e9 / (4 * WIDTH))
    ids = fluid.layers.data("ids", [1], dtype="int64")
    emb = fluid.layers.embedding(
        ids, [rows, WIDTH], is_sparse=True,
        param_attr=fluid.ParamAttr(initializer=fluid.initializer.Uniform(-1.0, 1.0)))
    loss = fluid.layers.reduce_sum(fluid.layers.square(emb))
    fluid.optimizer.SGD(0.01).minimize(loss)
    config = fluid.DistributeTranspilerConfig()
    config.runtime_split_send_recv = True
    t = fluid.DistributeTranspiler(config)
    t.transpile(int(os.environ.get("PADDLE_TRAINER_ID", 0)), trainers=1,
                pservers=os.environ["PADDLE_PSERVER_ENDPOINTS"])
    exe = fluid.Executor(fluid.CPUPlace())
    if os.environ["PADDLE_TRAINING_ROLE"] == "PSERVER":
        here = os.environ["PADDLE_CURRENT_ENDPOINT"]
        program = t.get_pserver_program(here)
        exe.run(t.get_startup_program(here, program))
        exe.run(program)
        return
    exe.run(fluid.default_startup_program())
    rng = np.random.RandomState(1)
    step = 0
    while not os.path.exists("stop"):
        exe.run(t.get_trainer_program(),
                feed={"ids": rng.randint(0, rows, (BATCH, 1))})
        step += 1
        print("step %d at %.3f" % (step, time.time()))
    exe.close()


# --- around it ---

def main(gigabytes="1"):
    sys.path.insert(0, os.path.join(HERE, "..", "tests", "python"))
    import cluster
    with tempfile.TemporaryDirectory() as folder, \
            tempfile.TemporaryDirectory(dir="/dev/shm") as state:
        env = {"FLUID_DURABILITY": "process", "FLUID_STATE_DIR": state,
               "FLUID_LINGER": "0.1"}
        with cluster.Cluster(folder, __file__, env=env, seconds=300,
                             argv=["work", gigabytes]) as job:
            job.start()
            job.trainer[0].says("^step 5 ")
            job.server[0].kill()
            killed = time.time()
            job.start_server(0).says("Server listening")
            listens = time.time() - killed
            after = 0.0
            while after < killed:
                time.sleep(0.01)
                after = float(STEP.findall(job.trainer[0].text())[-1])
            job.server[0].says("going on at version")
            open(os.path.join(folder, "stop"), "w").close()
            job.finish()
    took, limit = after - killed, most(float(gigabytes))
    print("recovery  %s GB: %.2f s from the kill to the next step, %.2f s of it until the "
          "server listened; most %.2f  %s" % (gigabytes, took, listens, limit,
                                              "ok" if took <= limit else "ABOVE"), flush=True)
    sys.exit(took > limit)


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        work(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
