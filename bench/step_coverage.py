# SPDX-License-Identifier: Apache-2.0
"""step_coverage.py BUILD - the files and functions that a step of a job runs.

BUILD is a build with --coverage; `make step-coverage` makes it. Two servers and
two trainers train the network of examples/clicks.py with a table by id, once on
few and once on more batches. A function belongs to a step if it ran at least
once more for each further batch: starts, ends and polling do not count. Prints
figures by folder; the names are in BUILD/step-sync.txt and BUILD/step-async.txt.
"""
import collections
import functools
import glob
import json
import os
import subprocess
import sys
import tempfile

FEW, MORE = 10, 110  # batches of a trainer
EXAMPLES = os.path.abspath(__file__ + "/../../examples")


def job(mode, folder):
    """One process of the job; the environment says which."""
    sys.path.insert(0, EXAMPLES)
    import clicks
    from clicks import fleet, fluid
    by_id = functools.partial(fluid.layers.embedding, is_distributed=True)
    fluid.layers.embedding = by_id
    feeds, _, loss, _ = clicks.network()
    fleet.init(clicks.role_maker.PaddleCloudRoleMaker())
    config = clicks.DistributeTranspilerConfig()
    config.sync_mode = mode == "sync"
    fleet.distributed_optimizer(fluid.optimizer.Adagrad(0.05), config).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        return fleet.run_server()
    fleet.init_worker()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)
    dataset = clicks.dataset_of(feeds, [folder + "/part-0"])
    exe.train_from_dataset(fluid.default_main_program(), dataset)
    return fleet.stop_worker()


def counts(build, mode, batches):
    """How often each (file, function) ran in a job of so many batches."""
    quiet = dict(check=True, stdout=subprocess.DEVNULL, env=dict(
        os.environ, FLAGS_communicator_max_merge_var_num="1",
        FLAGS_communicator_min_send_grad_num_before_recv="1"))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, EXAMPLES + "/clicks.py", "make", folder,
                        str(batches * 100)], **quiet)
        for file in glob.glob(build + "/obj/*/*/*.gcda"):
            os.remove(file)
        subprocess.run(["paddle", "launch", "--server_num=2", "--worker_num=2",
                        "--log_dir=" + folder, __file__, mode, folder], **quiet)
    found = collections.Counter()
    for file in set(glob.glob(build + "/obj/src/*/*.gcda")) - set(
            glob.glob(build + "/obj/src/launch/*.gcda")):  # it only watches
        text = subprocess.check_output(["gcov", "--json-format", "--stdout", file])
        for source in json.loads(text)["files"]:
            for f in source["functions"]:
                found[source["file"], f["name"]] += f["execution_count"]
    return found


def measure(build):
    for mode in ("sync", "async"):
        few, more = counts(build, mode, FEW), counts(build, mode, MORE)
        step = sorted(f for f in more if more[f] - few[f] >= MORE - FEW)
        with open("%s/step-%s.txt" % (build, mode), "w") as f:
            f.writelines("%s %s\n" % function for function in step)
        files = {file for file, _ in step}
        rooms = collections.Counter(file.split("/")[1] for file, _ in step)
        print("%s: %d files, %d functions" % (mode, len(files), len(step)))
        for room, n in sorted(rooms.items()):
            here = sum(file.startswith("src/%s/" % room) for file in files)
            print("    %-10s %3d files %4d functions" % (room, here, n))


if __name__ == "__main__":
    measure(*sys.argv[1:]) if len(sys.argv) == 2 else job(*sys.argv[1:])
