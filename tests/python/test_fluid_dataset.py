# SPDX-License-Identifier: Apache-2.0
"""fluid.dataset, data_feed_desc and incubate.data_generator."""
import gzip
import io
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from cluster import LIMIT
import paddle.fluid as fluid
import paddle.fluid.incubate.data_generator as dg
from conftest import BUILD
from paddle.fluid.core import EnforceNotMet


@pytest.fixture
def use_vars(programs):
    return [fluid.layers.data("x", [2]),
            fluid.layers.data("ids", [1], dtype="int64", lod_level=1),
            fluid.layers.data("label", [1], dtype="int64")]


@pytest.fixture
def lines(tmp_path):
    """Three files of five examples, whose labels count from 0."""
    files = []
    for part in range(3):
        path = tmp_path / ("part-%d" % part)
        path.write_text("".join(
            "2 %d 0.5 %d %s 1 %d\n" % (i, i % 3 + 1,
                                       " ".join([str(i)] * (i % 3 + 1)), i)
            for i in range(5 * part, 5 * part + 5)))
        files.append(str(path))
    return files


def make(kind, use_vars, files, batch=4):
    dataset = fluid.DatasetFactory().create_dataset(kind)
    dataset.set_use_var(use_vars)
    dataset.set_batch_size(batch)
    dataset.set_filelist(files)
    return dataset


def labels(dataset, **kw):
    return [int(v) for batch in dataset._batches(**kw)
            for v in np.asarray(batch[2]).ravel()]


@pytest.mark.parametrize("ahead", [0, 2])
def test_a_queue_gives_tensors(use_vars, lines, ahead):
    batches = list(make("QueueDataset", use_vars, lines)._batches(ahead))
    assert [len(np.asarray(b[0])) for b in batches] == [4, 4, 4, 3]
    x, ids, label = batches[0]
    assert np.asarray(x).tolist() == [[0, .5], [1, .5], [2, .5], [3, .5]]
    assert x.lod() == [] and x.shape() == [4, 2]
    assert ids.shape() == [7, 1] and ids.lod() == [[0, 1, 3, 6, 7]]
    assert np.asarray(ids).ravel().tolist() == [0, 1, 1, 2, 2, 2, 3]
    assert np.asarray(label).dtype == np.int64


def test_a_pipe_command_runs(use_vars, tmp_path):
    path = tmp_path / "raw.gz"
    path.write_bytes(gzip.compress(b"7\n8\n"))
    dataset = make("QueueDataset", use_vars, [str(path)])
    dataset.set_pipe_command("zcat | sed 's/.*/2 1 2 1 3 1 &/'")
    assert labels(dataset) == [7, 8]


def test_failures_are_sentences(use_vars, lines, tmp_path):
    dataset = make("QueueDataset", use_vars, lines)
    dataset.set_pipe_command("cat; echo what now >&2; exit 3")
    with pytest.raises(EnforceNotMet, match="ended with code 3; its last "
                                            "output: what now"):
        labels(dataset)
    with pytest.raises(EnforceNotMet, match="no such file.*No such file"):
        labels(make("QueueDataset", use_vars, ["no such file"]))
    with pytest.raises(EnforceNotMet, match="list of files is empty"):
        labels(make("QueueDataset", use_vars, []))
    with pytest.raises(RuntimeError, match="hdfs:/a.*HDFS"):
        labels(make("QueueDataset", use_vars, ["hdfs:/a"]))


def test_bad_lines_are_skipped_within_a_budget(use_vars, tmp_path):
    path = tmp_path / "bad"
    path.write_text("2 1 2 1 3 1 4\nrubbish\n2 1 2 1 3 1 5\n")
    dataset = make("QueueDataset", use_vars, [str(path)])
    with pytest.raises(EnforceNotMet, match="bad:2:1: the count of slot"):
        labels(dataset)
    dataset.set_bad_lines(1)
    reader = dataset._batches()
    assert len(list(reader)) == 1
    assert reader.stats()["bad_lines"] == 1
    assert "bad:2:1" in reader.bad_lines()[0]


def test_a_load_tells_of_bad_lines(use_vars, tmp_path, capfd):
    path = tmp_path / "bad"
    path.write_text("rubbish\n2 1 2 1 3 1 4\n")
    dataset = make("InMemoryDataset", use_vars, [str(path)])
    dataset.set_bad_lines(3)
    dataset.load_into_memory()
    assert dataset.get_memory_data_size() == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert "1 bad lines were skipped (the limit is 3); the first: " in err
    assert "bad:1:1: the count of slot" in err


