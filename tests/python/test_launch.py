# SPDX-License-Identifier: Apache-2.0
"""The launcher: real processes, their ends, and nothing left behind."""
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

from cluster import LIMIT

MARK = "LAUNCH_TEST_MARK"


def start(tmp_path, flags, command, **env):
    """The launcher of `sh -c command`, with Ctrl-C as a terminal has it."""
    env = dict(os.environ, **env)
    env[MARK] = str(tmp_path)
    return subprocess.Popen(
        ["paddle", "launch"] + flags.split() + ["sh", "-c", command],
        cwd=tmp_path, env=env, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def run(tmp_path, flags, command, **env):
    p = start(tmp_path, flags, command, **env)
    out, err = p.communicate(timeout=LIMIT)
    until(lambda: not living(tmp_path))
    return p.returncode, out, err


def living(tmp_path):
    """Processes that carry the mark of this test."""
    mark = ("%s=%s" % (MARK, tmp_path)).encode()
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % pid, "rb") as f:
                if mark not in f.read().split(b"\0"):
                    continue
            with open("/proc/%s/stat" % pid) as f:
                if f.read().rsplit(")", 1)[1].split()[0] != "Z":
                    found.append(int(pid))
        except OSError:
            pass
    return found


def until(what):
    end = time.monotonic() + LIMIT
    while not what():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


def resume(launcher, ended):
    """Let a launcher that was stopped go on, once so many of the processes that
    it has started have ended. It then sees all of these ends at once."""
    def zombies():
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/stat" % pid) as f:
                    state, parent = f.read().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if state == "Z" and int(parent) == launcher.pid:
                found.append(pid)
        return found

    until(lambda: len(zombies()) == ended)
    launcher.send_signal(signal.SIGCONT)


def end(launcher):
    """Exit code and stderr of a launcher that was started."""
    _, err = launcher.communicate(timeout=LIMIT)
    return launcher.returncode, err


def log(tmp_path, name):
    path = tmp_path / "logs" / name
    return path.read_text() if path.exists() else ""


def test_every_dialect_says_the_same(tmp_path):
    code, _, err = run(
        tmp_path, "--server_num 2 --worker_num 3", "paddle env",
        PADDLE_TRAINERS_NUM="77", PADDLE_PSERVER_PORT="1",
        PADDLE_INIT_TRAINER_ID="9", PADDLE_INIT_PSERVERS="nowhere")
    assert code == 0
    assert "trainer_id   0  (PADDLE_TRAINER_ID)" in err
    assert "trainer_id   2 " in log(tmp_path, "workerlog.2")
    server = log(tmp_path, "serverlog.1")
    assert "role         PSERVER" in server and "trainers     3 " in server
    first, second = [line.split()[0 if line.startswith(" ") else 1]
                     for line in server.splitlines()
                     if "127.0.0.1:" in line and "endpoint" not in line]
    assert "endpoint     %s " % second in server and first != second


def test_processes_know_that_they_were_launched(tmp_path):
    code, _, _ = run(tmp_path, "--server_num 1 --worker_num 1",
                     'test "$FLUID_LAUNCHED" = 1', FLUID_LAUNCHED="0")
    assert code == 0


def test_the_first_failure_is_the_verdict(tmp_path):
    code, _, err = run(
        tmp_path, "--server_num 1 --worker_num 2",
        'echo "I am $TRAINING_ROLE $PADDLE_TRAINER_ID"; '
        '[ "$PADDLE_TRAINER_ID" != 1 ] || exit 7')
    assert code == 7
    assert "trainer 1 failed first: exit code 7" in err
    assert "    I am TRAINER 1" in err and "logs/workerlog.1" in err
    assert "2 ended well" in err


def test_a_signal_is_named(tmp_path):
    code, _, err = run(tmp_path, "--server_num 1 --worker_num 1",
                       '[ "$TRAINING_ROLE" = PSERVER ] || kill -9 $$')
    assert code == 128 + 9
    assert "trainer 0 failed first: signal 9 (Killed)" in err


def test_a_large_exit_code_is_no_signal(tmp_path):
    code, _, err = run(tmp_path, "--server_num 1 --worker_num 1",
                       '[ "$TRAINING_ROLE" = PSERVER ] || exit 200')
    assert code == 200
    assert "trainer 0 failed first: exit code 200" in err
    assert "its log logs/workerlog.0 is empty" in err


# Wait until so many servers, which note their numbers, have ended. A process
# that has ended keeps its number until the launcher knows of it.
SERVERS_ENDED = (
    'until [ $(ls | grep -c started) = %d ]; do sleep 0.05; done; '
    'for pid in $(ls | sed -n s/.started//p); do '
    'while kill -0 $pid 2>/dev/null; do sleep 0.05; done; done; ')


def test_the_verdict_fits_on_a_screen(tmp_path):
    code, _, err = run(
        tmp_path, "--server_num 2 --worker_num 16",
        '[ "$TRAINING_ROLE" = PSERVER ] && { touch $$.started; exit; }; '
        + SERVERS_ENDED % 2 + 'printf "a bar\\r%9999d\\n" $(seq 30); exit 3')
    verdict = err[err.index("failed first"):].splitlines()
    assert code == 3 and len(verdict) <= 35
    assert max(map(len, verdict)) < 560
    assert "  7 more did not end well" in verdict
    assert "  2 ended well" in verdict


def test_a_server_that_fails_stops_all(tmp_path):
    code, _, err = run(tmp_path, "--server_num 1 --worker_num 2",
                       '[ "$TRAINING_ROLE" = TRAINER ] && exec sleep 600; '
                       'exit 5')
    assert code == 5
    assert "server 0 has failed; all other processes are stopped" in err
    assert re.search("trainer 1: stopped, signal (15|9)", err)


def test_servers_do_not_wait_for_trainers_that_failed(tmp_path):
    code, _, err = run(tmp_path, "--server_num 1 --worker_num 1",
                       '[ "$TRAINING_ROLE" = TRAINER ] && exit 3; '
                       'exec sleep 600')
    assert code == 3
    assert "servers that still run (1) are stopped" in err
    assert "trainer 0 failed first" in err


def test_flags_behind_the_script_are_its_own(tmp_path):
    code, _, err = run(tmp_path, "--server_num=1 --worker-num=1 --quiet",
                       "true --server_num 9")
    assert code == 0 and "1 trainer and 1 server finished" in err


