# SPDX-License-Identifier: Apache-2.0
"""Hosts that answer ssh, for tests: network namespaces, each with processes,
a name and a /home of its own.

    with SshHosts(tmp_path, 3) as hosts:
        subprocess.run([*hosts.enter(2), "ssh", "-F", hosts.config,
                        hosts.address(0), "hostname"])
"""
import contextlib
import os
import shutil
import subprocess

from cluster import Hosts, Process

SSHD = shutil.which("sshd", path="/usr/sbin:" + os.environ.get("PATH", ""))
LACKING = [what for what, there in (
    ("ssh", shutil.which("ssh")), ("sshd", SSHD),
    ("root and iproute2", Hosts.can_be())) if not there]

SERVER = """
AuthorizedKeysFile {0}/key.pub
HostKey {0}/host
PasswordAuthentication no
PidFile none
StrictModes no
UsePAM no
Subsystem sftp internal-sftp
"""
CLIENT = """
BatchMode yes
IdentitiesOnly yes
IdentityFile {0}/key
LogLevel ERROR
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
"""
# The user of the documents. The number is root's, so that tests may read and
# remove what the user leaves.
TUTORIAL = "tutorial:x:0:0::/home/tutorial:/bin/sh\n"
# A host has a name, processes, a /run and a /home of its own; all end with
# process 1.
BOOT = ["unshare", "--uts", "--ipc", "--pid", "--mount-proc", "--fork",
        "--kill-child", "sh", "-ec", 'hostname "$0"; mount -t tmpfs run /run; '
        'mkdir -m 755 /run/sshd; mount --bind "$1" /home; shift; exec "$@"']


class SshHosts(Hosts):
    """n hosts; all but the last `without` of them answer ssh. `login` is what
    who logs in finds in the environment."""

    def __init__(self, folder, n, without=1, login=None):
        self._folder, self._ends = folder, contextlib.ExitStack()
        self.config, self.key = str(folder / "ssh.conf"), str(folder / "key")
        with open("/etc/passwd") as f:
            (folder / "passwd").write_text(f.read() + TUTORIAL)
        for name, text in ("sshd.conf", SERVER), ("ssh.conf", CLIENT):
            (folder / name).write_text(text.format(folder))
        if login:
            with open(folder / "sshd.conf", "a") as f:
                f.write("SetEnv %s\n" % " ".join(
                    '"%s=%s"' % pair for pair in login.items()))
        for name in "key", "host":
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "",
                            "-f", folder / name], check=True)
        super().__init__(n)
        self._sshd = [self._boot(i) for i in range(n - without)]
        for sshd in self._sshd:
            sshd.says("Server listening on 0.0.0.0")

    def home(self, i):
        """The folder that host i sees as /home."""
        return self._folder / ("home%d" % i)

    def start_words(self, i):
        """Words in front of a command that becomes process 1 of host i."""
        (self.home(i) / "tutorial").mkdir(parents=True, exist_ok=True)
        return [*self.enter(i), *BOOT, "host%d" % i, str(self.home(i)), "sh",
                "-ec", 'mount --bind "$0" /etc/passwd; exec "$@"',
                str(self._folder / "passwd")]

    def _boot(self, i):
        sshd = Process("sshd%d" % i, [
            *self.start_words(i), SSHD, "-D", "-e", "-f",
            str(self._folder / "sshd.conf")], str(self._folder), os.environ)
        self._ends.callback(sshd.clear)
        return sshd

    def crash(self, i):
        """Host i loses its power: all of its processes are gone, and its
        cable is dead."""
        self.cut(i)
        self._sshd[i].kill()

    def restore(self, i):
        """Host i has power again."""
        self.heal(i)
        self._sshd[i] = self._boot(i)
        self._sshd[i].says("Server listening on 0.0.0.0")

    def running(self, i):
        """Names of the processes of host i."""
        found = subprocess.run(
            ["ip", "netns", "pids", self._host(i)], capture_output=True,
            text=True, check=True)
        for pid in found.stdout.split():
            with contextlib.suppress(OSError), \
                    open("/proc/%s/comm" % pid) as f:
                yield f.read().strip()

    def __exit__(self, *unused):
        self._ends.close()
        super().__exit__(*unused)
