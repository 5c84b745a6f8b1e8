# SPDX-License-Identifier: Apache-2.0
"""Sets that grow together."""
__all__ = ["UnionFind"]


class UnionFind:
    """Elements in disjoint sets; each is alone at first.

    Args:
        elementes (list): the elements (sic, as in Fluid).
    """

    def __init__(self, elementes=None):
        self._parent = {e: e for e in elementes or ()}

    def find(self, x):
        """Who stands for the set of x; x itself if it is new."""
        root = self._parent.setdefault(x, x)
        while root != self._parent[root]:
            root = self._parent[root]
        while x != root:
            x, self._parent[x] = self._parent[x], root
        return root

    def union(self, x, y):
        """Put the sets of both together."""
        self._parent[self.find(x)] = self.find(y)

    def is_connected(self, x, y):
        """Are both in one set?"""
        return self.find(x) == self.find(y)
