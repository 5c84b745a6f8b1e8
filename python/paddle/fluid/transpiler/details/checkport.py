# SPDX-License-Identifier: Apache-2.0
"""Waiting for servers."""
from ... import _fluid

__all__ = ["wait_server_ready"]


def wait_server_ready(endpoints):
    """Return when every endpoint takes connections; what is missing is said on
    stderr every five seconds.

    Args:
        endpoints (list of str): the servers, each host:port.
    """
    _fluid.wait_ports(endpoints)
