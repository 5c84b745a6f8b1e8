# SPDX-License-Identifier: Apache-2.0
"""DistributeTranspiler: a training program cut for trainers and servers.

The library does the cutting. Here are its options under Fluid's names, and
the ways in which transpile was called over the years.
"""
import inspect
import operator
import sys
import types
import warnings

from ... import _absent
from .. import _fluid
from ..core import suggest, tell_once
from ..distribute_lookup_table import find_distributed_lookup_table
from ..executor import leave_at_exit
from ..framework import (_check_program, default_main_program,
                         default_startup_program)
from .collective import replace
from .ps_dispatcher import HashName, PSDispatcher, RoundRobin

__all__ = ["DistributeTranspiler", "DistributeTranspilerConfig"]


class DistributeTranspilerConfig:
    """How a program is cut. A field that does not exist cannot be set."""
    slice_var_up = True  # large parameters are cut into pieces
    split_method = None  # a class of ps_dispatcher; None: RoundRobin
    min_block_size = 8192  # elements of a piece
    sync_mode = True  # trainers wait for each other after every step
    runtime_split_send_recv = False  # send splits and recv joins slices
    mode = "pserver"
    wait_port = True  # get_trainer_program waits for the servers
    print_log = False  # print on stderr which server holds which slice
    enable_dc_asgd = False
    geo_sgd_mode = False
    geo_sgd_need_push_nums = 100
    half_async = False  # only threads of a trainer wait for each other
    completely_not_async = False
    collective_mode = None  # in mode "collective": None reads grad_allreduce
    nccl_comm_num = 1  # rings; they share the connections of the ranks
    # for GPUs: accepted, without effect
    use_hierarchical_allreduce = False
    hierarchical_allreduce_inter_nranks = 0
    hierarchical_allreduce_exter_nranks = 0

    def __setattr__(self, name, value):
        fields = [f for f in dir(type(self)) if not f.startswith("_")]
        if name not in fields and not name.startswith("_"):
            raise AttributeError("%s has no field '%s'%s" % (
                type(self).__name__, name, suggest(name, fields)))
        if name in _GPU_FIELDS and value != getattr(type(self), name):
            warnings.warn("%s: %s is for GPUs that talk over NCCL and has no "
                          "effect here" % (type(self).__name__, name),
                          stacklevel=2)
        object.__setattr__(self, name, value)


_GPU_FIELDS = ("use_hierarchical_allreduce",
               "hierarchical_allreduce_inter_nranks",
               "hierarchical_allreduce_exter_nranks")


# --- arguments of transpile ------------------------------------------------

def _usual(trainer_id, program=None, pservers="127.0.0.1:6174", trainers=1,
           sync_mode=True, startup_program=None,
           current_endpoint="127.0.0.1:6174"):
    """The arguments of Fluid 1.0 and later."""


_ANY_ID = -1  # trainers get ids in the order in which they join
_DEFAULTS = {"trainer_id": _ANY_ID, "split_method": None, "slice_var_up": None,
             "optimize_ops": None, "params_grads": None,
             **{p.name: p.default for p in
                inspect.signature(_usual).parameters.values()
                if p.default is not p.empty}}

# What positions meant, oldest first, and how such a call is known.
_ORDERS = (
    ("optimize_ops params_grads trainer_id program pservers trainers "
     "split_method sync_mode",
     lambda a: _is_list(a, 0) and isinstance(_at(a, 2), int)),
    ("optimize_ops params_grads program pservers trainers split_method",
     lambda a: _is_list(a, 0)),
    ("trainer_id program pservers trainers split_method sync_mode",
     lambda a: callable(_at(a, 4))),
    ("trainer_id program pservers trainers slice_var_up split_method "
     "sync_mode", lambda a: callable(_at(a, 5))),
    ("trainer_id program pservers trainers sync_mode startup_program "
     "current_endpoint", lambda a: True),
)


def _at(args, i):
    return args[i] if i < len(args) else None


def _is_list(args, i):
    return isinstance(_at(args, i), (list, tuple))


