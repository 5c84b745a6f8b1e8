# SPDX-License-Identifier: Apache-2.0
"""paddle.init: arguments, PADDLE_INIT_* and what is refused."""
import pytest

import paddle.v2 as paddle
from paddle.v2 import _flags


@pytest.fixture(autouse=True)
def settings(monkeypatch):
    """No settings before the test, and none after it."""
    monkeypatch.setattr(_flags, "_settings", None)


TABLE = {"use_gpu": False, "trainer_count": 1, "port": 7164, "ports_num": 1,
         "ports_num_for_sparse": 1, "num_gradient_servers": 1,
         "trainer_id": 0, "pservers": "127.0.0.1"}
OTHERS = {"use_gpu": False, "trainer_count": 2, "port": 7264, "ports_num": 3,
          "ports_num_for_sparse": 2, "num_gradient_servers": 4,
          "trainer_id": 3, "pservers": "10.0.0.1,10.0.0.2"}
WRONG = {"use_gpu": "True", "trainer_count": "3", "port": "9",
         "ports_num": "4", "ports_num_for_sparse": "5", "trainer_id": "6",
         "num_gradient_servers": "7", "pservers": "127.0.0.99"}


def settings_now(names=TABLE):
    return {name: _flags.get(name) for name in names}


def set_env(monkeypatch, values):
    for name, value in values.items():
        monkeypatch.setenv("PADDLE_INIT_" + name.upper(), str(value))


def test_defaults_are_those_of_the_table():
    paddle.init()
    assert settings_now() == TABLE


def test_every_row_comes_from_the_environment(monkeypatch):
    set_env(monkeypatch, OTHERS)
    paddle.init()
    assert settings_now() == OTHERS


def test_every_row_comes_from_arguments():
    paddle.init(**OTHERS)
    assert settings_now() == OTHERS


def test_arguments_win_over_an_environment_that_is_wrong(monkeypatch):
    set_env(monkeypatch, WRONG)
    paddle.init(**OTHERS)
    assert settings_now() == OTHERS


def test_one_argument_leaves_the_others_to_the_environment(monkeypatch):
    set_env(monkeypatch, OTHERS)
    paddle.init(port=7364)
    assert settings_now() == {**OTHERS, "port": 7364}


def test_a_process_without_init_has_the_environment(monkeypatch):
    monkeypatch.setenv("PADDLE_INIT_TRAINER_COUNT", "2")
    assert _flags.get("trainer_count") == 2


@pytest.mark.parametrize("value", [False, "False", "false", 0, "0", "no"])
def test_use_gpu_false_has_many_spellings(value):
    paddle.init(use_gpu=value)
    assert _flags.get("use_gpu") is False


@pytest.mark.parametrize("value", [True, "True", "1"])
def test_a_gpu_is_refused(value):
    with pytest.raises(RuntimeError, match=r"use_gpu=True\) needs a GPU, and "
                       "this build has .* use use_gpu=False$"):
        paddle.init(use_gpu=value)


def test_a_gpu_of_the_environment_is_refused(monkeypatch):
    monkeypatch.setenv("PADDLE_INIT_USE_GPU", "True")
    with pytest.raises(RuntimeError, match="^PADDLE_INIT_USE_GPU=True needs a "
                       "GPU, .* use PADDLE_INIT_USE_GPU=False$"):
        paddle.init()


@pytest.mark.parametrize("given,words", [
    (dict(trainer_count=0), "trainer_count is 0, expected 1 to"),
    (dict(trainer_count="two"), "trainer_count is 'two', expected a whole"),
    (dict(trainer_count=1.5), "trainer_count is 1.5, expected a whole"),
    (dict(port=70000), "port is 70000, expected 1 to 65535"),
    (dict(ports_num=0), "ports_num is 0, expected 1 to"),
    (dict(ports_num_for_sparse=-1), "ports_num_for_sparse is -1, expected 0"),
    (dict(num_gradient_servers="x"), "num_gradient_servers is 'x', expected"),
    (dict(trainer_id=2, num_gradient_servers=2), "ids of trainers are 0 to 1"),
    (dict(pservers="a,,b"), "pservers is 'a,,b', expected hosts"),
    (dict(use_gpu="maybe"), "use_gpu is 'maybe', expected True or False"),
    (dict(trainer_cout=1), "no setting trainer_cout .an argument.; did you "
                           "mean trainer_count"),
])
def test_a_wrong_argument_is_named(given, words):
    with pytest.raises(ValueError, match=words):
        paddle.init(**given)


@pytest.mark.parametrize("name,value,words", [
    ("PADDLE_INIT_PORT", "seven", "PADDLE_INIT_PORT is 'seven', expected a"),
    ("PADDLE_INIT_PROT", "7164", "no setting prot .from the environment's "
                                 "PADDLE_INIT_PROT.; did you mean port"),
])
def test_a_wrong_variable_is_named(monkeypatch, name, value, words):
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=words):
        paddle.init()


def test_servers_are_every_host_with_every_port():
    paddle.init(pservers="10.0.0.1, 10.0.0.2", port=7264)
    assert _flags.endpoints() == (["10.0.0.1:7264", "10.0.0.2:7264"],
                                  ["10.0.0.1:7265", "10.0.0.2:7265"])
    paddle.init(pservers="a", port=7264, ports_num=2, ports_num_for_sparse=0)
    assert _flags.endpoints() == (["a:7264", "a:7265"], [])
