"""A client that knows proto/fluid.proto and nothing else of Fluid.

It is the program of docs/wire.md, word for word.
"""
import importlib.util
import os
import re
import subprocess
import sys

import pytest

from cluster import ROOT

pytest.importorskip("grpc")
np = pytest.importorskip("numpy")


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
