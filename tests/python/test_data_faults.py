# SPDX-License-Identifier: Apache-2.0
"""Data that is wrong, as a user sees it: a sentence, a code, and an end.

Faults are met by a script alone and by a job of two servers and two trainers,
of which the second has the fault in its share; what needs no process of its own
is met by a reader here."""
import gzip
import os
import re
import subprocess
import sys

import pytest

from cluster import LIMIT
import data_job
import paddle.fluid as fluid
from paddle.fluid.core import EnforceNotMet
from test_launch import MARK, living, until

SCRIPT = data_job.__file__
QUICK = {"FLUID_LINGER": "1", "FLUID_REJOIN": "0", "FLUID_STALL": "0.2"}
GOOD = "".join("1 %d 1 %d\n" % (i * 37 % 50, i % 2) for i in range(60))


def environment(folder, **env):
    return {**os.environ, **QUICK, **env, MARK: str(folder)}


def run(argv, folder, **env):
    """Code, stdout and stderr; then nothing of it runs any more."""
    p = subprocess.run(argv, cwd=folder, env=environment(folder, **env),
                       capture_output=True,
                       timeout=LIMIT)
    until(lambda: not living(folder))
    return p.returncode, p.stdout.decode(), p.stderr.decode()


def alone(folder, *words, **env):
    return run([sys.executable, SCRIPT, *words], folder, **env)


def job(folder, *words, trainers=2, **env):
    return run(["paddle", "launch", "--server_num", "2", "--worker_num",
                str(trainers), "--python", sys.executable, SCRIPT, *words],
               folder, **env)


def reads(folder, monkeypatch, *words):
    """How many examples a reader here finds in the files."""
    monkeypatch.setenv(MARK, str(folder))
    monkeypatch.chdir(folder)
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        feeds, _, _ = data_job.network()
    say, files = data_job.settings(words)
    batches = data_job.dataset_of(feeds, files, say)._batches()
    return sum(batch[1].shape()[0] for batch in batches)


def failures(folder, monkeypatch, *words):
    """What a reader here says, of files that stream and that are loaded."""
    said = []
    for kind in "QueueDataset", "InMemoryDataset":
        with pytest.raises(EnforceNotMet) as e:
            reads(folder, monkeypatch, "kind=" + kind, *words)
        until(lambda: not living(folder))
        said.append(str(e.value))
    return said


def fails(folder, monkeypatch, *words):
    """The same, which is one sentence."""
    said = failures(folder, monkeypatch, *words)
    assert said[0] == said[1]
    return said[0]


def blames(err, trainer):
    """Whether the launcher names this trainer. It is not the first where it was
    slow to end, and a server that it had told was faster."""
    return re.search("trainer %d( failed first)?: exit code 1" % trainer, err)


def last_line(text):
    return text.rstrip("\n").rpartition("\n")[2]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "good").write_text(GOOD)
    return tmp_path


# --- what is wrong, with what is said of it ---

def packed(cut=None, more=b""):
    return gzip.compress(GOOD.encode())[:cut] + more


FILES = {
    "bad line": (GOOD + "1 x 1 0\n",
                 'it:61:3: value 1 of slot "ids" is "x", expected a whole '
                 'number, in "1 x 1 0"'),
    "empty line": (GOOD + "\n" + GOOD, "it:61:1: the line is empty"),
    "no ids": ("0 1 0\n", 'it:1:1: the count of slot "ids" is "0", expected '
                          "a whole number from 1 on"),
    "negative count": ("-2 1 1 0\n", 'it:1:1: the count of slot "ids" is '
                                     '"-2"'),
    "huge count": ("9223372036854775807 1 1 0\n",
                   'it:1:1: slot "ids" should have 9223372036854775807 '
                   "values, the line has only 3 more"),
    "huge id": ("1 %d 1 0\n" % 10 ** 20, 'it:1:3: value 1 of slot "ids"'),
    "half a line": (GOOD + "1 3 1", 'it:61:5: slot "label" should have 1 values, '
                                    "the line has only 0 more"),
    "zero bytes": ("1 3 1\0 0\n", 'it:1:5: the count of slot "label" is '
                                  '"1."'),
    "no text": (b"1 \xff\xfe 1 0\n", 'slot "ids" is "\\xff\\xfe"'),
    "too much": ("1 3 1 0 5\n", 'it:1:9: "5" follows the last slot, '
                                '"label"'),
    "a long line": ("1 " * (9 << 20), "it:1:1: the line has more than "
                                      "16777216 bytes"),
    "cut gzip": (packed(cut=60), "it: this gzip file is cut off: it ends in "
                                 "the middle of its data"),
    "no gzip": (b"\x1f\x8b and text", "it: this gzip file is damaged"),
    "rubbish behind gzip": (packed(more=b"rubbish"), "other bytes "
                            "follow its compressed data"),
}


