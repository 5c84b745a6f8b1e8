# SPDX-License-Identifier: Apache-2.0
"""What the package needs from outside: numpy, and libraries of the system."""
import importlib
import os
import sys

# Debian 12's packages of the libraries that libfluid.so is linked with.
PACKAGES = ("libdnnl2", "libgrpc29", "libprotobuf-c1", "libgomp1", "zlib1g")


def sentence(error):
    """What to do where libfluid.so or the extension cannot be loaded."""
    return ("%s; the library needs these packages of Debian 12 or their like: "
            "apt-get install %s" % (error, " ".join(PACKAGES)))


def check():
    """Raise ImportError, in one sentence, where something is missing."""
    try:
        importlib.import_module("numpy")
    except ImportError as error:
        if error.name != "numpy":
            raise
        other = os.environ.get("PADDLE_PYTHON")
        raise ImportError(
            "paddle.fluid needs numpy, which %s does not have; install it "
            "(Debian: python3-numpy)%s" % (
                sys.executable, other and other != sys.executable and
                ", or use $PADDLE_PYTHON, which is %s" % other or "")
        ) from None
    try:
        importlib.import_module("paddle.fluid._fluid")
    except ImportError as error:
        if "cannot open shared object file" not in str(error):
            raise
        raise ImportError(sentence("paddle.fluid cannot be loaded: %s"
                                   % error)) from None
