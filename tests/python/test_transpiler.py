# SPDX-License-Identifier: Apache-2.0
"""DistributeTranspiler: every form of its call, what the programs look like,
what it says of mistakes. What programs must hold is tested in C."""
import gc
import warnings

import pytest

import paddle.fluid as fluid
from fresh import fresh
from paddle.fluid.transpiler.ps_dispatcher import (HashName, PSDispatcher,
                                                   RoundRobin)

A, B = "127.0.0.1:6174", "127.0.0.1:6175"
SERVERS = A + "," + B
FB = ("mul elementwise_add elementwise_sub square mean fill_constant "
      "mean_grad square_grad elementwise_sub_grad elementwise_add_grad ")
SENT = (FB + "send mul_grad split_byref send send_barrier recv recv "
        "fetch_barrier concat")


@pytest.fixture
def net():
    """The network of Fluid's own transpiler tests, not yet minimised."""
    with fresh() as made:
        x = fluid.layers.data("x", [1000])
        y = fluid.layers.data("y", [1000])
        predicted = fluid.layers.fc(x, 1000, param_attr="fc_w",
                                    bias_attr="fc_b")
        made.loss = fluid.layers.mean(
            fluid.layers.square_error_cost(predicted, y))
        yield made


def types(block):
    return " ".join(op.type for op in block.ops)


def cut(net, optimizer=None, config=None, **options):
    net.optimize_ops, net.params_grads = (
        optimizer or fluid.optimizer.SGD(0.1)).minimize(net.loss)
    t = fluid.DistributeTranspiler(config)
    t.transpile(0, pservers=SERVERS, trainers=2, **options)
    return t


def held(program):
    """Parameters, and pieces of them, on a server."""
    return [n for n in program.global_block().vars
            if n.startswith("fc_") and "@" not in n and "velocity" not in n]


# --- golden programs ---------------------------------------------------------

PIECEWISE = ("increment cast fill_constant fill_constant less_than "
             "logical_not conditional_block fill_constant fill_constant "
             "less_than logical_not logical_and logical_and "
             "conditional_block fill_constant conditional_block")
EXPONENTIAL = ("increment cast fill_constant elementwise_div floor "
               "fill_constant elementwise_pow fill_constant elementwise_mul")

SHAPES = {
    "sgd": (lambda: fluid.optimizer.SGD(0.1), SENT,
            ["0: sum scale sgd"] * 2),
    "momentum": (lambda: fluid.optimizer.Momentum(0.1, 0.9), SENT,
                 ["0: sum scale momentum"] * 2),
    "adam": (lambda: fluid.optimizer.Adam(0.1), SENT,
             ["0: sum scale adam scale scale"] * 2),
    "decay": (lambda: fluid.optimizer.SGD(
        0.1, regularization=fluid.regularizer.L2Decay(0.1)),
        FB + "mul_grad send split_byref send send_barrier recv recv "
        "fetch_barrier concat", ["0: sum scale scale sum sgd"] * 2),
    "exponential": (lambda: fluid.optimizer.Momentum(
        fluid.layers.exponential_decay(0.1, 10, 0.5, staircase=True), 0.9),
        SENT, ["0: " + EXPONENTIAL] + ["1: sum scale momentum"] * 2),
    "piecewise": (lambda: fluid.optimizer.Momentum(
        fluid.layers.piecewise_decay([10, 20], [1.0, 0.5, 0.1]), 0.9),
        SENT, ["0: " + PIECEWISE] + ["1: assign"] * 3
        + ["4: sum scale momentum"] * 2),
}


@pytest.mark.parametrize("name", SHAPES)
def test_programs_have_the_shape_of_fluids(net, name):
    make, trainer, blocks = SHAPES[name]
    t = cut(net, make())
    program = t.get_trainer_program(wait_port=False)
    assert types(program.global_block()) == trainer
    server = t.get_pserver_program(A)
    assert types(server.global_block()) == "listen_and_serv"
    assert ["%d: %s" % (b.parent_idx, types(b))
            for b in server.blocks[1:]] == blocks


