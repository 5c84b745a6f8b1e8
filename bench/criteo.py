# SPDX-License-Identifier: Apache-2.0
"""Real clicks: what a model knows of rows it never saw, beside PyTorch's.

    python criteo.py DATA [SET ...]    kaggle, terabyte; both by default

DATA is a folder of Criteo's samples: kaggle.{train,dev,test}.txt.gz and
terabyte_day0.10k.txt.gz, which is cut here into 7,000, 1,000 and 2,000 rows.
The click model learns from the raw lines: alone from the file as it is, and
with 2 servers and 2 trainers, synchronous and not, who have every other line
each. PyTorch reads the same rows in the same order, with Python: from numbers
of its own ("torch"), and from those that ours starts with ("same start").

Every way has the same seeds, rate and number of epochs, which is the one that
serves PyTorch best on the dev rows. Printed are the mean AUC on the test rows
and its deviation over the seeds; "same start" shows the mean distance to ours.
"""
import gzip
import os
import sys
import tempfile
import zlib

import numpy as np

import paddle.fluid as fluid
from quality import BATCH, DIM, WIDTH, auc, chances, learn, network, start

try:
    import torch
except ImportError:
    torch = None

SEEDS, EPOCHS, RATE = 5, 16, 3e-4
PIPE = "paddle read criteo --hash crc32 --dim %d" % DIM
LEAST = [0, -3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
RANGE = [20, 603, 100, 50, 64000, 500, 100, 50, 500, 10, 10, 10, 50]
KAGGLE, TERABYTE = "kaggle.%s.txt.gz", "terabyte_day0.10k.txt.gz"
CUTS = [7000, 8000]  # of TERABYTE
# What gathers by default, eight batches, is much of an epoch of so few rows.
AT_ONCE = {"FLAGS_communicator_max_merge_var_num": "1",
           "FLAGS_communicator_min_send_grad_num_before_recv": "1"}


# --- the rows ----------------------------------------------------------------

def lines(*path):
    with gzip.open(os.path.join(*path)) as f:
        return f.readlines()


def pack(path, rows):
    with gzip.open(path, "wb") as f:
        f.writelines(rows)
    return path


def logs(data, name, folder):
    """The file that one machine reads, those of trainers, and the lines to
    train, choose and test on."""
    if name == "kaggle":
        parts = [lines(data, KAGGLE % p) for p in ("train", "dev", "test")]
        whole = os.path.join(data, KAGGLE % "train")
    else:
        rows = lines(data, TERABYTE)
        parts = rows[:CUTS[0]], rows[CUTS[0]:CUTS[1]], rows[CUTS[1]:]
        whole = pack(os.path.join(folder, "train.gz"), parts[0])
    halves = [pack(os.path.join(folder, "part-%d.gz" % i), parts[0][i::2])
              for i in range(2)]
    return [whole], halves, [arrays(p) for p in parts]


def arrays(rows):
    """Numbers, ids and labels of raw lines."""
    rows = [row.decode().rstrip("\n").split("\t") for row in rows]
    dense = [[(float(v) - LEAST[i]) / RANGE[i] if v else 0
              for i, v in enumerate(row[1:14])] for row in rows]
    ids = [[zlib.crc32(b"%d%s" % (i, v.encode())) % DIM
            for i, v in enumerate(row[14:40])] for row in rows]
    return (np.array(dense, "float32"), np.array(ids),
            np.array([row[0] == "1" for row in rows]))


# --- ours --------------------------------------------------------------------

def train(mode, seed, model, *files):
    learn(mode, list(files), model, EPOCHS, RATE, PIPE, seed=int(seed),
          log=True)


def ours(mode, seed, files, judged):
    """The AUC on each of the judged rows, after each epoch."""
    with tempfile.TemporaryDirectory() as folder:
        start(__file__, mode, folder, seed, folder, *files)
        return [[auc(chances(os.path.join(folder, str(e + 1)), dense, ids),
                     clicked) for dense, ids, clicked in judged]
                for e in range(EPOCHS)]


def our_start(seed):
    """The numbers that ours starts with: the table, then weights, biases."""
    main, startup = fluid.Program(), fluid.Program()
    scope = fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), \
            fluid.scope_guard(scope):
        network(seed, log=True)
        fluid.Executor(fluid.CPUPlace()).run(startup)
        return [torch.from_numpy(np.array(scope.find_var(v.name).get_tensor()))
                for v in main.global_block().all_parameters()]


