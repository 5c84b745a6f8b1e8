# SPDX-License-Identifier: Apache-2.0
"""Which server holds which piece of a parameter.

One of your own derives from PSDispatcher; the library calls its dispatch once
with all pieces, each of which has a name.
"""
__all__ = ["HashName", "PSDispatcher", "RoundRobin"]


class PSDispatcher:
    """Deals variables to the servers at these endpoints.

    Args:
        pserver_endpoints (list of str): the servers, each host:port.
    """

    def __init__(self, pserver_endpoints):
        self._eps = pserver_endpoints
        self._step = 0

    @property
    def eps(self):
        return self._eps

    def reset(self):
        """Deal from the first server again."""
        self._step = 0

    def dispatch(self, varlist):
        """An endpoint for each variable."""
        raise NotImplementedError("%s must define dispatch(varlist)"
                                  % type(self).__name__)


class RoundRobin(PSDispatcher):
    """In turn; it goes on where the last call ended."""

    def dispatch(self, varlist):
        first, self._step = self._step, self._step + len(varlist)
        return [self._eps[i % len(self._eps)]
                for i in range(first, self._step)]


class HashName(PSDispatcher):
    """By the name alone: the same on every host and in every run."""

    @staticmethod
    def _hash_block(name, total):
        value = 2166136261  # FNV-1a, as the library has it
        for byte in name.encode():
            value = (value ^ byte) * 16777619 % 2 ** 32
        return value % total

    def dispatch(self, varlist):
        return [self._eps[self._hash_block(v.name, len(self._eps))]
                for v in varlist]