def test_a_server_holds_its_pieces(net):
    t = cut(net, fluid.optimizer.Momentum(0.1, 0.9))
    program, startup = t.get_pserver_programs(A)
    shapes = {n: v.shape for n, v in program.global_block().vars.items()}
    assert shapes == {
        "fc_b": (1000,), "fc_w.block1": (500, 1000),
        "fc_b@GRAD": (1000,), "fc_b@GRAD.trainer_0": (1000,),
        "fc_b@GRAD.trainer_1": (1000,), "fc_w@GRAD.block1": (500, 1000),
        "fc_w@GRAD.block1.trainer_0": (500, 1000),
        "fc_w@GRAD.block1.trainer_1": (500, 1000), "learning_rate_0": (1,),
        "fc_b_velocity_0": (1000,), "fc_w_velocity_0": (500, 1000)}
    assert [op.output_arg_names[0] for op in startup.global_block().ops] == [
        "learning_rate_0", "fc_w_velocity_0", "fc_b_velocity_0", "fc_b",
        "fc_w.block1"]
    assert held(t.get_pserver_program(B)) == ["fc_w.block0"]


def test_listen_and_serv_can_be_read(net):
    t = cut(net)
    program = t.get_pserver_program(A)
    (op,) = program.global_block().ops
    assert op.attr("endpoint") == A and op.attr("Fanin") == 2
    assert op.attr("sync_mode") is True and op.attr("dc_asgd") is False
    assert op.attr("grad_to_block_id") == ["fc_b@GRAD:1",
                                           "fc_w@GRAD.block1:2"]
    assert op.attr("checkpint_block_id") == -1  # Fluid's spelling
    assert op._blocks_attr_ids("optimize_blocks") == [1, 2]
    assert op.attr("optimize_blocks") == [program.block(1), program.block(2)]
    assert op.input("X") == [
        "fc_b@GRAD.trainer_0", "fc_b@GRAD.trainer_1",
        "fc_w@GRAD.block1.trainer_0", "fc_w@GRAD.block1.trainer_1"]


def test_startup_of_a_trainer_receives(net):
    cut(net, fluid.optimizer.Momentum(0.1, 0.9))
    assert types(net.startup.global_block()) == (
        "fill_constant fill_constant fill_constant fill_constant "
        "uniform_random recv recv fetch_barrier concat")


def test_a_sparse_table_is_looked_up_on_servers():
    config = fluid.DistributeTranspilerConfig()
    config.sync_mode = False
    config.runtime_split_send_recv = True
    with fresh() as net:
        ids = fluid.layers.data("ids", [1], dtype="int64", lod_level=1)
        label = fluid.layers.data("label", [1], dtype="int64")
        rows = fluid.layers.embedding(ids, [1000, 64], is_sparse=True,
                                      param_attr="emb")
        pooled = fluid.layers.sequence_pool(rows, "sum")
        out = fluid.layers.fc(pooled, 2, act="softmax")
        net.loss = fluid.layers.mean(fluid.layers.cross_entropy(out, label))
        t = cut(net, config=config)
        program = t.get_trainer_program(wait_port=False)
        assert types(program.global_block()) == (
            "distributed_lookup_table sequence_pool mul elementwise_add "
            "softmax cross_entropy2 mean fill_constant mean_grad "
            "cross_entropy_grad2 softmax_grad elementwise_add_grad send "
            "mul_grad send sequence_pool_grad lookup_table_grad send recv "
            "recv")
        (op,) = t.get_pserver_program(A).global_block().ops
        assert op.attr("sparse_grad_to_param") == [
            "emb@GRAD.block0:emb.block0"]
        assert op.input("X") == ["emb@GRAD.block0", "fc_0.b_0@GRAD"]


# --- where the programs are --------------------------------------------------

def test_the_default_programs_become_the_trainers(net):
    t = cut(net)
    assert t.get_trainer_program(wait_port=False) is net.main
    assert fluid.default_main_program() is net.main
    assert t.get_trainer_program(wait_port=False).clone()._is_distributed
    assert net.main._endpoints == [A, B] and net.main._is_chief
    assert net.loss.block.program is net.main  # views have followed
    assert net.loss.op.type == "mean" and net.loss.shape == (1,)
    assert net.params_grads[0][0].name == "fc_w"


