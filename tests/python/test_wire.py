# SPDX-License-Identifier: Apache-2.0
"""A client that knows proto/fluid.proto and nothing else of Fluid.

It is the program of docs/wire.md, word for word: it trains with a real server,
and then all that a server may be sent by mistake or malice is sent to one.
"""
import contextlib
import importlib.util
import os
import queue
import re
import socket
import struct
import subprocess
import sys
import time

import pytest

from cluster import LIMIT, ROOT, Cluster

grpc = pytest.importorskip("grpc")
np = pytest.importorskip("numpy")

SERVER = """
import os
import paddle.fluid as fluid
endpoint = os.environ["PADDLE_CURRENT_ENDPOINT"]
%s
weight = fluid.ParamAttr("w", fluid.initializer.Constant(0.5))
loss = fluid.layers.mean(fluid.layers.fc(x, 1, bias_attr=False,
                                         param_attr=weight))
fluid.optimizer.SGD(0.25).minimize(loss)
t = fluid.DistributeTranspiler()
t.transpile(0, pservers=endpoint, trainers=1)
program = t.get_pserver_program(endpoint)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(t.get_startup_program(endpoint, program))
exe.run(program)
"""
DENSE = 'x = fluid.layers.data("x", [2])'
TABLE = """
x = fluid.layers.embedding(fluid.layers.data("ids", [1], dtype="int64"),
                           [1 << 40, 4], is_sparse=True, is_distributed=True,
                           param_attr="table")
"""


def page(kind):
    """The only block of that kind in the page."""
    with open(os.path.join(ROOT, "docs", "wire.md")) as f:
        blocks = re.findall(r"^```%s\n(.*?)^```" % kind, f.read(), re.M | re.S)
    assert len(blocks) == 1
    return blocks[0]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """The page's program as a module, beside the messages it imports."""
    folder = tmp_path_factory.mktemp("wire")
    subprocess.run(["protoc", "--python_out=" + str(folder),
                    "--proto_path=" + os.path.join(ROOT, "proto"),
                    "fluid.proto"], check=True)
    path = folder / "trainer.py"
    path.write_text(page("python"))
    sys.path.insert(0, str(folder))
    try:
        spec = importlib.util.spec_from_file_location("wire_trainer", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(folder))


@contextlib.contextmanager
def serving(folder, inputs):
    with Cluster(folder, SERVER % inputs, env={"FLUID_LINGER": "0.2"}) as job:
        job.start_server(0).says("Server listening on")
        yield job


@pytest.fixture
def server(tmp_path):
    """A server that waits for one trainer."""
    with serving(tmp_path, DENSE) as job:
        yield job


@pytest.fixture
def table(tmp_path):
    """One that has a table, too."""
    with serving(tmp_path, TABLE) as job:
        yield job


def digest(job):
    """By which the job is known."""
    return job.server[0].says(r"job (\w{32}): ").group(1)


def join(job, client):
    return client.Trainer(job.endpoints[0], digest(job))


def ask(job, method, message):
    """The answer's bytes. It takes any bytes to any method."""
    with grpc.insecure_channel(job.endpoints[0],
                               [("grpc.enable_http_proxy", 0)]) as channel:
        return channel.unary_unary(method)(message, timeout=LIMIT)


def refusal(job, method, message):
    """What an answer with a status says."""
    with pytest.raises(grpc.RpcError) as error:
        ask(job, method, message)
    return error.value.code(), error.value.details()


# --- it agrees ---

def test_the_bytes_of_the_page_are_what_it_says(client):
    pb = client.pb
    rows = [re.match(r"( *[0-9a-f]{2}\b)+", line) for line in
            page("hex").splitlines()]
    message = pb.Message(control=pb.Control(kind=pb.Control.PUSH, seq=1))
    message.tensor.append(client.tensor("w", np.array([1.0, -2.0])))
    told = bytes.fromhex("".join(r.group() for r in rows))
    assert told == message.SerializeToString()
    assert pb.Message.FromString(told) == message


def push_slice(trainer, client, seq, first, value):
    """Push one element of w@GRAD, again until the server answers."""
    part = client.tensor("w@GRAD", np.array([value]))
    part.first = first
    while True:
        try:
            return trainer.ask(client.K.PUSH, [part], seq=seq)
        except grpc.RpcError:
            time.sleep(0.05)