def test_trainers_that_leave_well_end_the_job_well(tmp_path):
    p = start(tmp_path, "--server_num 1 --worker_num 2",
              '[ "$TRAINING_ROLE" = PSERVER ] && exec sleep 600; '
              'trap "echo saved; exit 0" INT; echo up; '
              'while :; do sleep 0.05; done')
    until(lambda: "up" in log(tmp_path, "workerlog.0")
          and "up" in log(tmp_path, "workerlog.1"))
    p.send_signal(signal.SIGINT)
    code, err = end(p)
    assert code == 0
    assert "2 trainers and 1 server were stopped" in err


def test_what_fails_after_ctrl_c_is_named(tmp_path):
    p = start(tmp_path, "--server_num 1 --worker_num 2",
              '[ "$TRAINING_ROLE" = PSERVER ] && exit; '
              '[ "$TRAINER_ID" = 0 ] || exec sleep 600; '
              'trap "echo no disk; exit 6" INT; echo up; '
              'while :; do sleep 0.05; done')
    until(lambda: "up" in log(tmp_path, "workerlog.0"))
    p.send_signal(signal.SIGINT)
    code, err = end(p)
    assert code == 6
    assert "trainer 0 failed first: exit code 6" in err and "    no disk" in err


def test_ctrl_c_while_python_starts_is_no_failure(tmp_path):
    """Its exit code is 1 then."""
    p = start(tmp_path, "--server_num 1 --worker_num 1",
              '[ "$TRAINING_ROLE" = PSERVER ] && exit; trap "echo Fatal Python '
              'error; echo KeyboardInterrupt; exit 1" INT; echo up; '
              'while :; do sleep 0.05; done')
    until(lambda: "up" in log(tmp_path, "workerlog.0"))
    p.send_signal(signal.SIGINT)
    code, err = end(p)
    assert code == 130
    assert "failed first" not in err and "were stopped" in err


@pytest.mark.parametrize("asks", [1, 2])
def test_ctrl_c_reaches_trainers_first(tmp_path, asks):
    p = start(tmp_path, "--server_num 1 --worker_num 1",
              'if [ "$TRAINING_ROLE" = PSERVER ]; then echo up; '
              'exec sleep 600; fi; trap "echo asked" INT; echo up; '
              'while :; do sleep 0.05; done')
    until(lambda: "up" in log(tmp_path, "workerlog.0")
          and "up" in log(tmp_path, "serverlog.0"))
    p.send_signal(signal.SIGINT)
    until(lambda: "asked" in log(tmp_path, "workerlog.0"))
    p.send_signal(signal.SIGINT if asks == 2 else signal.SIGTERM)
    _, err = p.communicate(timeout=LIMIT)
    assert p.returncode in (130, 143)
    assert "trainers are asked to finish their step and leave" in err
    until(lambda: not living(tmp_path))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_that_end_a_process_end_the_job(tmp_path, number):
    p = start(tmp_path, "--server_num 1 --worker_num 1", "echo up; sleep 600")
    until(lambda: "up" in log(tmp_path, "workerlog.0"))
    p.send_signal(number)
    _, err = p.communicate(timeout=LIMIT)
    assert p.returncode == 128 + number
    assert "1 trainer and 1 server were stopped" in err
    until(lambda: not living(tmp_path))


def test_a_killed_launcher_leaves_nothing(tmp_path):
    p = start(tmp_path, "--server_num 1 --worker_num 1",
              "setsid sleep 600 & sleep 600 & echo up; wait")
    until(lambda: "up" in log(tmp_path, "workerlog.0"))
    p.kill()
    p.wait()
    until(lambda: not living(tmp_path))


@pytest.mark.parametrize("child", ["sleep 600", "setsid sleep 600"])
def test_children_of_children_end(tmp_path, child):
    run(tmp_path, "--server_num 1 --worker_num 1", child + " & true")


def test_children_end_before_an_agent_starts_their_process_again(tmp_path):
    """As on the launcher's own host."""
    agent = subprocess.Popen(["paddle", "agent"], cwd=tmp_path,
                             env=dict(os.environ, **{MARK: str(tmp_path)}),
                             stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)

    def start_one():
        for kind, body in [
                ("workspace", str(tmp_path)),
                ("env", "PATH=" + os.environ["PATH"]), ("arg", "sh"),
                ("arg", "-c"),
                ("arg", "sleep 600 & echo $$ $! >>pids; wait"),
                ("start", "trainer 0")]:
            agent.stdin.write(b"%s 0 %d\n%s\n" % (
                kind.encode(), len(body), body.encode()))
        agent.stdin.flush()

    def pids():
        try:
            return [line.split() for line in open(tmp_path / "pids")]
        except FileNotFoundError:
            return []

    def is_running(pid):
        try:
            with open("/proc/%s/stat" % pid) as f:
                return f.read().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    start_one()
    until(lambda: len(pids()) == 1)
    leader, child = pids()[0]
    os.kill(int(leader), signal.SIGKILL)
    until(lambda: not is_running(leader))
    time.sleep(0.3)  # the agent notices
    assert is_running(child)
    start_one()
    until(lambda: len(pids()) == 2)
    assert not is_running(child)
    agent.stdin.close()
    agent.wait()
    until(lambda: not living(tmp_path))


def test_an_agent_counts_the_restarts_of_each_process(tmp_path):
    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\nexec paddle agent\n")
    ssh.chmod(0o755)
    code, _, err = run(
        tmp_path, "--hosts 127.0.0.1 --server_num 1 --worker_num 2 "
        "--max_restarts 1 --ssh %s" % ssh,
        'until [ "$TRAINING_ROLE" = TRAINER ] || [ -e end0 -a -e end1 ]; do '
        'sleep 0.1; done; [ "$TRAINING_ROLE" = TRAINER ] || exit 0; '
        '[ "$FLUID_RESTARTS" ] || exit 1; touch end$PADDLE_TRAINER_ID')
    assert code == 0, err
    for i in range(2):
        assert "[trainer %d] launch: restart 1\n" % i in err
    assert "launch: restart 2" not in err


