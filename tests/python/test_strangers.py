# SPDX-License-Identifier: Apache-2.0
"""Peers without the job's digest cost a server little, and stop nobody.

They speak HTTP/2 byte by byte: a client of gRPC would be too polite.
"""
import re
import select
import socket
import struct
import time

import pytest

import fault_job
from cluster import LIMIT, Cluster

SCRIPT = fault_job.__file__
MIB = 1 << 20
DATA, HEADERS, RESET, SETTINGS, PING, WINDOW = 0, 1, 3, 4, 6, 8
ACK, END_STREAM, END_HEADERS = 1, 1, 4


def frame(kind, flags, stream, body=b""):
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) \
        + struct.pack(">I", stream) + body


def grpc_message(body):
    return b"\0" + struct.pack(">I", len(body)) + body


class Stranger:
    """A connection that keeps to HTTP/2 and to nothing else. With unread=True
    it lets the server send no byte of an answer."""

    def __init__(self, endpoint, unread=False):
        host, _, port = endpoint.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), LIMIT)
        self.buffer, self.next, self.open = b"", 1, {}
        self.window, self.each, self.ended = 65535, 65535, False
        own = struct.pack(">HI", 4, 0) if unread else b""
        self.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                  + frame(SETTINGS, 0, 0, own))
        self.hear(0.2)

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            self.ended = True

    def hear(self, seconds=0.0):
        """Take what the server has said, at most so long until its next word."""
        while not self.ended and select.select([self.socket], [], [],
                                               seconds)[0]:
            try:
                data = self.socket.recv(1 << 16)
            except OSError:
                data = b""
            self.ended = not data
            self.buffer += data
            while len(self.buffer) >= 9:
                n = 9 + int.from_bytes(self.buffer[:3], "big")
                if len(self.buffer) < n:
                    break
                one, self.buffer = self.buffer[:n], self.buffer[n:]
                self.obey(one[3], one[4], int.from_bytes(one[5:9], "big"),
                          one[9:])
            seconds = 0.0

    def obey(self, kind, flags, stream, body):
        if kind == SETTINGS and not flags & ACK:
            for i in range(0, len(body), 6):
                key, value = struct.unpack(">HI", body[i:i + 6])
                if key == 4:
                    self.open = {s: w + value - self.each
                                 for s, w in self.open.items()}
                    self.each = value
            self.send(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self.send(frame(PING, ACK, 0, body))
        elif kind == WINDOW and not stream:
            self.window += struct.unpack(">I", body)[0]
        elif kind == WINDOW and stream in self.open:
            self.open[stream] += struct.unpack(">I", body)[0]
        elif kind == RESET or kind == HEADERS and flags & END_STREAM:
            self.open.pop(stream, None)

    def call(self, method):
        """Begin a call; its number."""
        stream, self.next = self.next, self.next + 2
        self.open[stream] = self.each
        head = b"".join(
            b"\0" + bytes([len(k)]) + k + bytes([len(v)]) + v for k, v in [
                (b":method", b"POST"), (b":scheme", b"http"),
                (b":path", method.encode()), (b":authority", b"x"),
                (b"te", b"trailers"), (b"content-type", b"application/grpc")])
        self.send(frame(HEADERS, END_HEADERS, stream, head))
        return stream

    def put(self, stream, body):
        """As much of it as the server takes now; how much."""
        n = min(len(body), self.window, self.open.get(stream, 0), 16384)
        if n > 0:
            self.send(frame(DATA, 0, stream, body[:n]))
            self.window -= n
            self.open[stream] -= n
        return max(n, 0)

    def flood(self, streams, block, most, seconds):
        """The same bytes again and again, until so many were sent, nobody takes
        more, or the time is over."""
        sent, limit = 0, time.monotonic() + seconds
        rest = {s: block for s in streams}
        while sent < most and not self.ended and time.monotonic() < limit:
            moved = 0
            for s in [s for s in rest if s in self.open]:
                n = self.put(s, rest[s])
                rest[s] = rest[s][n:] or block
                moved += n
            sent += moved
            self.hear(0 if moved else 0.05)
            if not any(s in self.open for s in streams):
                break
        return sent


def memory(process):
    with open("/proc/%d/status" % process.pid) as f:
        return int(re.search(r"^VmHWM:\s+(\d+) kB", f.read(), re.M)[1]) * 1024


@pytest.fixture
def job(tmp_path):
    """A job that trains until there is a file."""
    gate = tmp_path / "gate"
    with Cluster(tmp_path, SCRIPT, 1, 1, env={"FLUID_LINGER": "0.1"},
                 argv=["steps=40", "hold=20:%s" % gate]) as c:
        c.start()
        c.trainer[0].says("step 19 ")
        c.gate = gate
        yield c


def goes_on(job):
    """The trainer gets on while the stranger is there, and all end well."""
    job.gate.touch()
    job.finish()
    assert "step 39 " in job.trainer[0].text()


def test_half_a_message_costs_little(job):
    before = memory(job.server[0])
    stranger = Stranger(job.endpoints[0])
    calls = [stranger.call("/fluid.Server/Push") for _ in range(8)]
    for call in calls:
        stranger.put(call, b"\0" + struct.pack(">I", (1 << 31) - 100))
    stranger.flood(calls, b"\0" * 16384, 400 * MIB, LIMIT)
    assert stranger.ended
    assert memory(job.server[0]) - before < 200 * MIB
    job.server[0].says("closed the connection of ")
    goes_on(job)


def test_silent_calls_take_no_places(job):
    strangers = [Stranger(job.endpoints[0]) for _ in range(8)]
    for s in strangers:
        for _ in range(100):
            s.call("/fluid.Server/Push")
    for s in strangers:
        limit = time.monotonic() + LIMIT
        while len(s.open) > 4 and time.monotonic() < limit:
            s.hear(0.1)
        assert len(s.open) <= 4  # the others were refused
    goes_on(job)


def test_words_of_another_job_end_a_call(job):
    stranger = Stranger(job.endpoints[0])
    call = stranger.call("/fluid.Coordinator/Session")
    renew = grpc_message(bytes([0x0a, 2, 0x08, 2]))
    assert stranger.flood([call], renew * 1000, 100 * MIB, LIMIT) < 8 * MIB
    assert call not in stranger.open or stranger.ended
    goes_on(job)


def test_answers_that_nobody_reads_cost_little(job):
    """The digest is right, the session unknown: each word has an answer."""
    digest = bytes.fromhex(job.server[0].says("job ([0-9a-f]{32})")[1])
    control = bytes([0x08, 2, 0x11]) + digest[7::-1] + b"\x19" \
        + digest[:7:-1]
    word = grpc_message(bytes([0x0a, len(control)]) + control)
    before = memory(job.server[0])
    stranger = Stranger(job.endpoints[0], unread=True)
    call = stranger.call("/fluid.Coordinator/Session")
    sent = stranger.flood([call], word * 400, 64 * MIB, 3)
    assert sent < 16 * MIB  # the server has stopped to read
    assert memory(job.server[0]) - before < 50 * MIB
    goes_on(job)
