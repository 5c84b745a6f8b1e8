# SPDX-License-Identifier: Apache-2.0
"""What every fleet has: who is who, and how work is divided."""
from .... import executor as _executor
from ....core import CPUPlace
from .role_maker import RoleMakerBase, UserDefinedRoleMaker

__all__ = ["Fleet", "DistributedOptimizer", "Mode"]


class Mode:
    """How trainers exchange what they learn."""
    TRANSPILER = 1
    PSLIB = 2
    COLLECTIVE = 3


class Fleet:
    """One object for a process of a job.

    Args:
        mode (int): Mode.TRANSPILER.
    """

    def __init__(self, mode=Mode.TRANSPILER):
        self._mode = mode
        self._is_initialized = False
        self._optimizer = None
        self._role_maker = None
        self._executor = None

    def init(self, role_maker=None):
        """Find out what this process is; before everything else."""
        self._executor = _executor.Executor(CPUPlace())
        if role_maker is not None and \
                not isinstance(role_maker, RoleMakerBase):
            raise TypeError("fleet.init: role_maker is %r, expected a "
                            "RoleMakerBase such as PaddleCloudRoleMaker()"
                            % (role_maker,))
        if role_maker is None:
            raise ValueError("fleet.init: say what this process is, with "
                             "PaddleCloudRoleMaker() or UserDefinedRoleMaker")
        self._role_maker = role_maker
        self._role_maker.generate_role()
        self._is_initialized = True

    def _role(self):
        if not self._is_initialized:
            raise RuntimeError("fleet: call fleet.init(role_maker) first")
        return self._role_maker

    def is_first_worker(self):
        return self._role().is_first_worker()

    def is_worker(self):
        return self._role().is_worker()

    def is_server(self):
        return self._role().is_server()

    def worker_index(self):
        return self._role().worker_index()

    def worker_num(self):
        return self._role().worker_num()

    def server_index(self):
        return self._role().server_index()

    def server_num(self):
        return self._role().server_num()

    def worker_endpoints(self, to_string=False):
        found = self._role().get_trainer_endpoints()
        return ",".join(found) if to_string else found

    def server_endpoints(self, to_string=False):
        found = self._role().get_pserver_endpoints()
        return ",".join(found) if to_string else found

    def split_files(self, files):
        """The files of this worker: contiguous shares, the first ones one
        file longer where they do not come out even."""
        if not isinstance(files, list):
            raise TypeError("fleet.split_files: files is %r, expected a list"
                            % (files,))
        k, me = self.worker_num(), self.worker_index()
        if len(files) < k:
            raise ValueError("fleet.split_files: %d files for %d workers; "
                             "every worker needs one: start fewer workers or "
                             "cut the files" % (len(files), k))
        each, more = divmod(len(files), k)
        start = me * each + min(me, more)
        return files[start:start + each + (me < more)]


class DistributedOptimizer:
    """An optimizer whose updates are the servers' work.

    Args:
        optimizer (Optimizer): what updates the parameters.
        strategy (DistributeTranspilerConfig): how the program is cut.
    """

    def __init__(self, optimizer, strategy=None):
        self._optimizer, self._strategy = optimizer, strategy

    def backward(self, *args, **kwargs):
        return self._optimizer.backward(*args, **kwargs)

    def apply_gradients(self, params_grads):
        return self._optimizer.apply_gradients(params_grads)