def test_a_server_that_was_killed_takes_no_slices_of_older_sessions(tmp_path,
                                                                    client):
    program = (SERVER % DENSE).replace("trainers=1)",
                                       "trainers=1, sync_mode=False)")
    with Cluster(tmp_path, program,
                 env={"FLUID_LINGER": "0.2"}) as job:
        job.start_server(0).says("Server listening on")
        trainer = join(job, client)
        trainer.pull("w")
        push_slice(trainer, client, 1, 0, 1.0)
        job.server[0].kill()
        job.server[0].end(code=-9)
        job.start_server(0).says("going on at version")
        with pytest.raises(client.Refused, match="earlier slices are lost"):
            push_slice(trainer, client, 2, 1, 1.0)
        assert trainer.pull("w")["w"].tolist() == [[0.5], [0.5]]


def test_it_joins_pulls_pushes_and_completes(server, client):
    trainer = join(server, client)
    assert (trainer.rank, trainer.round) == (0, 0)
    assert trainer.pull("w")["w"].tolist() == [[0.5], [0.5]]
    trainer.push(w=np.array([[1.0], [-2.0]]))
    assert trainer.pull("w")["w"].tolist() == [[0.25], [1.0]]
    trainer.complete()
    server.server[0].end(0)


def test_the_program_of_the_page_runs(server, client):
    said = subprocess.run([sys.executable, client.__file__,
                           server.endpoints[0], digest(server)], text=True,
                          check=True, timeout=LIMIT,
                          capture_output=True).stdout
    steps, end = "w is [0.5 0.5]\nw is [0.25 0.25]\n", "every trainer is complete\n"
    assert said in (steps, steps + end)  # it may leave before END arrives
    server.server[0].end(0)


def test_a_repeated_push_has_no_effect(server, client):
    trainer = join(server, client)
    trainer.pull("w")
    for _ in range(3):
        trainer.ask(client.K.PUSH, [client.tensor("w@GRAD", np.ones((2, 1)))],
                    round=0, seq=1, count=1)
    trainer.ask(client.K.BARRIER, round=0)
    trainer.round = 1
    assert trainer.pull("w")["w"].tolist() == [[0.25], [0.25]]
    trainer.complete()
    server.server[0].end(0)


def test_a_gradient_may_come_in_slices(server, client):
    trainer = join(server, client)
    for seq, value in (2, 3.0), (1, 1.0):  # in whatever order
        part = client.tensor("w@GRAD", np.array([value]))
        part.first = seq - 1
        trainer.ask(client.K.PUSH, [part], round=0, seq=seq,
                    count=2 if seq == 2 else 0)
    trainer.ask(client.K.BARRIER, round=0)
    trainer.round = 1
    assert trainer.pull("w")["w"].tolist() == [[0.25], [-0.25]]
    trainer.complete()
    server.server[0].end(0)


def test_a_request_that_waits_gives_way_to_its_repeat(server, client):
    trainer = join(server, client)
    pull = trainer.channel.unary_unary("/fluid.Server/Pull",
                                       client.pb.Message.SerializeToString,
                                       client.pb.Message.FromString)
    wish = trainer.message(client.K.PULL, [client.pb.Tensor(name="w")], round=1)
    first = pull.future(wish, timeout=LIMIT)
    second = pull.future(wish, timeout=LIMIT)
    while not (first.done() or second.done()):
        time.sleep(0.01)
    parked, waits = (first, second) if first.done() else (second, first)
    assert parked.result().control.kind == client.K.PARKED
    assert parked.result().control.tag == wish.control.tag
    assert parked.result().control.text
    trainer.push(w=np.ones((2, 1)))
    values = waits.result()
    assert (values.control.kind, values.control.round) == (client.K.VALUES, 1)
    assert client.array(values.tensor[0]).tolist() == [[0.25], [0.25]]
    trainer.complete()
    server.server[0].end(0)