def test_a_reader_is_cancelled_from_another_thread(use_vars, lines):
    dataset = make("QueueDataset", use_vars, lines)
    dataset.set_pipe_command("sleep 600")
    reader = dataset._batches()
    timer = threading.Timer(0.05, reader.cancel)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        next(reader)
    timer.join()


def test_memory_keeps_order_and_shuffles_alike(use_vars, lines):
    first = make("InMemoryDataset", use_vars, lines)
    first.set_thread(3)
    with pytest.raises(RuntimeError, match="load_into_memory"):
        first._batches()
    first.load_into_memory()
    assert first.get_memory_data_size() == 15
    assert labels(first) == list(range(15))
    first.local_shuffle()
    once = labels(first)
    assert sorted(once) == list(range(15)) != once
    second = make("InMemoryDataset", use_vars, lines, batch=2)
    second.preload_into_memory(thread_num=2)
    second.wait_preload_done()
    second.global_shuffle()
    assert labels(second) == once
    assert second.get_shuffle_data_size() == 15
    second.set_batch_size(15)  # needs no other load
    assert len(list(second._batches())) == 1
    second.release_memory()
    assert second.get_memory_data_size() == 0


def test_memory_says_what_is_missing(use_vars, lines):
    dataset = make("InMemoryDataset", use_vars, lines)
    with pytest.raises(EnforceNotMet, match="cannot be shuffled: load it first"):
        dataset.local_shuffle()
    with pytest.raises(EnforceNotMet, match="the dataset is not being loaded"):
        dataset.wait_preload_done()
    dataset.release_memory()
    assert dataset.get_memory_data_size() == 0
    for _ in range(2):
        dataset.load_into_memory()
    assert labels(dataset) == list(range(15))
    dataset.set_pipe_command("sleep 600")
    dataset.preload_into_memory()
    with pytest.raises(ValueError, match="still being loaded"):
        dataset.load_into_memory()
    for _ in range(2):
        dataset.release_memory()
    with pytest.raises(RuntimeError, match="call load_into_memory"):
        dataset._batches()
    dataset.set_filelist([])
    dataset.load_into_memory()
    dataset.local_shuffle()
    with pytest.raises(EnforceNotMet, match="list of files is empty"):
        dataset._batches()
    for wrong in ("part-0", [3]):
        with pytest.raises(TypeError):
            dataset.set_filelist(wrong)
    with pytest.raises(TypeError, match="set_use_var takes .*, not 'x'"):
        dataset.set_use_var(["x"])
    with pytest.raises(ValueError, match="batch_size is 0, expected 1"):
        dataset.set_batch_size(0)


def test_loading_heeds_ctrl_c(use_vars, lines):
    dataset = make("InMemoryDataset", use_vars, lines)
    dataset.set_pipe_command("sleep 600")
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT])
    start = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):  # also before it loads
            timer.start()
            dataset.load_into_memory()
    finally:
        timer.join()
        signal.signal(signal.SIGINT, old)
    assert time.monotonic() - start < 60


def test_what_is_not_there_says_so(use_vars, lines):
    with pytest.raises(ValueError, match="NoDataset does not exist"):
        fluid.DatasetFactory().create_dataset("NoDataset")
    queue = make("QueueDataset", use_vars, lines)
    with pytest.raises(NotImplementedError, match="InMemoryDataset"):
        queue.local_shuffle()
    with pytest.raises(NotImplementedError):
        queue.global_shuffle()
    memory = make("InMemoryDataset", use_vars, lines)
    with pytest.raises(NotImplementedError):
        memory.set_parse_ins_id(True)
    with pytest.raises(ValueError, match="float64|FP64"):
        queue.set_use_var([fluid.layers.data("d", [1], dtype="float64")])


def test_desc_is_protobuf_text(use_vars):
    dataset = make("QueueDataset", use_vars[:2], [])
    assert dataset.desc() == '''\
name: "MultiSlotDataFeed"
batch_size: 4
multi_slot_desc {
  slots {
    name: "x"
    type: "float"
    is_dense: true
    is_used: true
    shape: -1
    shape: 2
  }
  slots {
    name: "ids"
    type: "uint64"
    is_used: true
  }
}
pipe_command: "cat"
'''


