# SPDX-License-Identifier: Apache-2.0
"""paddle.distributed: start the processes of a job.

    python -m paddle.distributed.launch_ps --worker_num 2 --server_num 2 x.py
    python -m paddle.distributed.launch --nproc_per_node 2 x.py
"""
from .. import _absent

__all__ = ["launch", "launch_ps"]

_absent.answer_for(globals(), load=__all__)
