# SPDX-License-Identifier: Apache-2.0
"""paddle.init: the settings of a process.

Each is an argument of init or a variable PADDLE_INIT_NAME; the argument wins.
FLAGS has them all. Those that steer what does not exist here (log periods,
sockets of the original, GPUs) are taken and have no effect.

`paddle launch` starts the same script as servers, too: there init does not
return. The launcher has chosen the ports, so trainers use its list of servers.
"""
import os
import signal
import sys

from .._absent import suggest

_PREFIX = "PADDLE_INIT_"

# name: (type, default, least value, largest value)
FLAGS = {
    "use_gpu": (bool, False),
    "trainer_count": (int, 1, 1, 1024),
    "port": (int, 7164, 1, 65535),
    "ports_num": (int, 1, 1, 1024),
    "ports_num_for_sparse": (int, 1, 0, 1024),
    "num_gradient_servers": (int, 1, 1, 1 << 20),
    "trainer_id": (int, 0, 0, 1 << 20),
    "pservers": (str, "127.0.0.1"),
    "nics": (str, ""),
    "seed": (int, 1, 0, (1 << 31) - 1),
    "log_period": (int, 100, 0, 1 << 30),
}
_IDLE = {
    bool: "use_mkldnn parallel_nn show_layer_stat prev_batch_state local "
          "log_clipping log_error_clipping thread_local_rand_use_global_seed "
          "loadsave_parameters_in_pserver with_cost small_messages "
          "check_sparse_distribution_in_pserver",
    int: "gpu_id log_period_server dot_period test_period "
         "beam_size show_parameter_stats_period enable_parallel_vector "
         "pserver_num_threads parallel_thread_num saving_period num_passes "
         "start_pass sock_send_buf_size sock_recv_buf_size "
         "sock_listen_queue_size",
    float: "checkgrad_eps async_lagged_ratio_min async_lagged_ratio_default",
    str: "comment rdma_tcp init_model_path load_missing_parameter_strategy "
         "save_dir predict_file job config config_args",
}
FLAGS.update((name, (kind, None))
             for kind, names in _IDLE.items() for name in names.split())

_WORDS = {"true": True, "1": True, "yes": True, "on": True, "t": True,
          "false": False, "0": False, "no": False, "off": False, "f": False}
_settings = None


def _number(source, kind, value):
    try:
        if kind is int and isinstance(value, float):
            raise ValueError
        return kind(value)
    except (TypeError, ValueError):
        raise ValueError("paddle.init: %s is %r, expected %s" % (
            source, value, "a whole number" if kind is int else "a number")
        ) from None


def _convert(source, name, value):
    """A value as the flag wants it; `source` says where it came from."""
    kind, _, *limits = FLAGS[name]
    if kind is str:
        return ",".join(value) if isinstance(value, (list, tuple)) \
            else str(value)
    if kind is bool:
        word = str(value).strip().lower()
        if word not in _WORDS:
            raise ValueError("paddle.init: %s is %r, expected True or False"
                             % (source, value))
        return _WORDS[word]
    number = _number(source, kind, value)
    if limits and not limits[0] <= number <= limits[1]:
        raise ValueError("paddle.init: %s is %s, expected %d to %d"
                         % (source, number, *limits))
    return number


def _known(name, source):
    if name not in FLAGS:
        raise ValueError("paddle.init: there is no setting %s (%s)%s" % (
            name, source, suggest(name, FLAGS)))


def _check_gpu(found, asked):
    """asked: init has use_gpu as an argument."""
    if not found["use_gpu"]:
        return
    from ..fluid import core
    if asked:
        raise core.no_gpu("paddle.init(use_gpu=True)", "use_gpu=False")
    raise core.no_gpu(_PREFIX + "USE_GPU=True", _PREFIX + "USE_GPU=False")


def _check_job(found):
    """Settings that are wrong only together."""
    me, trainers = found["trainer_id"], found["num_gradient_servers"]
    if me >= trainers:
        raise ValueError(
            "paddle.init: trainer_id is %d, but num_gradient_servers is %d: "
            "ids of trainers are 0 to %d" % (me, trainers, trainers - 1))
    last = found["port"] + found["ports_num"] \
        + found["ports_num_for_sparse"] - 1
    if last > 65535:
        raise ValueError("paddle.init: port is %d, and the last of its ports "
                         "would be %d, more than 65535"
                         % (found["port"], last))
    if not all(host.strip() for host in found["pservers"].split(",")):
        raise ValueError("paddle.init: pservers is %r, expected hosts with a "
                         "comma between each two" % found["pservers"])


def _launched():
    """What `paddle launch` has made of this process; None: it did not start
    it, or there are no servers."""
    if os.environ.get("FLUID_LAUNCHED") != "1":
        return None
    from ..fluid import _fluid
    role = _fluid.role()
    return role if role["mode"] == "pserver" else None


def _serve(role):
    """This process is a server of the launcher's job, and ends with it."""
    from ..fluid import _fluid
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        _fluid.serve(int(role["endpoint"].rpartition(":")[2]),
                     role["trainers"])
    except _fluid.JobEnded:
        raise  # shown as one line
    except _fluid.EnforceNotMet as error:  # the script has no part in it
        sys.exit("paddle: pserver: %s" % error)
    sys.exit(0)


def init(**kwargs):
    """Settings of this process: PADDLE_INIT_* of the environment, then the
    arguments, which win. A later call starts anew."""
    global _settings
    role = _launched()
    if role and role["role"] == "PSERVER":
        _serve(role)
    given = {}
    for key, value in sorted(os.environ.items()):
        if key.startswith(_PREFIX):
            name = key[len(_PREFIX):].lower()
            _known(name, "from the environment's %s" % key)
            if name not in kwargs:
                given[name] = _convert(key, name, value)
    for name, value in kwargs.items():
        _known(name, "an argument")
        given[name] = _convert(name, name, value)
    found = {name: flag[1] for name, flag in FLAGS.items()}
    found.update(given)
    _check_gpu(found, "use_gpu" in kwargs)
    _check_job(found)
    _settings = found
    _settings["servers"] = role["endpoints"] \
        if role and not {"pservers", "port"} & kwargs.keys() else None
    if os.environ.get("PADDLE_LOG_DIR"):
        from ..fluid import _fluid
        _fluid.keep_log("paddle_trainer.INFO")


def get(name):
    """A setting; those of a process that never called init are the
    environment's."""
    if _settings is None:
        init()
    return _settings[name]


def endpoints():
    """Addresses of the servers: those for dense parameters, and those for
    sparse ones. Every host has the same ports, unless there is a launcher."""
    if get("servers"):
        return get("servers"), []
    hosts = [host.strip() for host in get("pservers").split(",")]
    first, dense = get("port"), get("ports_num")
    ports = range(first, first + dense + get("ports_num_for_sparse"))
    both = [["%s:%d" % (host, port) for port in some for host in hosts]
            for some in (ports[:dense], ports[dense:])]
    return both[0], both[1]