def test_other_programs_may_be_cut(net):
    fluid.optimizer.SGD(0.1).minimize(net.loss)
    main, startup = net.main.clone(), net.startup.clone()
    t = fluid.DistributeTranspiler()
    t.transpile(1, main, SERVERS, 2, True, startup, B)
    assert t.get_trainer_program(wait_port=False) is main
    assert "recv" in types(startup.global_block())
    assert "send" not in types(net.main.global_block())
    assert "recv" not in types(net.startup.global_block())
    assert main._ps_endpoint == B and not main._is_chief
    assert t.get_startup_program(A, startup_program=startup)
    with pytest.raises(ValueError, match="give it to transpile"):
        t.get_startup_program(A, startup_program=net.startup)


# --- forms of the call -------------------------------------------------------

def sends(program):
    """The names under which gradients are sent."""
    return [n for op in program.global_block().ops if op.type == "send"
            for n in op.input("X")]


BLOCKS = ["fc_b@GRAD.trainer_%d", "fc_w@GRAD.block0.trainer_%d",
          "fc_w@GRAD.block1.trainer_%d"]
WHOLE = ["fc_b@GRAD.trainer_%d", "fc_w@GRAD.trainer_%d"]
ASYNC = ["fc_b@GRAD", "fc_w@GRAD.block0", "fc_w@GRAD.block1"]
FORMS = {
    "of January 2018": (
        lambda t, o, p, m: t(o, p, pservers=SERVERS, trainers=2), BLOCKS, 0),
    "of January 2018, by position": (
        lambda t, o, p, m: t(o, p, m, SERVERS, 2, HashName), BLOCKS, 0),
    "of January 2018, all by name": (
        lambda t, o, p, m: t(optimize_ops=o, params_grads=p,
                             pservers=SERVERS, trainers=2), BLOCKS, 0),
    "of 0.12": (
        lambda t, o, p, m: t(o, p, 1, pservers=SERVERS, trainers=2),
        BLOCKS, 1),
    "of 0.12, by position": (
        lambda t, o, p, m: t(o, p, 1, m, SERVERS, 2, RoundRobin, False),
        ASYNC, 1),
    "of 0.13": (
        lambda t, o, p, m: t(1, m, SERVERS, 2, RoundRobin, False), ASYNC, 1),
    "of 0.14": (
        lambda t, o, p, m: t(1, m, SERVERS, 2, False, RoundRobin, True),
        WHOLE, 1),
    "of 0.15": (
        lambda t, o, p, m: t(1, m, SERVERS, 2, False, None), ASYNC, 1),
    "of 1.0": (
        lambda t, o, p, m: t(1, m, SERVERS, 2, True, None, A), BLOCKS, 1),
    "by name without an id": (
        lambda t, o, p, m: t(pservers=SERVERS, trainers=2), BLOCKS, 0),
    "by name with an id": (
        lambda t, o, p, m: t(trainer_id=1, pservers=" %s , %s" % (A, B),
                             trainers=2), BLOCKS, 1),
    "with a list of servers": (
        lambda t, o, p, m: t(0, pservers=[A, B], trainers=2), BLOCKS, 0),
    "with slice_var_up": (
        lambda t, o, p, m: t(0, pservers=SERVERS, trainers=2,
                             slice_var_up=False), WHOLE, 0),
}


@pytest.mark.parametrize("form", FORMS)
def test_form(net, form):
    call, names, trainer_id = FORMS[form]
    ops, pairs = fluid.optimizer.SGD(0.1).minimize(net.loss)
    t = fluid.DistributeTranspiler()
    call(t.transpile, ops, pairs, net.main)
    sent = sends(t.get_trainer_program(wait_port=False))
    assert sorted(sent) == sorted(n % trainer_id if "%" in n else n
                                  for n in names)
    assert t.trainer_id == trainer_id and t.trainer_num == 2