def put(folder, content):
    write = "write_text" if isinstance(content, str) else "write_bytes"
    getattr(folder / "it", write)(content)


@pytest.mark.parametrize("fault", FILES)
def test_a_file_is_wrong(folder, fault, monkeypatch):
    content, sentence = FILES[fault]
    put(folder, content)
    assert sentence in fails(folder, monkeypatch, "good", "it")


@pytest.mark.parametrize("kind", ["QueueDataset", "InMemoryDataset"])
def test_a_line_ends_a_script(folder, kind):
    content, sentence = FILES["bad line"]
    put(folder, content)
    code, out, err = alone(folder, "kind=" + kind, "good", "it")
    assert code == 1 and out == ""
    assert sentence in last_line(err)


@pytest.mark.parametrize("fault", ["bad line", "cut gzip"])
def test_a_file_of_a_job_is_wrong(folder, fault):
    content, sentence = FILES[fault]
    put(folder, content)
    code, _, err = job(folder, "good", "it")
    assert code == 1
    assert blames(err, 1)
    assert sentence in err and "logs/workerlog.1" in err
    assert "1 ended well" in err  # trainer 0, whose share was whole


WELL = {
    "CRLF": GOOD.replace("\n", "\r\n"),
    "no last end": GOOD[:-1],
    "gzip": packed(),
    "two gzips": packed() + packed(),
    "tabs and blanks": GOOD.replace(" ", " \t  "),
}


@pytest.mark.parametrize("kind", WELL)
def test_a_file_looks_odd_and_is_not(folder, kind, monkeypatch):
    put(folder, WELL[kind])
    assert reads(folder, monkeypatch, "it", "good") == \
        (180 if kind == "two gzips" else 120)


def test_there_are_more_threads_than_files_and_few_lines(folder):
    code, out, err = alone(folder, "good", "batch=100000", "threads=9")
    assert code == 0 and out == "trained\n"
    assert "of 9 threads only 1 have work: there are 1 files" in err
    assert "epoch 1  60 examples" in err


# --- files that are not there ---

def test_a_file_is_missing(folder):
    sentence = ("it: cannot open it: No such file or directory (looked for in "
                "%s)" % folder)
    code, _, err = alone(folder, "good", "it")
    assert code == 1 and last_line(err).endswith(sentence)
    code, _, err = job(folder, "good", "it")
    assert code == 1 and sentence in err
    assert blames(err, 1)


def test_a_file_is_a_folder(folder, monkeypatch):
    (folder / "it").mkdir()
    assert fails(folder, monkeypatch, "good", "it") == \
        "it: cannot read it: Is a directory"


@pytest.mark.parametrize("name", [
    b"two words", b"it's \"quoted\"; $x `y`", "w\u00f6rt\u70b9".encode(),
    b"\xff\xfe"])
def test_a_file_has_an_odd_name(folder, name, monkeypatch):
    (folder / os.fsdecode(name)).write_text(GOOD + "rubbish\n")
    words = [os.fsdecode(name), "pipe=sed s/x/x/"]
    assert reads(folder, monkeypatch, "bad=1", *words) == 60
    assert name.decode("utf-8", "backslashreplace") + ":61:1: " in \
        fails(folder, monkeypatch, *words)


