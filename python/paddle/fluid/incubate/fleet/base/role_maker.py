# SPDX-License-Identifier: Apache-2.0
"""Role makers: what this process is in a job.

The library reads the environment in all its dialects (`paddle env` shows it);
here are Fluid's classes around the answer.
"""
from .... import _fluid, core

__all__ = ["Role", "RoleMakerBase", "UserDefinedRoleMaker",
           "UserDefinedCollectiveRoleMaker", "PaddleCloudRoleMaker",
           "MPISymetricRoleMaker"]


class Role:
    """What a process may be."""
    WORKER = 1
    SERVER = 2


class RoleMakerBase:
    """Who is who in a job: derive from it to say so yourself."""

    def __init__(self):
        self._role_is_generated = False
        self._role = Role.WORKER
        self._current_id = 0
        self._worker_num = 1
        self._worker_endpoints = []
        self._server_endpoints = []

    def generate_role(self):
        """Find out; called once by fleet.init."""
        self._role_is_generated = True

    def is_worker(self):
        return self._role == Role.WORKER

    def is_server(self):
        return self._role == Role.SERVER

    def is_first_worker(self):
        return self.is_worker() and self._current_id == 0

    def worker_index(self):
        return self._current_id

    def server_index(self):
        return self._current_id

    def worker_num(self):
        return self._worker_num

    def server_num(self):
        return len(self._server_endpoints)

    def get_trainer_endpoints(self):
        return self._worker_endpoints

    def get_pserver_endpoints(self):
        return self._server_endpoints

    def to_string(self):
        return "role: %d, current_id: %d, worker_num: %d, servers: %s" % (
            self._role, self._current_id, self._worker_num,
            self._server_endpoints)


def _check(ok, error, what, value, expected):
    if not ok:
        raise error("%s is %r, expected %s" % (what, value, expected))


class UserDefinedRoleMaker(RoleMakerBase):
    """The role of this process in a job with servers, given by arguments.

    Args:
        current_id (int): the number of this process among those of its role.
        role (int): Role.WORKER or Role.SERVER.
        worker_num (int): the number of trainers.
        server_endpoints (list of str): the servers, each host:port.
    """

    def __init__(self, current_id=0, role=Role.WORKER, worker_num=0,
                 server_endpoints=None):
        super().__init__()
        _check(isinstance(server_endpoints, list), TypeError,
               "server_endpoints", server_endpoints, "a list of 'host:port'")
        _check(server_endpoints and all(isinstance(e, str)
                                        for e in server_endpoints),
               ValueError, "server_endpoints", server_endpoints,
               "one 'host:port' at least")
        _check(len(set(server_endpoints)) == len(server_endpoints),
               ValueError, "server_endpoints", server_endpoints,
               "no server twice")
        _check(role in (Role.WORKER, Role.SERVER), TypeError, "role", role,
               "Role.WORKER or Role.SERVER")
        _check(isinstance(worker_num, int), TypeError, "worker_num",
               worker_num, "an int")
        _check(worker_num > 0, ValueError, "worker_num", worker_num,
               "1 at least")
        most = len(server_endpoints) if role == Role.SERVER else worker_num
        _check(isinstance(current_id, int), TypeError, "current_id",
               current_id, "an int")
        _check(0 <= current_id < most, ValueError, "current_id", current_id,
               "0 to %d" % (most - 1))
        self._current_id, self._role = current_id, role
        self._worker_num = worker_num
        self._server_endpoints = server_endpoints
        self._role_is_generated = True


class UserDefinedCollectiveRoleMaker(RoleMakerBase):
    """The rank of this process in a job without servers, given by arguments.

    Args:
        current_id (int): the rank of this process.
        worker_endpoints (list of str): all ranks, each host:port.
    """

    def __init__(self, current_id=0, worker_endpoints=None):
        super().__init__()
        _check(isinstance(worker_endpoints, list), TypeError,
               "worker_endpoints", worker_endpoints, "a list of 'host:port'")
        _check(isinstance(current_id, int) and
               0 <= current_id < len(worker_endpoints), ValueError,
               "current_id", current_id,
               "0 to %d" % (len(worker_endpoints) - 1))
        self._current_id = current_id
        self._worker_endpoints = worker_endpoints
        self._worker_num = len(worker_endpoints)
        self._role_is_generated = True


class PaddleCloudRoleMaker(RoleMakerBase):
    """The role of this process as environment variables state it, in any of the
    dialects that `paddle env` knows.

    Args:
        is_collective (bool): trainers without servers.
    """

    def __init__(self, is_collective=False):
        super().__init__()
        self._is_collective = is_collective

    def generate_role(self):
        if self._role_is_generated:
            return
        role = _fluid.role()
        core.tell_once(role["notes"])
        endpoints = role["endpoints"]
        self._worker_num = role["trainers"]
        self._current_id = role["trainer_id"]
        if self._is_collective or role["mode"] == "collective":
            self._worker_endpoints = endpoints
        else:
            self._server_endpoints = endpoints
            self._worker_endpoints = endpoints  # as in Fluid 1.5
        if role["role"] == "PSERVER":
            self._role = Role.SERVER
            self._current_id = endpoints.index(role["endpoint"])
        self._role_is_generated = True


class MPISymetricRoleMaker(RoleMakerBase):
    """Even ranks of an MPI job serve, odd ones train."""

    def __init__(self):
        raise NotImplementedError(
            "MPISymetricRoleMaker needs mpi4py; start the job with "
            "`paddle launch` and use PaddleCloudRoleMaker")