def test_params_grads_must_be_those_of_the_program(net):
    ops, pairs = fluid.optimizer.SGD(0.1).minimize(net.loss)
    with pytest.raises(ValueError, match='updates "fc_w", which params_grads '
                       "does not list"):
        fluid.DistributeTranspiler().transpile(
            ops, [p for p in pairs if p[0].name == "fc_b"], pservers=SERVERS)


@pytest.mark.parametrize("options,sentence", [
    (dict(trianers=2), "keyword argument 'trianers'; did you mean trainers"),
    (dict(pserver=A), "did you mean pservers"),
    (dict(trainers="2"), "trainers is '2', expected an int"),
    (dict(trainer_id=0.5), "trainer_id is 0.5, expected an int"),
    (dict(pservers=7), "pservers is 7, expected 'host:port,host:port'"),
    (dict(split_method=dict), "expected a class derived from PSDispatcher"),
    (dict(split_method="HashName"), "split_method is 'HashName', expected"),
    (dict(program=3), "program must be a Program, not int")])
def test_arguments_of_a_wrong_type(net, options, sentence):
    fluid.optimizer.SGD(0.1).minimize(net.loss)
    with pytest.raises(TypeError, match=sentence):
        fluid.DistributeTranspiler().transpile(**options)


def test_too_many_arguments(net):
    t = fluid.DistributeTranspiler()
    with pytest.raises(TypeError, match="takes 7 arguments.* 8 were given"):
        t.transpile(0, None, A, 1, True, None, A, 5)
    with pytest.raises(TypeError, match="multiple values.* 'trainer_id'"):
        t.transpile(0, trainer_id=0)


@pytest.mark.parametrize("options,sentence", [
    (dict(pservers=""), "pservers is empty"),
    (dict(pservers="ps0,ps1:1"), 'server "ps0" has no port'),
    (dict(pservers=":6174"), 'server ":6174" has no host'),
    (dict(pservers="ps0:6174,:6174"), 'server ":6174" has no host'),
    (dict(pservers="ps0:0"), 'has the port "0", expected a number from 1'),
    (dict(trainers=0), "trainers is 0, expected 1 or more"),
    (dict(trainers=-3), "trainers is -3, expected 1 or more"),
    (dict(pservers=A + "," + A), "is listed twice"),
    (dict(trainer_id=2, trainers=2), "trainer_id is 2, but there are 2")])
def test_arguments_of_a_wrong_value(net, options, sentence):
    fluid.optimizer.SGD(0.1).minimize(net.loss)
    before = types(net.main.global_block())
    with pytest.raises(ValueError, match=sentence):
        fluid.DistributeTranspiler().transpile(**{"trainer_id": 0, **options})
    assert types(net.main.global_block()) == before


def test_a_misspelt_variable_is_noticed_once(net, monkeypatch, capfd):
    monkeypatch.setattr(fluid.core, "_told", set())
    monkeypatch.setenv("PADDLE_TRAINER_IDS", "1")
    fluid.optimizer.SGD(0.1).minimize(net.loss)
    for _ in range(2):
        with pytest.raises(ValueError):
            fluid.DistributeTranspiler().transpile(0, pservers="")
    assert capfd.readouterr().err == (
        "PADDLE_TRAINER_IDS is set, but nothing reads it; did you mean "
        "PADDLE_TRAINER_ID?\n")


def test_what_is_asked_for_too_early_or_twice(net):
    fluid.optimizer.SGD(0.1).minimize(net.loss)
    t = fluid.DistributeTranspiler()
    for ask in (t.get_trainer_program, lambda: t.get_pserver_program(A)):
        with pytest.raises(RuntimeError, match="call transpile first"):
            ask()
    t.transpile(0, pservers=A)
    with pytest.raises(ValueError, match="the program was transpiled before"):
        t.transpile(0, pservers=A)
    with pytest.raises(ValueError, match='"ps9:1" is not among the servers '
                       + A):
        t.get_pserver_program("ps9:1")
    with pytest.raises(TypeError, match="endpoint is None"):
        t.get_startup_program(None)
    assert t.get_pserver_program(" %s " % A)  # blanks do not count