@pytest.mark.parametrize("kind", ["QueueDataset", "InMemoryDataset"])
def test_there_are_no_files(folder, kind):
    sentence = "the list of files is empty: nothing to read (set_filelist)"
    code, _, err = alone(folder, "kind=" + kind)
    assert code == 1 and last_line(err).endswith(sentence)


@pytest.mark.parametrize("pipe", ["cat", "true"])
def test_files_are_empty(folder, pipe):
    put(folder, GOOD if pipe == "true" else "")
    code, out, err = alone(folder, "it", "pipe=" + pipe)
    assert code == 0 and out == "trained\n"
    assert "1 files gave no example" in err
    assert ("the pipe command wrote nothing" in err) == (pipe == "true")


@pytest.mark.parametrize("kind, sync", [("QueueDataset", "0"),
                                        ("InMemoryDataset", "1")])
def test_there_are_more_trainers_than_files(folder, kind, sync):
    code, _, err = job(folder, "share=deal", "kind=" + kind, "sync=" + sync,
                       "good")
    assert code == 0, err
    log = (folder / "logs" / "workerlog.1").read_text()
    assert "this trainer has no files: it takes no step in this pass" in log
    assert last_line(log) == "trained"


# --- pipe commands ---

PIPES = {  # what the second trainer's does, and what is said of it
    "fails": ("cat; echo out of luck >&2; exit 3",
              "ended with code 3; its last output: out of luck (on it)"),
    "is not there": ("no-such-reader", "ended with code 127; its last output: "),
    "is killed": ("cat; kill -9 $$", "was ended by signal 9 (Killed) and wrote "
                                     "nothing to stderr (on it)"),
    "floods stderr and fails": (
        "yes flood | head -c 3000000 >&2; echo the end >&2; exit 2",
        "its last output: flood flood the end (on it)"),
    "says bytes that are no text": (
        r"cat; printf '\344\377\n' >&2; exit 1",
        r"its last output: \xe4\xff (on it)"),
    "writes half a line": ("head -c 100", "it:12:4: the line ends before slot "
                                          '"label"'),
    "hangs": ("sleep 600", 'pipe command "sleep 600" writes nothing (on it, '
                           "for 0.7 s, as long as FLUID_SILENCE allows)"),
    "hangs after its lines": ("cat; sleep 600", "writes nothing (on it, for "
                                                "0.7 s"),
    "floods stderr for ever": ("cat; yes flood >&2", "writes nothing (on it"),
    "closes its output and hangs": (
        "cat; exec >&-; sleep 600",
        "has closed its output and does not end (on it"),
    "leaves somebody behind": (
        "cat; sleep 600 &", "has ended, but what it started keeps its output "
                            "open and writes nothing (on it"),
    "fails and leaves somebody behind": ("cat; sleep 600 & exit 3",
                                         "ended with code 3"),
}


def silences(sentence):
    """Values of FLUID_SILENCE to try, if a command meets it. On a busy machine
    it may be met before the command has come to its fault."""
    met = re.search("writes nothing|does not end", sentence)
    return ["0.7", "7", "70"] if met else ["600"]


@pytest.mark.parametrize("fault", PIPES)
def test_a_pipe_command(folder, fault, monkeypatch):
    command, sentence = PIPES[fault]
    put(folder, GOOD)
    for seconds in silences(sentence):
        monkeypatch.setenv("FLUID_SILENCE", seconds)
        want = sentence.replace("0.7", seconds)
        said = failures(folder, monkeypatch, "it", "pipe=" + command)
        if want in said[0] and said[0] == said[1]:
            return
    pytest.fail("\n".join(said))


@pytest.mark.parametrize("fault", ["fails", "hangs"])
def test_a_pipe_command_ends_a_script(folder, fault):
    command, sentence = PIPES[fault]
    put(folder, GOOD)
    code, out, err = alone(folder, "pipe=" + command, "it",
                           FLUID_SILENCE=silences(sentence)[0])
    assert code == 1 and out == ""
    assert sentence in last_line(err)