def test_requests_of_a_stream_are_answered_by_tag(server, client):
    trainer = join(server, client)
    requests = queue.Queue()
    answers = trainer.channel.stream_stream(
        "/fluid.Server/Stream", client.pb.Message.SerializeToString,
        client.pb.Message.FromString)(iter(requests.get, None))
    wait = trainer.message(client.K.PULL, [client.pb.Tensor(name="w")], round=1)
    for wish in (wait, wait, trainer.message(
            client.K.PULL, [client.pb.Tensor(name="w")], round=0)):
        requests.put(wish)
    first, second = next(answers).control, next(answers)
    assert (first.kind, first.tag) == (client.K.PARKED, wait.control.tag)
    assert (second.control.kind, second.control.tag) == \
        (client.K.VALUES, wish.control.tag)
    trainer.push(w=np.ones((2, 1)))
    third = next(answers)
    assert (third.control.kind, third.control.tag) == \
        (client.K.VALUES, wait.control.tag)
    assert client.array(third.tensor[0]).tolist() == [[0.25], [0.25]]
    requests.put(None)
    assert list(answers) == []
    trainer.complete()
    server.server[0].end(0)


def test_why_is_text_for_people(server, client):
    answer = client.pb.Answer.FromString(ask(server, "/fluid.Watch/Why", b""))
    assert "waits for" in answer.text


def tally(client, name, *counts):
    array = np.array(counts)
    t = client.tensor(name, array)
    t.dtype, t.data = client.pb.Tensor.INT64, array.astype("<i8").tobytes()
    return t


def test_counts_are_answered_with_the_sum(server, client):
    trainer = join(server, client)
    for counts in (1, 2), (1, 2), (5, 7):  # the last word counts
        answer = trainer.ask(client.K.TALLY, [tally(client, "auc", *counts)])
        assert answer.control.kind == client.K.VALUES
        assert answer.control.count == 1
        assert [t.name for t in answer.tensor] == ["auc"]
        assert np.frombuffer(answer.tensor[0].data, "<i8").tolist() == \
            list(counts)
    trainer.complete()
    server.server[0].end(0)


def int64s(*numbers):
    return np.array(numbers, "<i8").tobytes()


def wish(client, height, *after, name="table"):
    return client.pb.Tensor(name=name, height=height, dim=[len(after)],
                            rows=int64s(*after))


def ids(trainer, client, *wanted):
    """The ids of a table that are listed."""
    answer = trainer.ask(client.K.PULL, [wish(client, *wanted)],
                         round=trainer.round)
    return np.frombuffer(answer.tensor[0].data, "<i8").tolist()


def test_a_table_lists_its_rows(table, client):
    trainer = join(table, client)
    assert ids(trainer, client, 10) == []
    pb, some = client.pb, [3, 9, 1 << 39]
    trainer.ask(client.K.PUSH, [pb.Tensor(
        name="table@GRAD", kind=pb.Tensor.SELECTED_ROWS, height=1 << 40,
        dtype=pb.Tensor.FP32, dim=[3, 4], rows=int64s(*some),
        data=np.ones((3, 4), "<f4").tobytes())], round=0, seq=1, count=1)
    trainer.ask(client.K.BARRIER, round=0)
    trainer.round = 1
    all_of_them = ids(trainer, client, (1 << 63) - 1)
    assert sorted(all_of_them) == some
    assert ids(trainer, client, 2) == all_of_them[:2]
    assert ids(trainer, client, 2, all_of_them[1]) == all_of_them[2:]
    assert ids(trainer, client, 2, all_of_them[2]) == []
    trainer.complete()
    table.server[0].end(0)


# --- mistakes: an ERROR or a status with a sentence ---

def wrong_pushes(client):
    """Tensors of a push, and a part of what is said about each."""
    def one(name="w@GRAD", array=np.ones((2, 1)), **fields):
        t = client.tensor(name, array)
        for key, value in fields.items():
            setattr(t, key, value)
        return [t]
    yield one(array=np.ones((3, 1))), "w@GRAD"
    yield one(array=np.ones((2, 2))), "w@GRAD"
    yield one(name="fc_7.w_0@GRAD"), "fc_7.w_0@GRAD"
    yield one(name="w"), "\"w\""
    yield one(array=np.array([[1], [np.nan]])), "w@GRAD"
    yield one(first=1), "w@GRAD"
    yield one(dtype=client.pb.Tensor.INT32), "w@GRAD"
    yield [client.pb.Tensor(name="w@GRAD")], "w@GRAD"


