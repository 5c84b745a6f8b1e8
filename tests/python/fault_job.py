# SPDX-License-Identifier: Apache-2.0
"""A line, fitted by a job to which things happen: python fault_job.py [KEY=VALUE ...]

steps=8       how many
hold=3:PATH   before step 3 wait until PATH exists
slow=2:PATH   in step 2 compute until PATH exists, without giving the
              interpreter away
fail=4        raise in step 4        leave=4  exit(0) before step 4
nan=2         feed NaN in step 2     close=0  leave without exe.close()
width=13      another network        sync=0   asynchronous
fork=2        before step 2 a child runs the program, and tells how that went

Every step prints `step K loss L`.
"""
import ctypes
import functools
import os
import sys
import time

import numpy as np
import paddle.fluid as fluid


def words(argv):
    said = dict(word.split("=", 1) for word in argv)
    return lambda key, default: type(default)(said.get(key, default))


def at(step, text):
    """What `K:WHAT` says about this step, or None."""
    k, _, what = text.partition(":")
    return what if k == str(step) else None


def fork(run):
    """A child tries one step; whatever becomes of it, it ends."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        run()
        print("child ran")
    except Exception as e:
        print("child:", e)
    sys.stdout.flush()
    os._exit(0)


def compute(path):
    """Hold the interpreter until the file exists."""
    c = ctypes.PyDLL(None)  # its calls do not release the interpreter
    sys.setswitchinterval(1000)
    print("slow step")
    while c.access(path.encode(), os.F_OK):
        c.usleep(10000)


def happen(step, say, feed, run):
    hold = at(step, say("hold", ""))
    while hold and not os.path.exists(hold):
        time.sleep(0.01)
    slow = at(step, say("slow", ""))
    if slow:
        compute(slow)
    if step == say("fail", -1):
        raise ValueError("bad luck in step %d" % step)
    if step == say("fork", -1):
        fork(run)
    if step == say("leave", -1):
        sys.exit(0)
    if step == say("nan", -1):
        feed["x"][0, 0] = np.nan


def train(exe, program, loss, me, say):
    rng = np.random.RandomState(max(0, me))
    for step in range(say("steps", 8)):
        x = rng.randn(6, say("width", 13)).astype("float32")
        feed = {"x": x, "y": x.sum(1, keepdims=True)}
        run = functools.partial(exe.run, program, feed=feed, fetch_list=[loss])
        happen(step, say, feed, run)
        out, = run()
        print("step %d loss %.6f" % (step, out[0]))
    scope = fluid.global_scope()
    for p in program.global_block().all_parameters():
        print("end", p.name,
              np.array(scope.find_var(p.name).get_tensor()).tobytes().hex())


def main(say):
    me = int(os.environ.get("PADDLE_TRAINER_ID", "-1"))  # -1: any
    fluid.default_startup_program().random_seed = 5
    x = fluid.layers.data("x", [say("width", 13)])
    y = fluid.layers.data("y", [1])
    loss = fluid.layers.mean(
        fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
    fluid.optimizer.SGD(0.05).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    t = fluid.DistributeTranspiler()
    t.transpile(me, pservers=os.environ["PADDLE_PSERVER_ENDPOINTS"],
                trainers=int(os.environ["PADDLE_TRAINERS_NUM"]),
                sync_mode=bool(say("sync", 1)))
    if os.environ["PADDLE_TRAINING_ROLE"] == "PSERVER":
        program, startup = t.get_pserver_programs(
            os.environ["PADDLE_CURRENT_ENDPOINT"])
        exe.run(startup)
        exe.run(program)
        print("served")
        return
    program = t.get_trainer_program(wait_port=bool(say("wait", 1)))
    exe.run(fluid.default_startup_program())
    print("started")
    train(exe, program, loss, me, say)
    if say("close", 1):
        exe.close()


if __name__ == "__main__":
    main(words(sys.argv[1:]))