def test_a_server_may_be_killed_while_a_trainer_is_started_again(tmp_path):
    """A child of the trainer stays a zombie, which takes the launcher 5 s."""
    (tmp_path / "job.py").write_text(
        "import os, sys, time\n"
        "if os.environ['TRAINING_ROLE'] == 'PSERVER':\n"
        "    if not os.path.exists('server'):\n"
        "        open('server', 'w').write(str(os.getpid()))\n"
        "        time.sleep(600)\n"
        "elif not os.path.exists('trainer'):\n"
        "    open('trainer', 'w')\n"
        "    group = os.getpgrp()\n"
        "    r, w = os.pipe()\n"
        "    if not os.fork():\n"
        "        os.setpgid(0, 0)\n"
        "        if not os.fork():\n"
        "            os.setpgid(0, group)\n"
        "            os.write(w, b'x')\n"
        "            os._exit(0)\n"
        "        time.sleep(600)\n"
        "    os.read(r, 1)\n"
        "    os.kill(os.getpid(), 9)\n")
    p = start(tmp_path, "--server_num 1 --worker_num 1 --durability process",
              "exec python3 job.py")
    server = tmp_path / "server"
    until(lambda: server.exists() and server.read_text())
    for line in p.stderr:
        if "it is started again in 1 s" in line:
            break
    time.sleep(2)
    os.kill(int(server.read_text()), signal.SIGKILL)
    _, err = p.communicate(timeout=LIMIT)
    assert p.returncode == 0 and "launch: server 0 ended after" in err
    until(lambda: not living(tmp_path))


def test_nobody_has_to_listen(tmp_path):
    p = subprocess.run(
        ["sh", "-c", "paddle launch --worker_num 1 sh -c 'echo up; "
         "[ $TRAINING_ROLE = PSERVER ] || exit 3' <&- >&- 2>&-"],
        cwd=tmp_path, timeout=LIMIT)
    assert p.returncode == 3 and log(tmp_path, "workerlog.0") == "up\n"


def test_ends_are_heard_where_they_are_ignored(tmp_path):
    p = subprocess.run(
        ["sh", "-c", "trap '' CHLD; paddle launch sh -c 'exit 3'"],
        cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT)
    assert p.returncode == 3


def test_hosts_share_the_endpoints(tmp_path):
    # An address that no other test has: this process has the number.
    here = "127.%d.%d.%d" % (os.getpid() >> 16 & 255 | 128,
                             os.getpid() >> 8 & 255, os.getpid() & 255)
    code, _, _ = run(
        tmp_path, "--worker_num 2 --cluster_node_ips 127.0.0.1,%s "
        "--endpoints 127.0.0.1:5983,%s:5983 --node_ip %s" % (here, here, here),
        "paddle env")
    assert code == 0
    assert "endpoint     %s:5983 " % here in log(tmp_path, "serverlog.1")
    assert "trainer_id   3 " in log(tmp_path, "workerlog.3")
    assert sorted(os.listdir(tmp_path / "logs")) == [
        "serverlog.1", "workerlog.2", "workerlog.3"]


def test_two_jobs_share_a_host(tmp_path):
    first = start(tmp_path, "--server_num 1 --worker_num 1",
                  'echo "$CURRENT_ENDPOINT"; read -r x <go || sleep 600')
    os.mkfifo(tmp_path / "go")
    until(lambda: log(tmp_path, "serverlog.0").strip())
    other = tmp_path / "other"
    other.mkdir()
    run(other, "--server_num 1 --worker_num 1", 'echo "$CURRENT_ENDPOINT"')
    assert (log(other, "serverlog.0").strip()
            != log(tmp_path, "serverlog.0").strip())
    first.terminate()
    first.communicate(timeout=LIMIT)


def test_a_taken_port_is_named(tmp_path):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        code, _, err = run(tmp_path, "--start_port %d" % port, "true")
    assert code == 1
    assert re.search(r"launch: port %d on 127.0.0.1 is taken by process %d "
                     r"\(.*python.*\); choose others with --start_port"
                     % (port, os.getpid()), err)
    assert "launch: port %d on 127.0.0.1 is taken; waiting up to" % port in err


def test_ctrl_c_ends_the_wait_for_a_port(tmp_path):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        p = start(tmp_path, "--worker_num 1 --endpoints 127.0.0.1:%d" % port,
                  "true")
        assert "waiting up to 3 s" in p.stderr.readline()
        p.send_signal(signal.SIGINT)
        code, err = end(p)
    assert code == 1 and err == (
        "paddle: launch: interrupted while it waited for port %d on 127.0.0.1; "
        "nothing was started\n" % port)


@pytest.mark.parametrize("flags, sentence", [
    ("--server_num 0", "0 servers and 2 trainers"),
    ("--endpoints nowhere", 'server "nowhere" has no port, expected host:port'),
    ("--endpoints 127.0.0.1:1x", 'server "127.0.0.1:1x" has the port "1x"'),
    ("--endpoints ,", 'names no endpoint'),
    ("--endpoints 127.0.0.1:5984,127.0.0.1:5984", "is named twice"),
    ("--endpoints 192.0.2.1:6170", "192.0.2.1 is not this host"),
    ("--node_ip no.such.host.invalid", "there is no host"),
    ("--log_dir /dev/null", "/dev/null: exists, but is not a directory"),
    ("--log_dir /proc/1", "log /proc/1/serverlog.0: "),
    ("--start_port 70000", "--start_port is 70000"),
    ("--cluster_node_ips 10.0.0.1,10.0.0.2",
     '--node_ip is "127.0.0.1", which is not among'),
])
def test_wrong_flags_get_a_sentence(tmp_path, flags, sentence):
    code, _, err = run(tmp_path, flags, "true")
    assert code == 1 and sentence in err


def test_a_program_that_is_not_there(tmp_path):
    p = subprocess.run(["paddle", "launch", "no-such-program"], cwd=tmp_path,
                       capture_output=True, text=True, timeout=LIMIT)
    assert p.returncode == 1
    assert "no-such-program cannot be started" in p.stderr


@pytest.mark.parametrize("command, code", [
    (["paddle", "launch"], 1),
    ([sys.executable, "-m", "paddle.distributed.launch_ps"], 2)])
def test_a_script_that_is_not_there(tmp_path, command, code):
    p = subprocess.run(command + ["no such.py"], cwd=tmp_path,
                       capture_output=True, text=True, timeout=LIMIT)
    assert p.returncode == code and "no such.py" in p.stderr
    assert "Traceback" not in p.stderr and not os.listdir(tmp_path)


def test_a_script_is_run_by_the_chosen_python(tmp_path):
    (tmp_path / "script.py").write_text("import sys; print(sys.executable)")
    python = tmp_path / "my-python"
    python.symlink_to(sys.executable)
    subprocess.run(["paddle", "launch", "script.py"], cwd=tmp_path, check=True,
                   env=dict(os.environ, PADDLE_PYTHON=str(python)),
                   capture_output=True, timeout=LIMIT)
    assert log(tmp_path, "workerlog.0") == "%s\n" % python