# --- the config --------------------------------------------------------------

def config_of(**fields):
    config = fluid.DistributeTranspilerConfig()
    for name, value in fields.items():
        setattr(config, name, value)
    return config


def test_fields_have_fluids_defaults():
    config = fluid.DistributeTranspilerConfig()
    assert (config.slice_var_up, config.split_method, config.min_block_size,
            config.enable_dc_asgd, config.mode, config.print_log,
            config.wait_port, config.runtime_split_send_recv,
            config.sync_mode) == (True, None, 8192, False, "pserver", False,
                                  True, False, True)


@pytest.mark.parametrize("name,near", [
    ("slice_var", "slice_var_up"), ("sync_mod", "sync_mode"),
    ("split_methods", "split_method"), ("syncmode", "sync_mode")])
def test_a_misspelt_field(name, near):
    with pytest.raises(AttributeError, match="has no field '%s'; did you mean "
                       "%s" % (name, near)):
        setattr(fluid.DistributeTranspilerConfig(), name, True)


def test_fields_for_gpus_are_taken_and_explained():
    with pytest.warns(UserWarning, match="use_hierarchical_allreduce is for "
                      "GPUs"):
        config = config_of(use_hierarchical_allreduce=True)
    assert config.use_hierarchical_allreduce is True
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config_of(nccl_comm_num=2, use_hierarchical_allreduce=False)


def test_sync_mode_of_the_config_counts(net):
    t = cut(net, config=config_of(sync_mode=False))
    assert sends(net.main) == ASYNC and t.sync_mode is False
    (op,) = t.get_pserver_program(A).global_block().ops
    assert op.attr("sync_mode") is False


def test_sync_mode_as_an_argument_wins(net):
    cut(net, config=config_of(sync_mode=False), sync_mode=True)
    assert len(sends(net.main)) == 3 and sends(net.main) != ASYNC


def test_parameters_stay_whole_or_are_cut_fine(net):
    t = cut(net, config=config_of(slice_var_up=False))
    assert sorted(held(t.get_pserver_program(A))
                  + held(t.get_pserver_program(B))) == ["fc_b", "fc_w"]


def test_small_pieces(net):
    t = cut(net, config=config_of(min_block_size=100))
    assert held(t.get_pserver_program(B)) == ["fc_b.block1", "fc_w.block1"]


@pytest.mark.parametrize("fields,sentence", [
    (dict(enable_dc_asgd=True, sync_mode=False), "enable_dc_asgd is not"),
    (dict(geo_sgd_mode=True, sync_mode=False), "geo_sgd_mode is not supported")])
def test_what_comes_later(net, fields, sentence):
    fluid.optimizer.SGD(0.1).minimize(net.loss)
    t = fluid.DistributeTranspiler(config_of(**fields))
    with pytest.raises(ValueError, match=sentence):
        t.transpile(0, pservers=SERVERS, trainers=2)


# --- without servers ---------------------------------------------------------

def test_nccl2_mode_joins_ranks_in_the_startup_program(net):
    fluid.optimizer.SGD(0.1).minimize(net.loss)
    before = types(net.main.global_block())
    t = fluid.DistributeTranspiler(config_of(mode="nccl2"))
    t.transpile(1, trainers=SERVERS, current_endpoint=B)
    assert types(net.main.global_block()) == before
    last = net.startup.global_block().ops[-1]
    assert last.type == "gen_nccl_id" and last.attr("trainer_id") == 1
    assert last.attr("trainers") == [A, B]
    assert t.get_trainer_program() is net.main
    assert net.main._trainers_endpoints == [A, B]
    with pytest.raises(RuntimeError, match="no servers in mode 'nccl2'"):
        t.get_pserver_program(A)


@pytest.mark.parametrize("mode", [None, "local_sgd"])
def test_collective_mode_puts_calls_into_the_program(net, mode):
    fluid.optimizer.SGD(0.1).minimize(net.loss)
    t = fluid.DistributeTranspiler(config_of(mode="collective",
                                             collective_mode=mode))
    t.transpile(0, trainers=[A, B])
    ops = types(net.main.global_block())
    assert "c_allreduce_sum" in ops and ("assign" in ops) == bool(mode)
    assert types(net.startup.global_block()).count("c_broadcast") == 2


