# SPDX-License-Identifier: Apache-2.0
"""Clicks from files, alone or launched: python data_job.py [KEY=VALUE] FILE ...

pipe=cat     the pipe command        kind=InMemoryDataset  loaded, not streamed
bad=0        lines to skip           threads=1   batch=10
silence=2    FLUID_SILENCE of trainer 1
share=split  of a trainer: fleet.split_files; deal: every so many-th file
sync=0       asynchronous, or 1      save=DIR    where worker 0 puts the model

Who trained to the end prints `trained`.
"""
import os
import sys

import paddle.fluid as fluid
import paddle.fluid.incubate.fleet.base.role_maker as role_maker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler \
    import DistributeTranspilerConfig, fleet

ALONE = "TRAINING_ROLE" not in os.environ


def network():
    ids = fluid.layers.data("ids", [1], dtype="int64", lod_level=1)
    label = fluid.layers.data("label", [1], dtype="int64")
    rows = fluid.layers.embedding(ids, size=[50, 4], is_sparse=True)
    x = fluid.layers.sequence_pool(rows, "sum")
    predict = fluid.layers.fc(x, 2, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(predict, label))
    return [ids, label], predict, loss


def dataset_of(feeds, files, say):
    dataset = fluid.DatasetFactory().create_dataset(
        say("kind", "QueueDataset"))
    dataset.set_use_var(feeds)
    dataset.set_filelist(files)
    dataset.set_thread(say("threads", 1))
    dataset.set_batch_size(say("batch", 10))
    dataset.set_pipe_command(say("pipe", "cat"))
    dataset.set_bad_lines(say("bad", 0))
    if say("kind", "") == "InMemoryDataset":
        dataset.load_into_memory()
        dataset.local_shuffle()
    return dataset


def train(feeds, predict, files, say):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    exe.train_from_dataset(fluid.default_main_program(),
                           dataset_of(feeds, files, say))
    if say("save", "") and (ALONE or fleet.is_first_worker()):
        fluid.io.save_inference_model(say("save", ""), ["ids"], [predict],
                                      exe)
    print("trained", flush=True)


def launched(optimizer, feeds, predict, loss, files, say):
    fleet.init(role_maker.PaddleCloudRoleMaker())
    strategy = DistributeTranspilerConfig()
    strategy.sync_mode = bool(say("sync", 0))
    fleet.distributed_optimizer(optimizer, strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        return fleet.run_server()
    fleet.init_worker()
    split = say("share", "split") == "split"
    train(feeds, predict, fleet.split_files(files) if split else
          files[fleet.worker_index()::fleet.worker_num()], say)
    return fleet.stop_worker()


def settings(words):
    """What they say of a key, and the files among them."""
    said = dict(w.split("=", 1) for w in words if "=" in w)
    return (lambda key, default: type(default)(said.get(key, default)),
            [w for w in words if "=" not in w])


def main(words):
    say, files = settings(words)
    if say("silence", "") and os.environ.get("PADDLE_TRAINER_ID") == "1":
        os.environ["FLUID_SILENCE"] = say("silence", "")
    fluid.default_startup_program().random_seed = 3
    feeds, predict, loss = network()
    optimizer = fluid.optimizer.SGD(0.5)
    if not ALONE:
        return launched(optimizer, feeds, predict, loss, files, say)
    optimizer.minimize(loss)
    return train(feeds, predict, files, say)


if __name__ == "__main__":
    main(sys.argv[1:])