def launch_ps(tmp_path, *words):
    return subprocess.run(
        [sys.executable, "-m", "paddle.distributed.launch_ps", *words],
        cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT)


def test_the_python_module_says_a_sentence(tmp_path):
    (tmp_path / "x.py").touch()
    p = launch_ps(tmp_path, "--server_num", "0", "x.py")
    assert p.returncode == 1
    assert p.stderr == ("launch: 0 servers and 2 trainers were asked for, "
                        "expected at least one of each; see --server_num and "
                        "--worker_num\n")


def test_the_python_module_does_the_same(tmp_path):
    (tmp_path / "a script").write_text(
        "import os, sys\nprint(os.environ['TRAINING_ROLE'], sys.argv[1:])\n")
    p = launch_ps(tmp_path, "--worker_num", "1", "--server_num", "1",
                  "a script", "--worker_num", "x")
    assert p.returncode == 0
    assert "TRAINER ['--worker_num', 'x']" in p.stderr
    assert log(tmp_path, "serverlog.0").startswith("PSERVER")


def test_the_python_module_starts_a_trainer_again(tmp_path):
    (tmp_path / "x.py").write_text(
        "import os, sys, time\n"
        "if os.environ['TRAINING_ROLE'] == 'TRAINER':\n"
        "    'FLUID_RESTARTS' in os.environ or sys.exit(3)\n"
        "    open('done', 'w')\n"
        "while not os.path.exists('done'):\n"
        "    time.sleep(.01)\n")
    p = launch_ps(tmp_path, "--worker_num", "1", "--server_num", "1",
                  "--max_restarts", "1", "x.py")
    assert p.returncode == 0, p.stderr
    assert "restart 1 of at most 1" in p.stderr


def test_the_logs_of_each_job_are_kept_apart(tmp_path):
    for word in "first", "second", "third":
        run(tmp_path, "--server_num 1 --worker_num 1", "echo " + word)
    assert log(tmp_path, "workerlog.0") == "third\n"
    for i, word in (1, "first"), (2, "second"):
        for name in "workerlog.0", "serverlog.0":
            assert log(tmp_path, "run.%d/%s" % (i, name)) == word + "\n"


@pytest.mark.parametrize("host", ["fd00::1", "u@fd00::1", "[fd00::1", ":22",
                                  "u@"])
def test_a_host_that_ssh_would_misread_is_refused(tmp_path, host):
    code, _, err = run(tmp_path, "--hosts node1," + host, "true")
    assert code == 1
    assert 'launch: host "%s" is not host, user@host or user@host:port; an ' \
        "address of IPv6 is in brackets: [::1]" % host in err