@pytest.mark.parametrize("kind", ["GradAllReduce", "LocalSGD"])
def test_the_collective_transpilers_do_the_same(net, kind):
    fluid.optimizer.SGD(0.1).minimize(net.loss)
    transpiler = getattr(fluid.transpiler.collective, kind)(nrings=1)
    transpiler.transpile(None, None, 1, [A, B], B)
    assert types(net.main.global_block()).count("c_sync_comm_stream") == 1
    assert net.startup.global_block().ops[-1].type == (
        "assign" if kind == "LocalSGD" else "c_sync_comm_stream")


@pytest.mark.parametrize("asked,error,sentence", [
    (dict(trainers=2), TypeError, "trainers is 2, expected all ranks"),
    (dict(trainers=""), ValueError, "trainers is empty"),
    (dict(trainers=SERVERS, current_endpoint=B), ValueError,
     "trainer_id 0 is %s, but current_endpoint is %s" % (A, B))])
def test_ranks_that_cannot_be_are_named(net, asked, error, sentence):
    fluid.optimizer.SGD(0.1).minimize(net.loss)
    with pytest.raises(error, match=sentence):
        fluid.DistributeTranspiler(config_of(mode="nccl2")).transpile(
            0, **asked)
    with pytest.raises(ValueError, match="mode is 'ring', expected"):
        fluid.DistributeTranspiler(config_of(mode="ring")).transpile(
            0, trainers=SERVERS)


def test_print_log_says_who_holds_what(net, capfd):
    cut(net, config=config_of(print_log=True))
    out, err = capfd.readouterr()
    assert A + " holds learning_rate_0, fc_b, fc_w.block1\n" in err
    assert out == ""


# --- dispatchers -------------------------------------------------------------

class All:
    def __init__(self, names):
        self.vars = [type("V", (), {"name": n})() for n in names]


def test_round_robin_goes_on():
    d = RoundRobin([A, B])
    pieces = All("abc").vars
    assert d.dispatch(pieces) == [A, B, A]
    assert d.dispatch(pieces) == [B, A, B]
    d.reset()
    assert d.dispatch(pieces[:1]) == [A] and d.eps == [A, B]


def test_hash_name_deals_as_the_library_does(net):
    eps = ["h%d:1" % i for i in range(7)]
    fluid.optimizer.SGD(0.1).minimize(net.loss)
    t = fluid.DistributeTranspiler(config_of(split_method=HashName,
                                             min_block_size=1000))
    t.transpile(0, pservers=",".join(eps), trainers=1)
    found = {name: e for e in eps for name in held(t.get_pserver_program(e))}
    assert len(found) == 8
    names = sorted(found)
    assert HashName(eps).dispatch(All(names).vars) == [found[n]
                                                       for n in names]


def test_a_dispatcher_of_ones_own_is_asked(net):
    asked = []

    class Last(PSDispatcher):
        def dispatch(self, varlist):
            asked.extend(v.name for v in varlist)
            return [self._eps[-1]] * len(varlist)

    t = cut(net, config=config_of(split_method=Last))
    assert asked == ["fc_b", "fc_w.block0", "fc_w.block1"]
    assert held(t.get_pserver_program(B)) == asked
    assert held(t.get_pserver_program(A)) == []


def test_a_function_may_deal(net):
    t = cut(net, split_method=lambda varlist, eps: [eps[1]] * len(varlist))
    assert held(t.get_pserver_program(A)) == []


@pytest.mark.parametrize("result,kind,sentence", [
    ([A], ValueError, "has 3 variables and gives 1 endpoints"),
    (["x:1"] * 3, ValueError, '"fc_b" on "x:1", which is not among'),
    (None, TypeError, ""), (ZeroDivisionError, ZeroDivisionError, "")])
