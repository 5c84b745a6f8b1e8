# SPDX-License-Identifier: Apache-2.0
"""train.py INPUT DATA THREADS SECONDS - the click model by train_from_dataset.

INPUT is where examples come from: memory (loaded before), multislot (text, slot
by slot) or criteo (raw lines, read natively). Passes over all of DATA's logs
until so many seconds are over. Prints one line of JSON.
"""
import glob
import json
import os
import resource
import sys
import time

import paddle.fluid as fluid

from quality import BATCH, DIM, RATE, network


def dataset_of(kind, inputs, files, threads):
    data = fluid.DatasetFactory().create_dataset(
        "InMemoryDataset" if kind == "memory" else "QueueDataset")
    data.set_use_var(inputs)
    data.set_batch_size(BATCH)
    data.set_thread(threads)
    data.set_filelist(files)
    if kind == "criteo":
        data.set_pipe_command("paddle read criteo --dim %d" % DIM)
    if kind == "memory":
        data.load_into_memory()
    return data


def logs(folder, kind):
    name = "criteo" if kind == "criteo" else "multislot"
    return sorted(glob.glob(os.path.join(folder, name, "part-*")))


def speed(exe, inputs, kind, folder, threads, seconds):
    files = logs(folder, kind)
    exe.train_from_dataset(dataset=dataset_of(kind, inputs, files[:1], threads))
    data = dataset_of(kind, inputs, files, threads)
    rows = sum(sum(1 for _ in open(f)) for f in files)
    passes, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        exe.train_from_dataset(dataset=data)
        passes += 1
    return rows * passes / (time.perf_counter() - began)


def main(kind, folder, threads, seconds):
    os.environ.setdefault("FLUID_STATUS", "off")
    fluid.default_startup_program().random_seed = 1
    inputs, _, loss = network()
    fluid.optimizer.SGD(RATE).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rate = speed(exe, inputs, kind, folder, int(threads), float(seconds))
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"samples_per_s": round(rate),
                      "rss_mb": usage.ru_maxrss // 1024}))


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
