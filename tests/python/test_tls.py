# SPDX-License-Identifier: Apache-2.0
"""Jobs with certificates: they give the same numbers, and strangers nothing."""
import os
import shutil
import socket
import subprocess

import pytest

import fault_job
import sync_job
from cluster import BUILD, LIMIT, Cluster, Ranks
from test_ranks import TRAINER, losses, texts
from test_sync import QUICK, alone, load, same_bits

pytestmark = pytest.mark.skipif(not shutil.which("openssl"),
                                reason="needs openssl: scripts/deps test")
NAMES = ["DNS:localhost", "IP:127.0.0.1"]


class Authority:
    """A certificate authority in a folder."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self._openssl("req", "-x509", "-days", "2", "-keyout", "ca.key",
                      "-out", "ca.crt", "-subj", "/CN=test", *self._new())

    def issue(self, name, by=None, **dates):
        """Variables of a process that has a certificate of `by`."""
        (self.folder / "ext").write_text(
            "subjectAltName=%s\nextendedKeyUsage=serverAuth,clientAuth\n"
            "basicConstraints=CA:FALSE\n" % ",".join(NAMES))
        self._openssl("req", "-keyout", name + ".key", "-out", name + ".csr",
                      "-subj", "/CN=" + name, *self._new())
        signer = (by or self).folder
        self._openssl("x509", "-req", "-in", name + ".csr", "-CA",
                      str(signer / "ca.crt"), "-CAkey", str(signer / "ca.key"),
                      "-CAcreateserial", "-extfile", "ext", "-days",
                      dates.get("days", "2"), "-out", name + ".crt")
        return {"FLUID_TLS_CERT": str(self.folder / (name + ".crt")),
                "FLUID_TLS_KEY": str(self.folder / (name + ".key")),
                "FLUID_TLS_CA": str(self.folder / "ca.crt")}

    @staticmethod
    def _new():
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                "-nodes"]

    def _openssl(self, *words):
        subprocess.run(["openssl", *words], cwd=self.folder, check=True,
                       capture_output=True)


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path / "ca")


@pytest.mark.parametrize("without", ["0", "1"])
def test_a_job_with_tls_gives_the_bits_of_one_machine(authority, tmp_path,
                                                      without):
    local = alone(tmp_path, "adam")
    env = {**QUICK, **authority.issue("process"), "FLUID_TLS_NO_PLUGIN": without}
    with Cluster(tmp_path, sync_job.__file__, 2, 2, argv=["adam", "same"],
                 env=env) as job:
        job.start().finish()
    for i in range(2):
        same_bits(load(tmp_path, i), local)


def test_ranks_with_tls_give_the_numbers_of_ranks_without(authority, tmp_path):
    known = texts(tmp_path, TRAINER, 2, str(tmp_path), "saves=0")
    with Ranks(tmp_path, TRAINER, 2, env=authority.issue("process"),
               argv=[str(tmp_path), "saves=0"]) as job:
        job.start().finish()
        for rank, text in zip(job.trainer, known):
            assert losses(rank.text()).tolist() == losses(text).tolist()


@pytest.fixture
def server(authority, tmp_path):
    """A server that waits for a trainer."""
    with Cluster(tmp_path, fault_job.__file__, 1, 1, env={
            **QUICK, **authority.issue("process")}) as job:
        job.start_server(0).says("Server listening")
        yield job


def read(path):
    with open(path, "rb") as f:
        return f.read()


def ask(server, env):
    """Ask the health service as this process; None: there was no answer."""
    grpc = pytest.importorskip("grpc")
    shown = grpc.ssl_channel_credentials(
        read(env["FLUID_TLS_CA"]),
        *[read(env[name]) for name in ("FLUID_TLS_KEY", "FLUID_TLS_CERT")
          if name in env])
    with grpc.secure_channel(server.endpoints[0], shown) as channel:
        call = channel.unary_unary("/grpc.health.v1.Health/Check")
        try:
            return call(b"", timeout=LIMIT)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNAVAILABLE
            return None


def test_strangers_get_nothing(server, authority, tmp_path):
    other = Authority(tmp_path / "other")
    known = authority.issue("known")
    assert ask(server, known) == b"\x08\x01"  # it serves
    assert ask(server, {"FLUID_TLS_CA": known["FLUID_TLS_CA"]}) is None
    assert ask(server, authority.issue("expired", days="-1")) is None
    assert ask(server, authority.issue("foreign", by=other)) is None
    assert ask(server, other.issue("stranger")) is None
    host, port = server.endpoints[0].split(":")
    with socket.create_connection((host, int(port)), 10) as plain:
        plain.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
        said = plain.recv(1 << 16)
    assert b"\0\0\0\4\0" not in said  # at most an alert of TLS, no settings


def why(server, env):
    return subprocess.run(
        [os.path.join(BUILD, "bin", "paddle"), "why", server.endpoints[0]],
        env={**os.environ, **env}, capture_output=True, text=True,
        timeout=LIMIT)


def test_paddle_why_needs_a_certificate_of_the_job(server, authority,
                                                   tmp_path):
    assert "waits" in why(server, authority.issue("known")).stdout
    wrong = why(server, Authority(tmp_path / "other").issue("stranger"))
    assert wrong.returncode == 1
    assert "does not accept the certificate of this process" in wrong.stderr
    assert why(server, {}).returncode == 1


def test_a_variable_that_is_missing_is_named(authority, tmp_path):
    env = authority.issue("known")
    del env["FLUID_TLS_KEY"]
    with Cluster(tmp_path, fault_job.__file__, 1, 1, env=env) as job:
        job.start_server(0).end(code=1)
        assert "FLUID_TLS_KEY is not set; a job with TLS needs" \
            in job.server[0].text()