def _given(args, kwargs):
    """The arguments of a call by name, as given."""
    names = next(names for names, fits in _ORDERS if fits(args)).split()
    for key in kwargs:
        if key not in _DEFAULTS:
            raise TypeError("transpile() got an unexpected keyword argument "
                            "'%s'%s" % (key, suggest(key, _DEFAULTS)))
    if len(args) > len(names):
        raise TypeError("transpile() takes %d arguments (%s), %d were given"
                        % (len(names), ", ".join(names), len(args)))
    given = dict(zip(names, args))
    for key in kwargs:
        if key in given:
            raise TypeError("transpile() got multiple values for argument "
                            "'%s'" % key)
    return {**given, **kwargs}


def _whole(name, value):
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError("transpile(): %s is %r, expected an int"
                        % (name, value)) from None


def _trainers(value):
    if _whole("trainers", value) < 1:
        raise ValueError("transpile: trainers is %d, expected 1 or more"
                         % value)
    return _whole("trainers", value)


def _dispatch(method, endpoints):
    """What the library calls back for a split_method of the user's own."""
    if isinstance(method, type):
        deal = method(endpoints).dispatch
    else:  # before there were classes: method(varlist, endpoints)
        def deal(pieces):
            return method(pieces, endpoints)

    return lambda names: deal([types.SimpleNamespace(name=n) for n in names])


def _placement(method, pservers):
    """The options that say which server holds what."""
    if method is None or method is RoundRobin or method is HashName:
        return {"split_method": method and method.__name__}
    if isinstance(method, type) and not issubclass(method, PSDispatcher):
        raise TypeError("split_method is %s, expected a class derived from "
                        "PSDispatcher" % method.__name__)
    if not callable(method):
        raise TypeError("split_method is %r, expected RoundRobin, HashName or "
                        "a class derived from PSDispatcher" % (method,))
    endpoints = [e.strip() for e in pservers.split(",") if e.strip()]
    return {"dispatcher": _dispatch(method, endpoints)}


# --- the transpiler ----------------------------------------------------------