def test_a_package_needs_a_folder_to_be_packed_in(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", "/none")
    code, _, err = run(tmp_path, "--hosts none.invalid "
                       "--job_dispatch_package %s" % tmp_path, "true")
    assert code == 1
    assert ("the package cannot be packed into /none: No such file or directory;"
            " name a folder that can be written with TMPDIR") in err


def test_ctrl_c_ends_the_packing_of_a_package(tmp_path):
    tar = tmp_path / "bin" / "tar"
    tar.parent.mkdir()
    tar.write_text("#!/bin/sh\necho packing >&2\nexec sleep 600\n")
    tar.chmod(0o755)
    launcher = start(tmp_path, "--hosts none.invalid --job_dispatch_package .",
                     "true", PATH="%s:%s" % (tar.parent, os.environ["PATH"]))
    assert launcher.stderr.readline() == "packing\n"
    launcher.send_signal(signal.SIGINT)
    code, err = end(launcher)
    assert code == 1
    assert "interrupted while . was packed; nothing was started" in err
    until(lambda: not living(tmp_path))


def test_a_host_that_prints_without_end_is_given_up(tmp_path):
    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\nexec yes\n")
    ssh.chmod(0o755)
    code, _, err = run(tmp_path, "--hosts node1 --ssh %s" % ssh, "true")
    assert code == 1
    assert ("host node1 cannot be used: more than 1048576 bytes came, but no "
            "agent has answered; what does a login script print there? Try it "
            "by hand: ssh node1 true") in err


def silent_host(tmp_path):
    """Flags for a host whose agent says hello and then nothing."""
    ssh = tmp_path / "ssh"
    ssh.write_text(
        "#!%s\n"
        "import subprocess, sys\n"
        "words = subprocess.run(['paddle', 'agent'], capture_output=True,\n"
        "                       stdin=subprocess.DEVNULL).stdout\n"
        "head, version = words.lstrip().split(b'\\n')[:2]\n"
        "sys.stdout.buffer.write(head + b'\\n' + version + b'\\n')\n"
        "sys.stdout.flush()\n"
        "sys.stdin.read()\n" % sys.executable)
    ssh.chmod(0o755)
    return "--hosts node1 --ssh %s" % ssh


def test_a_host_that_hangs_while_it_prepares_is_given_up(tmp_path):
    code, _, err = run(tmp_path, silent_host(tmp_path), "true", FLUID_START="1")
    assert code == 1
    assert ("host node1 cannot be used: it prepares its workspace and has said "
            "nothing for 1 s (FLUID_START sets how long to wait)") in err
    assert "1 of 1 hosts cannot be used; nothing was started" in err


def test_the_wait_for_a_host_that_prepares_names_its_limit(tmp_path):
    launcher = start(tmp_path, silent_host(tmp_path), "true", FLUID_START="900")
    line = launcher.stderr.readline()
    while "waiting for" not in line:
        line = launcher.stderr.readline()
    launcher.send_signal(signal.SIGINT)
    code, err = end(launcher)
    assert code == 1
    assert "interrupted while hosts were prepared; nothing was started" in err
    assert re.search(r"waiting for node1 \(it (has not answered, silent for \d+ "
                     r"s of 30|prepares its workspace, silent for \d+ s of 900)"
                     r"\), \d+ s", line), line


@pytest.mark.parametrize("limit, shown, end_of_it", [
    ("60.5", "60.5", "is back"), ("1e12", "1.07374e+09", "is back"),
    ("1e-9", "1e-09", "has not come back")])
def test_the_limit_of_a_lost_host_is_a_number_of_any_size(tmp_path, limit,
                                                          shown, end_of_it):
    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\necho $$ >agent\nexec paddle agent\n")
    ssh.chmod(0o755)
    launcher = start(
        tmp_path, "--hosts 127.0.0.1 --server_num 1 --worker_num 1 --ssh %s"
        % ssh, "echo up; exec sleep 600", FLUID_REJOIN=limit)
    for _ in range(2):
        while not launcher.stderr.readline().endswith("] up\n"):
            pass
    os.kill(int((tmp_path / "agent").read_text()), signal.SIGKILL)
    line = launcher.stderr.readline()
    while "is lost" not in line:
        line = launcher.stderr.readline()
    assert line.endswith("; the launcher tries to reach it for %s s\n" % shown)
    while "launch: host 127.0.0.1 " not in (line := launcher.stderr.readline()):
        pass
    assert end_of_it in line
    launcher.send_signal(signal.SIGTERM)
    end(launcher)
    until(lambda: not living(tmp_path))


def test_a_folder_that_cannot_be_written_names_the_flag(tmp_path):
    code, _, err = run(tmp_path, "--log_dir /proc/logs", "true")
    assert code == 1
    assert err.endswith("(choose another folder with --log_dir)\n")


def test_a_dry_run_shows_the_variables_and_starts_nothing(tmp_path):
    code, _, err = run(tmp_path, "--dry_run --server_num 1 --worker_num 2",
                       "touch started")
    assert code == 0 and not os.listdir(tmp_path)
    assert "each process would run\n    sh -c 'touch started'\n" in err
    server, *trainers = re.split(r"^(?:server|trainer) \d, log ", err,
                                 flags=re.M)[1:]
    for line in ("PADDLE_TRAINING_ROLE=PSERVER", "FLUID_REJOIN=60",
                 "FLUID_REJOIN_FAILED=0", "FLUID_DURABILITY=auto"):
        assert "    %s\n" % line in server
    assert [re.search(r"PADDLE_TRAINER_ID=(\d)", t)[1] for t in trainers] \
        == ["0", "1"]


RECYCLED = """
import os, re, subprocess, sys
os.mkfifo("go")
job = subprocess.Popen(
    ["paddle", "launch", "--server_num", "1", "--worker_num", "1", "sh", "-c",
     '[ "$TRAINING_ROLE" = TRAINER ] || read -r x <go'],
    text=True, stderr=subprocess.PIPE)
for line in job.stderr:
    trainer = re.search(r"trainer 0 is process (\\d+)", line)
    if trainer:
        break
pid = int(trainer[1])
while os.path.exists("/proc/%d" % pid):
    os.sched_yield()
with open("/proc/sys/kernel/ns_last_pid", "w") as f:
    f.write(str(pid - 1))
other = subprocess.Popen(["sleep", "600"], start_new_session=True)
assert other.pid == pid, "%d is not %d" % (other.pid, pid)
with open("go", "w") as f:
    f.write("on\\n")
job.communicate()
print(job.returncode, other.poll())
other.kill()
"""


def test_a_number_that_another_program_has_by_now_is_left_alone(tmp_path):
    """The guard forgets the process group of a trainer that has ended."""
    apart = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run(apart + ["true"], capture_output=True).returncode:
        pytest.skip("no process namespace can be made here (not root?)")
    done = subprocess.run(apart + [sys.executable, "-c", RECYCLED],
                          cwd=tmp_path, text=True, capture_output=True,
                          timeout=LIMIT)
    assert done.stdout == "0 None\n", done.stderr


# --- collective jobs ---------------------------------------------------------

RANKS = "--mode collective --worker_num 3 "


def test_ranks_are_told_of_each_other_and_get_one_key(tmp_path):
    code, _, err = run(
        tmp_path, RANKS, "paddle env; cat <&$FLUID_JOB_KEY_FD",
        PADDLE_PSERVER_ENDPOINTS="nowhere:1", FLUID_JOB_KEY_FD="9")
    assert code == 0 and "launch: 3 ranks finished" in err
    said = [log(tmp_path, "workerlog.%d" % i) for i in range(3)]
    for i, text in enumerate(said):
        assert "mode         collective" in text
        assert "trainer_id   %d " % i in text and "trainers     3 " in text
    keys = {text.splitlines()[-1] for text in said}
    assert len(keys) == 1 and re.fullmatch("[0-9a-f]{64}", keys.pop())


def test_a_key_file_of_the_user_stays(tmp_path):
    code, _, _ = run(tmp_path, RANKS, 'test -z "$FLUID_JOB_KEY_FD" && '
                     'test "$FLUID_JOB_KEY_FILE" = /x',
                     FLUID_JOB_KEY_FILE="/x")
    assert code == 0


def test_the_rank_that_failed_is_named_and_not_those_that_noticed(tmp_path):
    """Those that notice end with 1, as Python does, and may end before."""
    p = start(tmp_path, RANKS,
              "i=$PADDLE_TRAINER_ID; "
              "test $i = 2 && kill -STOP $PPID && touch stopped; "
              "until test -e stopped; do sleep 0.01; done; "
              "test $i = 1 || exit 1; echo broken; exit 7")
    resume(p, 3)
    code, err = end(p)
    assert code == 7 and "launch: rank 1 failed first: exit code 7" in err
    assert "    broken" in err and "rank 0: exit code 1" in err


def test_ranks_that_do_not_notice_are_stopped(tmp_path):
    code, _, err = run(tmp_path, RANKS,
                       'test $PADDLE_TRAINER_ID = 2 && exit 9; sleep 1000')
    assert code == 9
    assert "ranks that still run (2) are stopped" in err
    assert "rank 0: stopped" in err


def test_all_ranks_start_again_so_often(tmp_path):
    code, _, err = run(
        tmp_path, RANKS + "--max_restarts 2",
        'life=${FLUID_RESTARTS:-0}; echo "life $life"; '
        'test $PADDLE_TRAINER_ID = 1 || { touch $life.$$; exit 0; }; '
        'test $life = 2 && exit 0; '
        'until test $(ls | grep -c ^$life[.]) = 2; do sleep 0.01; done; exit 5')
    assert code == 0
    assert err.count("rank 1 failed first: exit code 5") == 2
    assert "launch: restart 1 of 2: all ranks start again; a script with a " \
        "CheckpointConfig goes on from its last checkpoint" in err
    assert "launch: 3 ranks finished" in err
    for i in range(3):
        assert log(tmp_path, "workerlog.%d" % i).splitlines() == [
            "life 0", "launch: restart 1", "life 1", "launch: restart 2",
            "life 2"]


def test_a_job_that_fails_each_time_ends_with_its_code(tmp_path):
    code, _, err = run(tmp_path, RANKS + "--max_restarts 1",
                       "sleep 1000 & exit 4")
    assert code == 4 and err.count("failed first: exit code 4") == 2


JOB = "--server_num 1 --worker_num 2 --max_restarts 2 "


def test_a_trainer_that_dies_is_started_again_alone(tmp_path):
    code, _, err = run(
        tmp_path, JOB,
        'test $TRAINING_ROLE = PSERVER && '
        '{ until test -e done; do sleep 0.05; done; exit 0; }; '
        'echo "life ${FLUID_RESTARTS:-0} rejoin $FLUID_REJOIN"; '
        'test $PADDLE_TRAINER_ID = 0 && exit 0; '
        'test "$FLUID_RESTARTS" || kill -9 $$; touch done')
    assert code == 0, err
    assert re.search(r"launch: trainer 1 ended after [0-9.]+ s: signal 9 "
                     r"\(Killed\); it is started again in 1 s, restart 1 of at "
                     r"most 2 in a minute", err)
    assert log(tmp_path, "workerlog.1").splitlines() == [
        "life 0 rejoin 60", "launch: restart 1", "life 1 rejoin 60"]
    assert log(tmp_path, "workerlog.0") == "life 0 rejoin 60\n"


def test_a_trainer_that_always_fails_is_given_up(tmp_path):
    code, _, err = run(
        tmp_path, JOB + "--max_restarts 1",
        'test $TRAINING_ROLE = PSERVER && '
        '{ until test -e done; do sleep 0.05; done; exit 0; }; '
        'test $PADDLE_TRAINER_ID = 0 && exit 0; '
        'test "$FLUID_RESTARTS" && touch done; exit 3')
    assert code == 3
    assert err.count("it is started again") == 1
    assert "launch: trainer 1 failed first: exit code 3" in err


def test_a_trainer_whose_job_has_ended_is_not_started_again(tmp_path):
    """Exit code 75 says so; the server does not know yet."""
    code, _, err = run(
        tmp_path, JOB,
        'test $TRAINING_ROLE = PSERVER && '
        '{ until test -e done.0 && test -e done.1; do sleep 0.05; done; '
        'exit 0; }; '
        'echo life; touch done.$PADDLE_TRAINER_ID; exit 75')
    assert code == 1 and "it is started again" not in err
    for i in range(2):
        assert log(tmp_path, "workerlog.%d" % i) == "life\n"


def test_an_exit_code_without_an_exception_is_the_reason(tmp_path):
    """The last line of the log may be of the training."""
    _, _, err = run(tmp_path, JOB + "--max_restarts 0",
                    'test "$PADDLE_TRAINER_ID" = 1 || exit 0; '
                    'echo "step 5 0.4"; exit 3')
    assert err.endswith("launch: reason: trainer 1: exit code 3; the last "
                        "line of its log: step 5 0.4\n")


def test_a_cause_that_stands_still_is_named(tmp_path):
    """Trainer 1 has failed and told so, but does not end. The others end, the
    server when the launcher has heard of the end of trainer 0."""
    code, _, err = run(
        tmp_path, JOB + "--max_restarts 0",
        'if test "$PADDLE_TRAINER_ID" = 1; then '
        'echo "Traceback (most recent call last):"; '
        'echo "ValueError: bad luck"; touch failed; '
        'while :; do sleep 1; done; fi; '
        'until test -e failed; do sleep 0.05; done; '
        'echo "paddle: the job has failed: trainer 1: ValueError: bad luck"; '
        'test "$PADDLE_TRAINER_ID" && '
        '{ echo $$ >pid; mv pid trainer0; exit 75; }; '
        'until test -e trainer0; do sleep 0.05; done; '
        'while kill -0 $(cat trainer0); do sleep 0.05; done; exit 75')
    assert code == 1, err
    assert re.search(r"^launch: trainer 1 failed first: it did not end and was "
                     r"stopped, signal 15 \(Terminated\) after", err, re.M)
    assert "  2 ended because the job did\n" in err
    assert err.endswith("launch: reason: trainer 1: ValueError: bad luck\n")


def test_a_server_that_stands_still_is_the_reason(tmp_path):
    """Its own log has none; that of the trainer who gave it up does."""
    code, _, err = run(
        tmp_path, JOB + "--max_restarts 0",
        'test "$PADDLE_TRAINER_ID" || { echo it trains; touch up; '
        'while :; do sleep 1; done; }; '
        'until test -e up; do sleep 0.05; done; '
        'echo "paddle: server 0 (a:1) has not answered PUSH for 4 s"; exit 75')
    assert code == 1, err
    assert re.search("^launch: server 0 failed first: it did not end and was "
                     "stopped", err, re.M)
    assert err.endswith("launch: reason: server 0 (a:1) has not answered PUSH "
                        "for 4 s\n")


def test_the_cause_is_named_though_another_restart_was_planned(tmp_path):
    """Trainer 1 fails, and ends before a server that ends because of it."""
    p = start(tmp_path, JOB,
              'test "$PADDLE_TRAINER_ID" = 1 && { kill -STOP $PPID; '
              'touch stopped; exit 3; }; '
              'until test -e stopped; do sleep 0.05; done; exit 75')
    resume(p, 3)
    code, err = end(p)
    assert code == 3, err
    assert "launch: trainer 1 failed first: exit code 3" in err


@pytest.mark.parametrize("level", ["", "memory", "process"])
def test_a_killed_server_that_keeps_its_state_returns(tmp_path, level):
    code, _, err = run(
        tmp_path, JOB,
        'test $TRAINING_ROLE = PSERVER && { test "$FLUID_RESTARTS" && '
        '{ touch done; exit 0; }; '
        'until test -e told; do sleep 0.05; done; kill -9 $$; }; '
        'echo "level $FLUID_DURABILITY"; '
        'test $PADDLE_TRAINER_ID = 0 && touch told; '
        'until test -e done; do sleep 0.05; done',
        FLUID_DURABILITY=level)
    assert log(tmp_path, "workerlog.0") == "level %s\n" % (level or "auto")
    if level != "memory":
        assert code == 0, err
        assert "launch: server 0 ended after" in err
    else:
        assert code == 137
        assert "launch: server 0 has failed; all other processes" in err


PLAIN = "--server_num 1 --worker_num 2 "
SERVES = 'test $TRAINING_ROLE = PSERVER && ' \
    '{ until test -e done; do sleep 0.05; done; exit 0; }; '


def test_a_killed_trainer_is_started_again_by_default(tmp_path):
    code, _, err = run(
        tmp_path, PLAIN, SERVES +
        'echo "$FLUID_REJOIN $FLUID_REJOIN_FAILED $FLUID_DURABILITY"; '
        'test $PADDLE_TRAINER_ID = 0 && exit 0; '
        'test "$FLUID_RESTARTS" || kill -9 $$; touch done')
    assert code == 0, err
    assert "it is started again in 1 s, restart 1 of at most 3 in a min" in err
    assert log(tmp_path, "workerlog.0") == "60 0 auto\n"


def test_a_trainer_that_fails_is_reported_at_once_by_default(tmp_path):
    code, _, err = run(tmp_path, PLAIN, SERVES +
                       'test $PADDLE_TRAINER_ID = 0 && exit 0; '
                       'touch done; exit 3')
    assert code == 3 and "it is started again" not in err
    assert "launch: trainer 1 failed first: exit code 3" in err


def test_a_server_that_fails_is_not_started_again_by_default(tmp_path):
    code, _, err = run(tmp_path, PLAIN,
                       'test $TRAINING_ROLE = PSERVER && exit 4; sleep 1000')
    assert code == 4 and "it is started again" not in err
    assert "launch: server 0 has failed; all other processes" in err


def test_a_server_that_is_killed_each_time_is_given_up(tmp_path):
    """Trainers that wait for it are stopped as soon as the launcher knows."""
    code, _, err = run(tmp_path, PLAIN,
                       'test $TRAINING_ROLE = PSERVER && kill -9 $$; '
                       'sleep 1000')
    assert code == 137
    assert err.count("it is started again") >= 3
    assert "launch: server 0 has failed; all other processes" in err


@pytest.mark.parametrize("role", ["PSERVER", "TRAINER"])
def test_nobody_is_started_again_if_so_told(tmp_path, role):
    code, _, err = run(
        tmp_path, PLAIN + "--max_restarts 0",
        'test $TRAINING_ROLE = %s && '
        '{ echo "$FLUID_REJOIN $FLUID_DURABILITY"; '
        'test $TRAINING_ROLE = TRAINER && touch done; kill -9 $$; }; '
        'until test -e done; do sleep 0.05; done' % role)
    assert code == 137 and "it is started again" not in err
    name = "serverlog.0" if role == "PSERVER" else "workerlog.1"
    assert log(tmp_path, name) == "0 memory\n"


def test_a_flag_chooses_the_level_of_durability(tmp_path):
    code, _, err = run(
        tmp_path, PLAIN + "--durability process",
        'test $FLUID_DURABILITY = process', FLUID_DURABILITY="memory")
    assert code == 0, err
    code, _, err = run(tmp_path, PLAIN + "--durability disk", "true")
    assert code == 1
    assert 'launch: --durability is "disk"; the levels are "memory"' in err


def test_ctrl_c_does_not_restart_who_is_killed_by_it(tmp_path):
    p = start(tmp_path, PLAIN,
              "touch up.$$; while :; do sleep 0.05; done")
    until(lambda: len(list(tmp_path.glob("up.*"))) == 3)
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=LIMIT)
    assert p.returncode == 130 and "it is started again" not in err
    until(lambda: not living(tmp_path))