def test_a_feed_description_is_read(tmp_path):
    path = tmp_path / "feed.prototxt"
    path.write_text('''# what lines have
name: "MultiSlotDataFeed"
batch_size: 2
multi_slot_desc {
    slots { name: "words" type: "uint64" is_dense: false is_used: true }
    slots {
        name: "label"
        type: "uint64"
    }
}
''')
    desc = fluid.DataFeedDesc(str(path))
    desc.set_batch_size(128)
    desc.set_dense_slots(["label"])
    desc.set_use_slots(["label"])
    assert desc.desc() == '''\
name: "MultiSlotDataFeed"
batch_size: 128
multi_slot_desc {
  slots {
    name: "words"
    type: "uint64"
    is_used: true
  }
  slots {
    name: "label"
    type: "uint64"
    is_dense: true
    is_used: true
  }
}
'''
    with pytest.raises(ValueError, match="no slot is called 'lable'"):
        desc.set_use_slots(["lable"])


# --- generators ---

class Words(dg.MultiSlotDataGenerator):
    def generate_sample(self, line):
        def samples():
            label, *words = line.split()
            yield zip(["words", "label"], [[int(w) for w in words],
                                           [int(label)]])
            yield None
        return samples


def run(generator, text, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    generator.run_from_stdin()
    return capsys.readouterr().out


def test_a_generator_takes_any_pairs(monkeypatch, capsys):
    assert run(Words(), "1 7 8\n0 9\n", monkeypatch, capsys) \
        == "2 7 8 1 1\n1 9 1 0\n"


def test_a_generator_changes_batches(monkeypatch, capsys):
    class Padded(Words):
        def generate_batch(self, samples):
            samples = [dict(s) for s in samples]
            longest = max(len(s["words"]) for s in samples)

            def batch():
                for s in samples:
                    pad = [0] * (longest - len(s["words"]))
                    yield [("words", s["words"] + pad), ("label", s["label"])]
            return batch

    padded = Padded()
    padded.set_batch(2)
    assert run(padded, "1 7 8\n0 9\n0 5\n", monkeypatch, capsys) \
        == "2 7 8 1 1\n2 9 0 1 0\n1 5 1 0\n"


def test_a_generator_needs_no_input(capsys):
    class Made(dg.MultiSlotDataGenerator):
        def generate_sample(self, line):
            return lambda: ([("x", [i, 0.5])] for i in range(2))

    made = Made()
    made.run_from_memory()
    assert capsys.readouterr().out == "2 0 0.5\n2 1 0.5\n"
    assert made._proto_info == [("x", "float")]


def test_a_generator_of_strings(monkeypatch, capsys):
    class Strings(dg.MultiSlotStringDataGenerator):
        def generate_sample(self, line):
            return lambda: iter([[("a", line.split()), ("b", ["x"])]])

    assert run(Strings(), "1 2\n", monkeypatch, capsys) == "2 1 2 1 x\n"


@pytest.mark.parametrize("sample, says", [
    ([("a", [])], "has no values"),
    ([("a", 1)], "expected a list"),
    ([(1, [1])], "expected a str"),
    ([("a", ["1"])], "expected a number"),
    ([("b", [1])], "was 'a'"),
    ([("a", [1]), ("b", [1])], "the first had 1"),
    (5, "iterable of"),
    (["ab", "c"], "not a .name, values. pair"),
])
def test_a_generator_refuses(sample, says):
    generator = dg.MultiSlotDataGenerator()
    assert generator._gen_str([("a", [np.int64(1)])]) == "1 1\n"
    with pytest.raises(ValueError, match=says):
        generator._gen_str(sample)


def test_generate_sample_is_the_users():
    with pytest.raises(NotImplementedError, match="generate_sample"):
        dg.MultiSlotDataGenerator().run_from_memory()


# --- Criteo: the command beside the reader in Python ---

READER = '''
import sys, zlib
import paddle.fluid.incubate.data_generator as dg
LEAST = [0, -3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
RANGE = [20, 603, 100, 50, 64000, 500, 100, 50, 500, 10, 10, 10, 50]
dim, kind = int(sys.argv[1]), sys.argv[2]

def python_id(i, s): return hash(str(14 + i) + s) % dim
def crc32_id(i, s): return zlib.crc32((str(i) + s).encode()) % dim
one = dict(python=python_id, crc32=crc32_id)[kind]

class Criteo(dg.MultiSlotDataGenerator):
    def generate_sample(self, line):
        def sample():
            f = line.rstrip("\\n").split("\\t")
            dense = [(float(v) - LEAST[i]) / RANGE[i] if v else 0.0
                     for i, v in enumerate(f[1:14])]
            sparse = [[one(i, v)] for i, v in enumerate(f[14:40])]
            names = ["dense"] + ["C%d" % i for i in range(26)] + ["label"]
            yield zip(names, [dense] + sparse + [[int(f[0])]])
        return sample

Criteo().run_from_stdin()
'''


def clicks(n):
    rng = np.random.default_rng(3)
    for i in range(n):
        numbers = ["" if rng.random() < .1 else str(v) for v in
                   rng.integers(-3, [30, 900] + [70000] * 11)]
        texts = [("", "%08x" % rng.integers(2 ** 32), "w\u00f6rt",
                  "\u70b9\u51fb", "\U0001F600")[k]
                 for k in rng.choice(5, 26, p=[.1, .84, .02, .02, .02])]
        yield "\t".join([str(i % 2)] + numbers + texts)


def both_read(text, kind, tmp_path):
    script = tmp_path / "reader.py"
    script.write_text(READER)
    env = dict(os.environ, PYTHONHASHSEED="0", PYTHONUTF8="1",
               PYTHONPATH=os.path.join(BUILD, "python"))
    theirs = subprocess.run([sys.executable, str(script), "1000001", kind],
                            input=text, env=env, capture_output=True,
                            check=True).stdout
    ours = subprocess.run([os.path.join(BUILD, "bin", "paddle"), "read",
                           "criteo", "--dim", "1000001", "--hash", kind],
                          input=text, capture_output=True, check=True).stdout
    return theirs, ours


@pytest.mark.parametrize("kind", ["python", "crc32"])
def test_the_command_writes_what_python_writes(kind, tmp_path):
    text = "\n".join(clicks(500)).encode() + b"\n"
    theirs, ours = both_read(text, kind, tmp_path)
    assert ours.count(b"\n") == 500 and ours == theirs


@pytest.mark.parametrize("kind", ["python", "crc32"])
def test_real_logs_are_read_as_python_does(kind, shared, tmp_path):
    for name in ("kaggle.dev.txt.gz", "paddlerec_part-0.txt.gz"):
        path = os.path.join(shared, "criteo", name)
        if not os.path.exists(path):
            pytest.skip("no Criteo logs")
        with gzip.open(path) as f:
            theirs, ours = both_read(f.read(), kind, tmp_path)
        assert ours and ours == theirs


def test_the_command_needs_its_input_and_output(tmp_path):
    def read(*flags, closed=None, **files):
        return subprocess.run(
            [os.path.join(BUILD, "bin", "paddle"), "read", "criteo", *flags],
            stderr=subprocess.PIPE, text=True, timeout=LIMIT,
            preexec_fn=lambda: closed is None or os.close(closed), **files)

    line = next(clicks(1)).encode() + b"\n"
    (tmp_path / "in").write_bytes(line)
    with open(tmp_path / "in") as f, open("/dev/full", "w") as full:
        assert "No space left" in read(stdin=f, stdout=full).stderr
    assert "input is closed" in read(closed=0).stderr
    assert "output is closed" in read(closed=1, stdin=subprocess.DEVNULL).stderr
    assert "Is a directory" in read(stdin=os.open(tmp_path, 0)).stderr
    assert read("--dim", str(10 ** 20)).returncode == 2
    (tmp_path / "in").write_bytes(line + b"1\t2\n")
    with open(tmp_path / "in") as f:
        bad = read("--dim", str(10 ** 12), stdin=f, stdout=subprocess.PIPE)
    assert bad.returncode == 1 and bad.stdout == ""
    assert "input:2:1: 2 fields, expected 40" in bad.stderr


def test_data_check_tells_of_bad_lines(tmp_path):
    path = tmp_path / "lines"
    path.write_text("1 5 2 7 8\n1 x 2 7 8\n")
    paddle = os.path.join(BUILD, "bin", "paddle")

    def check(*args):
        return subprocess.run([paddle, "data", "check", *args], text=True,
                              capture_output=True)

    bad = check("--slots", "a:u64,b:f32[2]", str(path))
    assert bad.returncode == 1
    assert 'lines:2:3: value 1 of slot "a" is "x"' in bad.stdout
    assert "lines: 1 good lines, 1 bad" in bad.stdout
    for slots, why in (("a:f64", 'slot 1 of --slots is "a:f64"'),
                       ("a:u64,b:f32[2", 'slot 2 of --slots is "b:f32[2"'),
                       ("b:f32[0]", "its shape is [-1,0]"),
                       (",", "0 slots, expected 1 to")):
        wrong = check("--slots", slots, str(path))
        assert wrong.returncode == 2 and why in wrong.stderr
    assert check(str(path)).returncode == 2
    lost = check("--slots", "a:u64", str(tmp_path / "lost"), str(tmp_path))
    assert lost.returncode == 1
    assert "lost: cannot open it: No such file" in lost.stdout
    assert "Is a directory" in lost.stdout
    path.write_text("1 5 2 7 8\n")
    assert check("--slots", "a:u64,b:f32[2]", str(path)).returncode == 0