def test_a_wrong_push_is_told_and_changes_nothing(server, client):
    for tensors, words in wrong_pushes(client):
        # what can never succeed ends a session: each has one of its own
        trainer = join(server, client)
        with pytest.raises(client.Refused, match=words):
            trainer.ask(client.K.PUSH, tensors, round=0, seq=1, count=1)
        assert trainer.pull("w")["w"].tolist() == [[0.5], [0.5]]
        trainer.ask(client.K.FAILED, code=1, text="wrong on purpose")
        trainer.over.set()


def test_an_unknown_variable_cannot_be_pulled(server, client):
    trainer = join(server, client)
    with pytest.raises(client.Refused, match="fc_7.w_0"):
        trainer.pull("fc_7.w_0")
    assert trainer.pull("w")["w"].tolist() == [[0.5], [0.5]]


def test_wrong_counts_are_told_and_end_nothing(server, client):
    trainer = join(server, client)
    float_counts = client.tensor("auc", np.ones(2))
    slice_of = tally(client, "auc", 1, 2)
    slice_of.first = 1
    two = tally(client, "auc", 1, 2)
    for tensors, words in [([], "0 tensors came"), ([two, two], "2 tensors"),
                           ([float_counts], "int64 counts"),
                           ([slice_of], "whole tensor"),
                           ([client.pb.Tensor(name="auc")], "whole tensor"),
                           ([tally(client, "auc")], "0 counts"),
                           ([tally(client, "auc", 3, -1)], "is -1")]:
        with pytest.raises(client.Refused, match=words):
            trainer.ask(client.K.TALLY, tensors)
    code, text = refusal(server, "/fluid.Server/Push",
                         trainer.message(client.K.TALLY).SerializeToString())
    assert code == grpc.StatusCode.DATA_LOSS
    assert "TALLY is not a request of /fluid.Server/Push" in text
    assert trainer.pull("w")["w"].tolist() == [[0.5], [0.5]]
    trainer.session = 1, 2
    with pytest.raises(client.Refused, match="never granted a rank"):
        trainer.ask(client.K.TALLY, [two])


def test_wrong_wishes_for_ids_are_told(table, client):
    trainer = join(table, client)
    whole = client.pb.Tensor(name="table", height=3)
    for wrong, words in [
            (wish(client, 3, name="w"), '"w" is not a table'),
            (wish(client, 3, 7, 8), "to start after a row"),
            (whole, "to start after a row")]:
        with pytest.raises(client.Refused, match=words):
            trainer.ask(client.K.PULL, [wrong], round=0)
    # of a negative number, times the bytes of a row, little may be left
    for height in -1, -(1 << 61):
        code, text = refusal(table, "/fluid.Server/Pull", trainer.message(
            client.K.PULL, [wish(client, height)]).SerializeToString())
        assert code == grpc.StatusCode.DATA_LOSS
        assert "height: %d is negative" % height in text
    assert ids(trainer, client, 3) == []


def test_another_job_is_refused_and_learns_nothing(server, client):
    trainer = join(server, client)
    trainer.job = 7 << 32, 9
    for kind in client.K.PULL, client.K.BARRIER, client.K.TALLY:
        answer = trainer.send(kind).control
        assert answer.kind == client.K.ERROR
        assert "this is another job" in answer.text
        assert digest(server)[:8] not in answer.text + answer.about
        assert (answer.job_hi, answer.job_lo) == (0, 0)
    about = trainer.send(client.K.JOIN).control.about
    assert about == "servers %s\ntrainers 1\nmode synchronous\nw [2,1]\n" \
        "learning_rate_0 [1]\n" % server.endpoints[0]


# --- rubbish ---

def control(kind):
    return b"\x0a\x02\x08" + bytes([kind])


