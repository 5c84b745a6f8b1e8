# SPDX-License-Identifier: Apache-2.0
"""Waiting for servers: with real sockets, as trainers do."""
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from cluster import LIMIT
import paddle.fluid as fluid
from fresh import fresh
from paddle.fluid import _fluid


@pytest.fixture
def port():
    """A bound socket that does not listen, and its endpoint."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        yield s, "127.0.0.1:%d" % s.getsockname()[1]


SERVES = (b"\0\0\0\x04\0\0\0\0\0"  # SETTINGS
          b"\0\0\x07\0\0\0\0\0\x01" b"\0\0\0\0\x02\x08\x01")  # DATA: serving


def serve(listener, says=SERVES):
    """From now on whoever connects is answered as a parameter server does."""
    def answer():
        kept = []
        while True:
            try:
                kept.append(listener.accept()[0])
                kept[-1].sendall(says)
            except OSError:  # the test is over
                return

    listener.listen()
    threading.Thread(target=answer, daemon=True).start()


def test_servers_that_are_up_are_not_waited_for(port, capfd):
    serve(port[0])
    assert _fluid.wait_ports([port[1]]) is None
    fluid.transpiler.details.wait_server_ready([port[1]])
    assert capfd.readouterr() == ("", "")


def test_the_limit_is_a_sentence(port):
    with pytest.raises(fluid.core.EnforceNotMet, match=re.escape(
            "0 of 1 servers up, waiting for %s (refused), given up after 0 s"
            % port[1])):
        _fluid.wait_ports([port[1]], limit=0.1)


def test_another_program_is_no_server(port):
    serve(port[0], b"SSH-2.0-OpenSSH_9.2\r\n")
    for limit in (1, 10, 100):  # seconds: the other program may be slow
        with pytest.raises(fluid.core.EnforceNotMet) as e:
            _fluid.wait_ports([port[1]], limit=limit)
        if "(something else than a parameter server listens" in str(e.value):
            return
    pytest.fail(str(e.value))


def test_other_threads_run_meanwhile(port):
    timer = threading.Timer(0.05, serve, [port[0]])
    timer.start()
    _fluid.wait_ports([port[1]], LIMIT)
    timer.join()


def test_a_trainer_waits_once(port):
    with fresh() as net:
        x = fluid.layers.data("x", [4])
        loss = fluid.layers.mean(fluid.layers.fc(x, 1))
        fluid.optimizer.SGD(0.1).minimize(loss)
        t = fluid.DistributeTranspiler()
        t.transpile(0, pservers=port[1], trainers=1)
        serve(port[0])
        assert t.get_trainer_program() is net.main
        port[0].close()  # a server that has ended is not waited for
        began = time.monotonic()
        assert t.get_trainer_program() is net.main
        assert time.monotonic() - began < 60  # else for ten minutes


WAITS = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from paddle.fluid import _fluid
print("waits", flush=True)
_fluid.wait_ports([sys.argv[1]])
"""


def test_ctrl_c_ends_a_wait(port):
    p = subprocess.Popen([sys.executable, "-c", WAITS, port[1]], text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         env=dict(os.environ, PYTHONPATH=os.pathsep.join(
                             sys.path)))
    try:
        assert p.stdout.readline() == "waits\n"
        assert re.search(r"0 of 1 servers up, waiting for %s \(refused\), \d+ s of 600"
                         % port[1], p.stderr.readline())
        p.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in p.communicate(timeout=LIMIT)[1]
        assert p.returncode == -signal.SIGINT
    finally:
        p.kill()
        p.communicate()