@pytest.mark.parametrize("fault, sync", [
    ("fails", "1"), ("floods stderr and fails", "0"),
    ("hangs after its lines", "1")])
def test_a_pipe_command_of_a_job(folder, fault, sync):
    command, sentence = PIPES[fault]
    put(folder, GOOD)
    code, _, err = job(
        folder, 'pipe=if [ "$PADDLE_TRAINER_ID" = 1 ]; then %s; else cat; fi'
        % command, "sync=" + sync, "silence=" + silences(sentence)[0],
        "good", "it")
    assert code == 1
    assert blames(err, 1)
    assert sentence.rpartition('" ')[2] in err


@pytest.mark.parametrize("command, examples", [
    ("head -3", 3),  # it closes its stdin early
    ("yes flood | head -c 3000000 >&2; cat", 60),
    ("cat; sleep 600 >/dev/null 2>&1 &", 60)])
def test_a_pipe_command_is_odd_and_works(folder, command, examples,
                                         monkeypatch):
    assert reads(folder, monkeypatch, "good", "pipe=" + command) == examples
    until(lambda: not living(folder))


def test_who_is_killed_leaves_no_pipe_command(folder):
    env = {**os.environ, **QUICK, MARK: str(folder)}
    p = subprocess.Popen([sys.executable, SCRIPT, "good", "pipe=touch up; "
                          "sleep 600 & sleep 600"], cwd=folder, env=env)
    until((folder / "up").exists)
    p.kill()
    p.wait()
    until(lambda: not living(folder))


def test_silence_is_told_before_it_is_an_error(folder):
    put(folder, GOOD)
    command = "until [ -e told ]; do sleep 0.02; done; cat"
    p = subprocess.Popen([sys.executable, SCRIPT, "it", "pipe=" + command],
                         cwd=folder, env=environment(folder), text=True,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    line = p.stderr.readline()
    assert re.search(r'pipe command "%s" writes nothing \(on it, for [\d.]+ s '
                     r"so far\)" % re.escape(command), line)
    (folder / "told").touch()
    assert "60 examples" in p.communicate(timeout=LIMIT)[1]
    assert p.returncode == 0


# --- lines that may be bad ---

@pytest.mark.parametrize("kind", ["QueueDataset", "InMemoryDataset"])
def test_bad_lines_up_to_a_budget(folder, kind):
    put(folder, "x\n" + GOOD + "y\n")
    code, out, err = alone(folder, "kind=" + kind, "bad=2", "it")
    assert code == 0 and "60 examples" in err
    assert "2 bad lines were skipped" in err
    assert 'the first: it:1:1: the count of slot "ids" is "x"' in err
    code, out, err = alone(folder, "kind=" + kind, "bad=1", "it")
    assert code == 1 and out == ""
    assert 'it:62:1: the count of slot "ids" is "y"' in last_line(err)
    assert last_line(err).endswith("(bad lines that were skipped before it: "
                                   "1, which is the limit)")


# --- a full disk ---

@pytest.fixture
def full(folder):
    """A disk on which there is no room, and an old model."""
    disk = folder / "disk"
    disk.mkdir()
    if os.geteuid() or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)],
            capture_output=True).returncode:
        pytest.skip("only root can make a small disk")
    try:
        assert alone(folder, "good", "save=disk/model")[0] == 0
        with pytest.raises(OSError), open(disk / "fill", "wb") as f:
            f.write(bytes(1 << 20))
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.parametrize("start", [alone, job])
def test_a_full_disk(folder, full, start):
    put(folder, GOOD)
    before = {p.name: p.read_bytes() for p in (full / "model").iterdir()}
    code, _, err = start(folder, "good", "it", "save=disk/model")
    assert code == 1
    assert "No space left on device" in err and "disk/model/" in err
    assert start is alone or blames(err, 0)
    assert {p.name: p.read_bytes()
            for p in (full / "model").iterdir()} == before
