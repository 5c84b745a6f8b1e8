# SPDX-License-Identifier: Apache-2.0
"""Fit a line on a cluster with DistributeTranspiler, as the documents teach it.

One script is server and trainer; the environment says which. The launcher sets
it, and starts two servers and two trainers on this host:

    paddle launch --server_num 2 --worker_num 2 dist_fit_a_line.py

On several hosts, `paddle launch --hosts ps0,ps1 ...` does the same by ssh; or
each process is started by hand, in any order:

    export PADDLE_PSERVER_IPS=ps0,ps1 PADDLE_PSERVER_PORT=6174 PADDLE_TRAINERS=2
    PADDLE_TRAINING_ROLE=PSERVER PADDLE_CURRENT_IP=ps0 python dist_fit_a_line.py
    PADDLE_TRAINING_ROLE=PSERVER PADDLE_CURRENT_IP=ps1 python dist_fit_a_line.py
    PADDLE_TRAINING_ROLE=TRAINER PADDLE_TRAINER_ID=0 python dist_fit_a_line.py
    PADDLE_TRAINING_ROLE=TRAINER PADDLE_TRAINER_ID=1 python dist_fit_a_line.py

Without PADDLE_TRAINING_ROLE the script trains alone. Trainer 0 saves the model,
also after Ctrl-C.
"""
import os

import paddle
import paddle.fluid as fluid
from common import batches, options


def servers():
    """host:port of every server, in the form that the launcher or the user
    has chosen."""
    endpoints = os.getenv("PADDLE_PSERVER_ENDPOINTS")
    if endpoints:
        return endpoints
    port = os.getenv("PADDLE_PSERVER_PORT", "6174")
    hosts = os.getenv("PADDLE_PSERVER_IPS", "")
    return ",".join("%s:%s" % (host, port) for host in hosts.split(","))


def this_server():
    return os.getenv("PADDLE_CURRENT_ENDPOINT") or "%s:%s" % (
        os.getenv("PADDLE_CURRENT_IP", ""),
        os.getenv("PADDLE_PSERVER_PORT", "6174"))


def network():
    """The feeds, the guess of the price, and the loss."""
    x = fluid.layers.data(name="x", shape=[13], dtype="float32")
    y = fluid.layers.data(name="y", shape=[1], dtype="float32")
    price = fluid.layers.fc(input=x, size=1)
    loss = fluid.layers.mean(
        fluid.layers.square_error_cost(input=price, label=y))
    return [x, y], price, loss


def share(reader, trainer_id, trainers):
    """Every trainer takes its own batches: one in `trainers`."""
    def mine():
        for number, batch in enumerate(reader()):
            if number % trainers == trainer_id:
                yield batch
    return mine


def train(args, program, feeds, loss, trainer_id, trainers):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feeder = fluid.DataFeeder(feed_list=feeds, place=fluid.CPUPlace())
    reader = share(batches(paddle.dataset.uci_housing.train(), 20,
                           args.batches), trainer_id, trainers)
    try:
        for number in range(args.passes):
            for batch in reader():
                value, = exe.run(program, feed=feeder.feed(batch),
                                 fetch_list=[loss])
            if number % 20 == 0 or number == args.passes - 1:
                print("pass %d, loss %.3f" % (number + 1, value[0]))
    except KeyboardInterrupt:  # the step in which Ctrl-C came is complete
        print("interrupted; the model is saved as it is")
    return exe


def main():
    args = options(__doc__, 100, "dist_fit_a_line.model")
    fluid.default_startup_program().random_seed = 1  # same start at every run
    feeds, price, loss = network()
    fluid.optimizer.SGD(learning_rate=0.01).minimize(loss)
    role = os.getenv("PADDLE_TRAINING_ROLE")
    trainers = int(os.getenv("PADDLE_TRAINERS", "1"))
    trainer_id = int(os.getenv("PADDLE_TRAINER_ID", "0"))
    program = fluid.default_main_program()
    if role:
        t = fluid.DistributeTranspiler()
        t.transpile(trainer_id, pservers=servers(), trainers=trainers)
        if role == "PSERVER":
            server = t.get_pserver_program(this_server())
            exe = fluid.Executor(fluid.CPUPlace())
            exe.run(t.get_startup_program(this_server(), server))
            return exe.run(server)  # until every trainer has ended
        program = t.get_trainer_program()
    exe = train(args, program, feeds, loss, trainer_id, trainers)
    if trainer_id == 0:
        fluid.io.save_inference_model(args.model, ["x"], [price], exe)
        print("the model is in %s" % args.model)
    return exe.close()  # tells the servers that this trainer has completed


if __name__ == "__main__":
    main()