# --- PyTorch -----------------------------------------------------------------

def torch_start(seed):
    torch.manual_seed(seed)
    values, wide = [torch.empty(DIM, WIDTH).uniform_(-1, 1)], 273
    for size in (400, 400, 400, 2):
        values += [torch.randn(wide, size) / wide ** 0.5, torch.zeros(size)]
        wide = size
    return values


def forward(weights, vectors, dense):
    x = torch.cat([vectors, torch.log1p(torch.relu(dense))], 1)
    for i in range(0, len(weights), 2):
        x = torch.addmm(weights[i + 1], x if i == 0 else torch.relu(x),
                        weights[i])
    return x


def torch_epoch(table, weights, rows):
    dense, ids, clicked = map(torch.from_numpy, rows)
    for i in range(0, len(ids), BATCH):
        flat = ids[i:i + BATCH].reshape(-1)
        vectors = table[flat].view(-1, 26 * WIDTH).requires_grad_()
        loss = torch.nn.functional.cross_entropy(
            forward(weights, vectors, dense[i:i + BATCH]),
            clicked[i:i + BATCH].long(), reduction="sum")
        grads = torch.autograd.grad(loss, [vectors] + weights)
        with torch.no_grad():
            torch._foreach_add_(weights, list(grads[1:]), alpha=-RATE)
            table.index_put_((flat,), grads[0].reshape(-1, WIDTH) * -RATE, True)


def theirs(values, rows, judged):
    table, weights = values[0], [v.requires_grad_() for v in values[1:]]
    scores = []
    for _ in range(EPOCHS):
        torch_epoch(table, weights, rows)
        with torch.no_grad():
            scores.append([auc(forward(
                weights, table[torch.from_numpy(ids).view(-1)].view(
                    -1, 26 * WIDTH), torch.from_numpy(dense)).softmax(1)[:, 1]
                .numpy(), clicked) for dense, ids, clicked in judged])
    return scores


# --- both --------------------------------------------------------------------

def measure(data, name):
    """{way: AUC by seed, epoch and judged rows}"""
    scores = {}
    with tempfile.TemporaryDirectory() as folder:
        whole, halves, (rows, *judged) = logs(data, name, folder)
        for mode in ("local", "sync", "async"):
            files = whole if mode == "local" else halves
            scores[mode] = [ours(mode, seed, files, judged)
                            for seed in range(1, SEEDS + 1)]
    if torch:
        torch.set_num_threads(1)
        for way, numbers in ("torch", torch_start), ("same start", our_start):
            scores[way] = [theirs(numbers(seed), rows, judged)
                           for seed in range(1, SEEDS + 1)]
    print("%s: %d rows to train on, %d to choose epochs, %d to test on" % (
        name, len(rows[2]), *(len(j[2]) for j in judged)))
    return {way: np.array(s) for way, s in scores.items()}


def report(scores):
    dev = scores["torch" if torch else "local"][:, :, 0].mean(0)
    best = int(dev.argmax())
    for way, s in scores.items():
        s = s[:, best, 1]
        print("  %-10s  test AUC after %d epochs: %.4f +- %.4f%s" % (
            way, best + 1, s.mean(), s.std(ddof=1),
            "  (from ours: %.5f)" % abs(s - scores["local"][:, best, 1]).mean()
            if way == "same start" else ""), flush=True)


def main(data, *names):
    if not os.path.exists(os.path.join(data, TERABYTE)):
        sys.exit("criteo.py: skipped, %s has no samples of Criteo" % data)
    os.environ.update(AT_ONCE)
    if not torch:
        print("PyTorch is not installed: there is nothing beside ours")
    for name in names or ("kaggle", "terabyte"):
        report(measure(data, name))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[1] == "train":
        train(*sys.argv[2:])
    else:
        main(*map(os.path.abspath, sys.argv[1:2]), *sys.argv[2:])