def test_trainers_do_not_return_to_servers_that_have_ended(tmp_path):
    p = start(tmp_path, JOB,
              'test "$PADDLE_TRAINER_ID" = 1 && '
              '{ kill -STOP $PPID; touch stopped; }; '
              'until test -e stopped; do sleep 0.05; done; exit 1')
    resume(p, 3)
    assert end(p)[0] == 1
    assert "launch: restart" not in log(tmp_path, "workerlog.0")


def test_ctrl_c_does_not_restart_ranks(tmp_path):
    p = start(tmp_path, RANKS + "--max_restarts 3",
              "trap 'exit 1' INT; touch up.$PADDLE_TRAINER_ID; "
              "while :; do sleep 0.05; done")
    until(lambda: all((tmp_path / ("up.%d" % i)).exists() for i in range(3)))
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=LIMIT)
    assert p.returncode == 130 and "restart 1" not in err
    until(lambda: not living(tmp_path))


@pytest.mark.parametrize("flags,sentence", [
    ("--mode ring", '--mode is "ring", expected pserver or collective'),
    ("--max_restarts -1", "--max_restarts is -1, expected 0 or more"),
    (RANKS + "--worker_num 0", "0 ranks were asked for")])
def test_collective_flags_that_cannot_be_are_named(tmp_path, flags, sentence):
    code, _, err = run(tmp_path, flags, "true")
    assert code != 0 and sentence in err