class DistributeTranspiler:
    """Cuts a program that minimize has made. The program and its startup
    program become those of a trainer; those of servers are asked for.

    Args:
        config (DistributeTranspilerConfig): how parameters are cut and sent;
            None: the defaults.
    """

    def __init__(self, config=None):
        self.config = DistributeTranspilerConfig() if config is None \
            else config
        self._cut = self.origin_program = None
        leave_at_exit()
        self._waited = False

    def transpile(self, *args, **kwargs):
        """Cut a program, by default the default one. The form of January 2018
        with optimize_ops and params_grads in front will do as well. sync_mode
        is the config's unless it is given. In mode "nccl2" and "collective"
        there are no servers: trainers names all ranks, host:port,host:port,
        and trainer_id is the rank of this process."""
        given = _given(args, kwargs)
        asked = {**_DEFAULTS, **given}
        tell_once(_fluid.misspelt().splitlines())
        main = default_main_program() if asked["program"] is None \
            else _check_program(asked["program"], "program")
        startup = default_startup_program() \
            if asked["startup_program"] is None \
            else _check_program(asked["startup_program"], "startup_program")
        self.sync_mode = not self.config.half_async and bool(
            asked["sync_mode"] if "sync_mode" in given
            else self.config.sync_mode)
        if self.config.mode != "pserver":
            self._join_ranks(main, startup, asked, given)
            return
        self._cut = _fluid.transpile(main, startup, **self._options(asked))
        self._waited = False
        self.trainer_id = max(0, _whole("trainer_id", asked["trainer_id"]))
        self.trainer_num = _whole("trainers", asked["trainers"])
        self.pserver_endpoints = self._cut.endpoints
        self.table_name = find_distributed_lookup_table(main)
        self.has_distributed_lookup_table = self.table_name is not None
        self.origin_program, self.startup_program = main, startup
        self._take_place(asked["current_endpoint"])
        if self.config.print_log:
            self._tell()

    transpile.__signature__ = inspect.Signature([
        inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD),
        *inspect.signature(_usual).parameters.values()])

    def _join_ranks(self, main, startup, asked, given):
        """The programs of a rank in place of those of a single process."""
        config, trainers = self.config, asked["trainers"]
        modes = {"nccl2": "nccl2",
                 "collective": config.collective_mode or "grad_allreduce"}
        if config.mode not in modes:
            raise ValueError("transpile: mode is %r, expected 'pserver', "
                             "'nccl2' or 'collective'" % (config.mode,))
        if isinstance(trainers, (list, tuple)):
            trainers = ",".join(trainers)
        if not isinstance(trainers, str):
            raise TypeError("transpile(): trainers is %r, expected all ranks, "
                            "'host:port,host:port', in mode %r"
                            % (trainers, config.mode))
        self.trainer_id = max(0, _whole("trainer_id", asked["trainer_id"]))
        replace(main, startup, trainers, self.trainer_id,
                given.get("current_endpoint"), modes[config.mode],
                rings=config.nccl_comm_num if config.mode == "nccl2" else 0,
                hierarchical=config.use_hierarchical_allreduce,
                inter_nranks=config.hierarchical_allreduce_inter_nranks)
        self.origin_program, self.startup_program = main, startup
        self.trainer_num = len(main._trainers_endpoints)

    def _options(self, asked):
        """What the library is told."""
        config, pservers = self.config, asked["pservers"]
        if isinstance(pservers, (list, tuple)):
            pservers = ",".join(pservers)
        if not isinstance(pservers, str):
            raise TypeError("transpile(): pservers is %r, expected "
                            "'host:port,host:port'" % (pservers,))
        slices = config.slice_var_up if asked["slice_var_up"] is None \
            else asked["slice_var_up"]
        pairs = asked["params_grads"]
        return {
            "pservers": pservers,
            "trainers": _trainers(asked["trainers"]),
            "trainer_id": _whole("trainer_id", asked["trainer_id"]),
            "async_mode": not self.sync_mode,
            "half_async": config.half_async,
            "no_slices": not slices,
            "min_block_size": _whole("min_block_size", config.min_block_size),
            "runtime_split_send_recv": config.runtime_split_send_recv,
            "enable_dc_asgd": config.enable_dc_asgd,
            "geo_sgd_mode": config.geo_sgd_mode,
            "params": pairs and [p.name for p, _ in pairs],
            **_placement(asked["split_method"] or config.split_method,
                         pservers)}

    def _take_place(self, current_endpoint):
        """The trainer's programs in place of those that were cut."""
        main = self.origin_program
        main.take(self._cut.trainer())
        self.startup_program.take(self._cut.trainer_startup())
        main._is_distributed = True
        main._endpoints = self.pserver_endpoints
        main._ps_endpoint = current_endpoint
        main._is_chief = self.trainer_id == 0
        main._distributed_lookup_table = self.table_name
        self.startup_program._copy_dist_param_info_from(main)

    def _tell(self):
        """Which server holds what, on stderr."""
        for endpoint in self.pserver_endpoints:
            ops = self._cut.server(endpoint)[1].global_block().ops
            sys.stderr.write("%s holds %s\n" % (endpoint, ", ".join(
                name for op in ops for name in op.output_arg_names)))

    def _known(self):
        if self.config.mode != "pserver":
            raise RuntimeError("DistributeTranspiler: there are no servers in "
                               "mode %r" % self.config.mode)
        if self._cut is None:
            raise RuntimeError("DistributeTranspiler: call transpile first")
        return self._cut

    def _server(self, endpoint):
        """The two programs of a server."""
        if not isinstance(endpoint, str):
            raise TypeError("endpoint is %r, expected 'host:port'"
                            % (endpoint,))
        programs = self._known().server(endpoint.strip())
        for program in programs:
            program._copy_dist_param_info_from(self.origin_program)
            program._ps_endpoint = endpoint.strip()
        return programs

    def get_trainer_program(self, wait_port=True):
        """The program of this trainer. The first call waits until every
        server takes connections, unless wait_port is False."""
        if self.config.mode != "pserver" and self.origin_program:
            return self.origin_program  # ranks wait for each other when they run
        endpoints = self._known().endpoints
        if wait_port and self.config.wait_port and not self._waited:
            _fluid.wait_ports(endpoints)
            self._waited = True  # scripts may call this in every step
        return self.origin_program

    def get_pserver_program(self, endpoint):
        """What the server at this endpoint runs."""
        return self._server(endpoint)[0]

    def get_pserver_programs(self, endpoint):
        """What the server at this endpoint runs, and before it."""
        return self._server(endpoint)

    def get_startup_program(self, endpoint, pserver_program=None,
                            startup_program=None):
        """What the server at this endpoint runs first."""
        if startup_program is not None and \
                startup_program is not self.startup_program:
            raise ValueError("get_startup_program: startup_program is not the "
                             "one that was transpiled; give it to "
                             "transpile(startup_program=...)")
        return self._server(endpoint)[1]


_absent.answer_for(globals())
