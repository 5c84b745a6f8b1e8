# SPDX-License-Identifier: Apache-2.0
"""paddle.dataset: public data sets as readers; each loads when it is used."""
from .. import _absent

__all__ = ["cifar", "common", "conll05", "imdb", "imikolov", "mnist",
           "movielens", "uci_housing", "wmt14"]

_absent.answer_for(globals(), load=__all__)