def test_the_python_launcher_does_the_same(tmp_path):
    (tmp_path / "x.py").write_text(
        "import os, sys\n"
        "print(os.environ['FLAGS_selected_gpus'], sys.argv[1:])\n"
        "sys.exit(6 if os.environ['PADDLE_TRAINER_ID'] == '1' else 0)\n")
    done = subprocess.run(
        [sys.executable, "-m", "paddle.distributed.launch",
         "--selected_gpus=4,7", "--log_dir", "l", "x.py", "--flag"],
        cwd=tmp_path, text=True, capture_output=True, timeout=LIMIT)
    assert done.returncode == 6 and "rank 1 failed first" in done.stderr
    assert (tmp_path / "l" / "workerlog.0").read_text() == "4 ['--flag']\n"
    assert (tmp_path / "l" / "workerlog.1").read_text() == "7 ['--flag']\n"


@pytest.mark.parametrize("words, sentence", [
    ("launch --selected_gpus=4,7 --nproc_per_node 3",
     "--selected_gpus names 2, but --nproc_per_node is 3; leave out one of the "
     "two"),
    ("launch_ps --endpoints=a:1,b:1,c:1 --server_num 2",
     "--endpoints names 3, but --server_num is 2; leave out one of the two"),
])
def test_the_python_launchers_refuse_flags_that_disagree(tmp_path, words,
                                                         sentence):
    (tmp_path / "x.py").write_text("")
    module, *flags = words.split()
    done = subprocess.run(
        [sys.executable, "-m", "paddle.distributed." + module, *flags, "x.py"],
        cwd=tmp_path, text=True, capture_output=True, timeout=LIMIT)
    assert done.returncode == 2 and sentence in done.stderr


TRAINER = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                       "trainer_job.py")


def sums(folder, name="workerlog.0"):
    text = (folder / "logs" / name).read_text()
    found = re.findall("^saved .*$", text, re.M)
    assert found, text
    return found