def test_a_dispatcher_that_fails(net, result, kind, sentence):
    class Wrong(PSDispatcher):
        def dispatch(self, varlist):
            if isinstance(result, type):
                raise result()
            return result

    with pytest.raises(kind, match=sentence):
        cut(net, config=config_of(split_method=Wrong))
    with pytest.raises(NotImplementedError, match="must define dispatch"):
        PSDispatcher([A]).dispatch([])


# --- around it ---------------------------------------------------------------

def test_a_distributed_table_is_found():
    table = fluid.distribute_lookup_table
    with fresh() as net:
        ids = fluid.layers.data("ids", [1], dtype="int64", lod_level=1)
        rows = fluid.layers.embedding(ids, [100, 4], is_sparse=True,
                                      is_distributed=True, param_attr="emb")
        net.loss = fluid.layers.mean(rows)
        fluid.optimizer.SGD(0.1).minimize(net.loss)
        assert table.find_distributed_lookup_table(net.main) == "emb"
        assert table.find_distributed_lookup_table_inputs(
            net.main, "emb") == [ids]
        assert table.find_distributed_lookup_table_outputs(
            net.main, "emb") == [rows]
        assert not table.find_distributed_lookup_table_inputs(net.main, "w")
        t = fluid.DistributeTranspiler()
        t.transpile(0, pservers=SERVERS, trainers=2)
        assert t.has_distributed_lookup_table and t.table_name == "emb"
        assert net.main._distributed_lookup_table == "emb"
        assert table.find_distributed_lookup_table(net.startup) is None


def test_of_several_distributed_tables_the_first_is_found():
    find = fluid.distribute_lookup_table.find_distributed_lookup_table
    with fresh() as net:
        ids = fluid.layers.data("ids", [1], dtype="int64")
        rows = [fluid.layers.embedding(ids, [100, 4], is_sparse=True,
                                       is_distributed=True, param_attr=name) for name in ("b", "a")]
        net.loss = fluid.layers.mean(fluid.layers.concat(rows))
        fluid.optimizer.SGD(0.1).minimize(net.loss)
        assert find(net.main) == "b"
        t = fluid.DistributeTranspiler()
        t.transpile(0, pservers=SERVERS, trainers=2)
        assert t.has_distributed_lookup_table and t.table_name == "b"


def test_operators_are_found_and_taken_out(net):
    details, block = fluid.transpiler.details, net.main.global_block()
    first = details.find_op_by_input_arg(block, "x")
    last = details.find_op_by_output_arg(block, net.loss.name, reverse=True)
    assert (block.ops[first].type, block.ops[last].type) == ("mul", "mean")
    assert details.find_op_by_input_arg(block, "nobody") == -1
    assert details.find_op_by_output_arg(block, "nobody") == -1
    details.delete_ops(block, [block.ops[last]])
    assert details.find_op_by_output_arg(block, net.loss.name) == -1


def test_an_optimizer_outlives_the_program_it_built_on(net):
    optimizer = fluid.optimizer.Momentum(0.1, 0.9)
    cut(net, optimizer)
    gc.collect()
    assert optimizer._global_learning_rate(net.main).name == "learning_rate_0"
    param = net.params_grads[0][0]
    velocity = optimizer._get_accumulator("velocity", param)
    assert velocity.name == "fc_w_velocity_0"


def test_sets_grow_together():
    sets = fluid.transpiler.details.UnionFind("abcd")
    assert not sets.is_connected("a", "b")
    sets.union("a", "b")
    sets.union("b", "c")
    assert sets.is_connected("a", "c") and not sets.is_connected("a", "d")
    assert sets.find("e") == "e"


def test_what_plans_do_anyway_is_accepted(net):
    t = fluid.transpiler.InferenceTranspiler()
    before = types(net.main.global_block())
    t.transpile(net.main, fluid.CPUPlace(), fluid.Scope())
    assert types(net.main.global_block()) == before
    with pytest.raises(TypeError, match="program must be a Program"):
        t.transpile(3, fluid.CPUPlace())
    with pytest.raises(TypeError, match="scope should be"):
        t.transpile(net.main, fluid.CPUPlace(), 3)