RUBBISH = [
    (b"", "control is missing"),
    (b"\xff" * 40, "more than 10 bytes"),
    (b"GET / HTTP/1.0\r\n\r\n", ""),
    (control(99), "has no meaning"),
    (control(6) + b"\x12\x00", "name is missing"),
    (control(6) + b"\x12\xff\xff\xff\xff\x07", "claims 2147483647 bytes"),
    (control(6) + b"\x12\x09\x0a\x01w\x7a\x80\x80\x80\x80\x08",
     "claims 2147483648 bytes"),
    (control(6) + b"\x12\x0d\x0a\x01w\x10\x07\x18\x05\x22\x02\x02\x03\x7a\x00",
     "f32[2,3] has 24"),
    (control(6) + b"\x12\x00" * (1 << 20), "name is missing"),
    (b"\x0a\x80\x80\x80\x01" + b"\x9a\x01\x00" * 700000, "more than"),
    (b"\x00" * (1 << 20), "number 0"),
]
# A program with an operator that writes files: no method takes programs.
PROGRAM = b"\x0a\x12\x08\x00\x10\x00\x22\x0c\x1a\x04save\x22\x04\x0a\x01x\x10"


def test_rubbish_is_answered_with_a_sentence(server):
    for rubbish, words in RUBBISH:
        for method in ("/fluid.Server/Push", "/fluid.Coordinator/Join",
                       "/fluid.Coordinator/Tally"):
            code, text = refusal(server, method, rubbish)
            if code == grpc.StatusCode.UNAVAILABLE and len(rubbish) > 1 << 20:
                continue  # a stranger that sends so much may be hung up on
            assert code == grpc.StatusCode.DATA_LOSS
            assert words in text and "bytes) (from 127.0.0.1:" in text
    assert refusal(server, "/fluid.Server/Push", PROGRAM)[1]


def test_unknown_methods_are_answered(server):
    for method in "/fluid.Server/Save", "/paddle.Server/Push", "/x", "/":
        code, text = refusal(server, method, b"")
        assert code == grpc.StatusCode.UNIMPLEMENTED
        assert method in text


def memory(job):
    """Resident bytes of the server."""
    with open("/proc/%d/status" % job.server[0].pid) as f:
        return int(re.search(r"VmRSS:\s+(\d+) kB", f.read()).group(1)) << 10


def test_thousands_of_bad_requests_take_no_memory(server, client):
    def storm(channel, times):
        for i in range(times):
            message = RUBBISH[i % 8][0]
            with pytest.raises(grpc.RpcError):
                channel.unary_unary("/fluid.Server/Push")(message)
            with pytest.raises(grpc.RpcError):
                channel.unary_unary("/fluid.Nobody/%d" % i)(message)
    with grpc.insecure_channel(server.endpoints[0]) as channel:
        storm(channel, 500)
        before = memory(server)
        storm(channel, 1500)
    assert memory(server) - before < 2 << 20
    trainer = join(server, client)
    assert trainer.pull("w")["w"].tolist() == [[0.5], [0.5]]
    trainer.complete()
    server.server[0].end(0)


# --- below gRPC ---

def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + \
        struct.pack(">I", stream) + payload


def header(name, value):
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


def call(path, body):
    """The bytes of a call by HTTP/2, as far as the body goes."""
    head = b"".join(header(*h) for h in (
        (b":method", b"POST"), (b":scheme", b"http"), (b":path", path),
        (b":authority", b"x"), (b"te", b"trailers"),
        (b"content-type", b"application/grpc")))
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") + \
        frame(1, 4, 1, head) + frame(0, 0, 1, body)


def test_a_claim_of_two_gigabytes_takes_no_memory(server, client):
    host, port = server.endpoints[0].split(":")
    claim = struct.pack(">BI", 0, 0x7fffffff) + b"\x0a\x02\x08\x06"
    before = None
    for i in range(60):
        with socket.create_connection((host, int(port))) as s:
            s.sendall(call(b"/fluid.Server/Push", claim))
            assert s.recv(64)  # it was heard
        before = memory(server) if i == 20 else before
    assert memory(server) - before < 2 << 20
    assert join(server, client).pull("w")


def test_other_protocols_do_no_harm(server, client):
    host, port = server.endpoints[0].split(":")
    for text in b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01" * 50, b"\x00" * 5000:
        with socket.create_connection((host, int(port))) as s:
            s.sendall(text)
    assert join(server, client).pull("w")
