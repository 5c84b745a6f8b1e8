# SPDX-License-Identifier: Apache-2.0
"""fluid.transpiler.collective: training programs for ranks without servers.

The library rewrites the programs; here are Fluid's classes around it.
"""
from .. import _fluid
from ..executor import leave_at_exit
from ..framework import (_check_program, default_main_program,
                         default_startup_program)

__all__ = ["GradAllReduce", "LocalSGD"]


def replace(main, startup, trainers, rank, endpoint, mode, **options):
    """Put the programs of a rank in the place of those of a single process.

    Args:
        main (Program): what minimize has made.
        startup (Program): what starts it.
        trainers (str): all ranks, host:port,host:port.
        rank (int): this one.
        endpoint (str): its own, or None.
        mode (str): 'nccl2', 'grad_allreduce' or 'local_sgd'.
        options: of _fluid.collective.
    """
    leave_at_exit()
    new_main, new_startup = _fluid.collective(
        main, startup, trainers, rank, endpoint=endpoint, mode=mode, **options)
    main.take(new_main)
    startup.take(new_startup)
    for program in (main, startup):
        program._is_distributed = True
        program._is_chief = rank == 0
        program._trainers_endpoints = [
            e.strip() for e in trainers.split(",") if e.strip()]
        program._nccl_comm_num = options.get("rings") or 1


class Collective:
    """What both transpilers have.

    Args:
        nrings (int): rings that share the work.
    """
    mode = None

    def __init__(self, nrings=2):
        self.nrings = nrings

    def transpile(self, startup_program, main_program, rank, endpoints,
                  current_endpoint, wait_port=True):
        """Make the programs those of one of several ranks.

        Args:
            startup_program (Program): joins the ranks from now on; None: the
                default startup program.
            main_program (Program): what minimize has made; None: the default
                main program.
            rank (int): the number of this process.
            endpoints (list of str): all ranks, each host:port; or one text.
            current_endpoint (str): that of this process.
            wait_port (bool): accepted; ranks wait for each other when the
                startup program runs.
        """
        main = default_main_program() if main_program is None \
            else _check_program(main_program, "main_program")
        startup = default_startup_program() if startup_program is None \
            else _check_program(startup_program, "startup_program")
        if not isinstance(endpoints, str):
            endpoints = ",".join(endpoints)
        replace(main, startup, endpoints, rank, current_endpoint, self.mode,
                rings=self.nrings)


class GradAllReduce(Collective):
    """Gradients are averaged over all ranks while backward runs.

    Args:
        nrings (int): rings that share the work.
    """
    mode = "grad_allreduce"


class LocalSGD(Collective):
    """Every rank updates its parameters alone; after each step what all of
    them have changed is averaged.

    Args:
        nrings (int): rings that share the work.
    """
    mode = "local_sgd"