def trained(folder, *words):
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "paddle.distributed.launch",
         "--max_restarts", "1", TRAINER, str(folder), *words],
        cwd=folder, text=True, capture_output=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_trainer_that_is_killed_goes_on_after_the_restart(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    trained(whole)
    err = trained(cut, "die=1:3", "once=1", "rank=1")
    assert "rank 1 failed first: signal 9 (Killed)" in err
    # The launcher may be faster than rank 0.
    assert re.search("1 ended because the job did|rank 0: stopped", err)
    assert "goes on from checkpoint" in err
    assert sums(cut) == sums(whole)


def test_a_restart_without_checkpoints_is_told(tmp_path):
    err = trained(tmp_path / "job", "die=1:3", "once=1", "saves=0")
    assert "Trainer: restart 1 begins with epoch 0, because the " \
        "Trainer has no CheckpointConfig" in err


def job_log(tmp_path, name):
    """The log of a process without its steps."""
    return [line for line in log(tmp_path, name).splitlines()
            if not line.startswith(("step ", "I", "W"))]


@contextlib.contextmanager
def started_job(tmp_path, *words, flags=""):
    """A launcher of two servers and two trainers that train until they are
    ended, and the processes by name. What is left at the end is killed."""
    script = os.path.join(os.path.dirname(__file__), "fault_job.py")
    with open(tmp_path / "said", "w") as said:
        p = subprocess.Popen(
            ["paddle", "launch", "--server_num", "2", "--worker_num", "2",
             "--quiet"] + flags.split() + [script, *words],
            cwd=tmp_path, stderr=said,
            env=dict(os.environ, **{MARK: str(tmp_path)}),
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    try:
        until(lambda: all("step 1 " in log(tmp_path, "workerlog.%d" % i)
                          for i in range(2)))
        said = (tmp_path / "said").read_text()
        yield p, {name: int(pid) for name, pid in re.findall(
            r"^launch: (\w+ \d)(?: at \S+)? is process (\d+),", said, re.M)}
    finally:
        p.kill()
        p.wait()


def verdict_of(p, tmp_path):
    code = p.wait(timeout=300)
    until(lambda: not living(tmp_path))
    return code, (tmp_path / "said").read_text()


def test_processes_of_an_ended_job_show_one_line(tmp_path):
    with started_job(tmp_path, "steps=100000000",
                     flags="--max_restarts 0") as (p, pids):
        os.kill(pids["server 1"], signal.SIGTERM)
        code, said = verdict_of(p, tmp_path)
    assert code == 143
    assert "launch: server 1 failed first: exit code 143" in said
    last = said.splitlines()[-1]
    assert re.match(r"launch: reason: server 1 \(127\.0\.0\.1:\d+\) was ended "
                    "by SIGTERM", last), last
    for i in range(2):  # the launcher ends a trainer that is slow to end
        assert re.match(r"paddle: (server 1 \(\S+\)|trainer \d) was ended by "
                        "SIGTERM$", job_log(tmp_path, "workerlog.%d" % i)[-1])
    assert job_log(tmp_path, "serverlog.1")[-1].startswith("paddle: server 1 (")
    for name in ("serverlog.0", "serverlog.1", "workerlog.0", "workerlog.1"):
        assert "Traceback" not in log(tmp_path, name)


def test_a_trainer_that_gets_sigterm_is_named_at_once_and_at_the_end(tmp_path):
    gate = tmp_path / "gate"
    with started_job(tmp_path, "steps=40", "hold=20:%s" % gate,
                     flags="--max_restarts 0") as (p, pids):
        until(lambda: all("step 19 " in log(tmp_path, "workerlog.%d" % i)
                          for i in range(2)))
        os.kill(pids["trainer 1"], signal.SIGTERM)
        until(lambda: "the others go on" in (tmp_path / "said").read_text())
        gate.touch()
        code, said = verdict_of(p, tmp_path)
    assert code == 143, said
    assert re.search(r"^launch: trainer 1 has failed after [0-9.]+ s: signal 15 "
                     r"\(Terminated\); its log is logs/workerlog.1; "
                     r"the others go on$",
                     said, re.M)
    assert "launch: trainer 1 failed first: signal 15 (Terminated)" in said
    assert said.endswith(
        "launch: reason: trainer 1: signal 15 (Terminated)\n")
    assert "  2 ended because the job did\n  1 ended well\n" in said
    assert "step 39 " in log(tmp_path, "workerlog.0")


def test_ctrl_c_before_a_script_has_begun_shows_one_line(tmp_path):
    """The signal comes while the script imports its modules."""
    def ended(**env):
        return subprocess.run(
            [sys.executable, "-c", "import paddle; raise KeyboardInterrupt"],
            capture_output=True, text=True, cwd=tmp_path,
            env={**os.environ, **env}).stderr

    assert ended(FLUID_LAUNCHED="1") == "paddle: ended by Ctrl-C\n"
    assert "Traceback" in ended(FLUID_LAUNCHED="0")


def test_ctrl_c_shows_no_traceback(tmp_path):
    with started_job(tmp_path, "steps=100000000") as (p, _):
        p.send_signal(signal.SIGINT)
        code, said = verdict_of(p, tmp_path)
    assert code == 130 and "were stopped" in said
    for i in range(2):  # one that is slow to end is killed, and says nothing
        assert job_log(tmp_path, "workerlog.%d" % i)[1:] in (
            [], ["paddle: trainer %d was ended by Ctrl-C" % i])


def test_a_verdict_ends_with_its_reason(tmp_path):
    with started_job(tmp_path, "fail=3") as (p, _):
        code, said = verdict_of(p, tmp_path)
    assert code == 1 and re.search(r"trainer \d failed first", said)
    assert re.match(r"launch: reason: trainer \d: ValueError: bad luck in "
                    "step 3$", said.splitlines()[-1])
    assert re.match(r"paddle: the job has failed: trainer \d: ValueError: bad "
                    "luck in step 3$", job_log(tmp_path, "serverlog.0")[-1])


def test_a_script_may_catch_the_end_of_its_job(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c",
         "import paddle.fluid as fluid\n"
         "assert issubclass(fluid.core.JobEnded, fluid.core.EnforceNotMet)\n"
         "try:\n    raise fluid.core.JobEnded('it ended')\n"
         "except RuntimeError as e:\n    print(e.code)\n"
         "raise fluid.core.JobEnded('it ended again')\n"],
        capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "1\n")
    assert done.stderr == "paddle: it ended again\n"
