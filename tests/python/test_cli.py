# SPDX-License-Identifier: Apache-2.0
"""The paddle command: slips of those who type it."""
import os
import re
import shutil
import subprocess

import pytest

from cluster import LIMIT


def paddle(*words, **env):
    """Exit code, stdout and stderr of the command; no variable of a job but
    those given."""
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith(("PADDLE_", "TRAIN", "PSERVER", "FLUID_"))}
    done = subprocess.run(["paddle", *words], env={**clean, **env}, text=True,
                          capture_output=True, timeout=LIMIT)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("words, sentence", [
    (["lanch"], 'there is no command "lanch"; did you mean paddle launch?'),
    (["help", "versoin"],
     'there is no command "versoin"; did you mean paddle version?'),
    (["wyh"], 'there is no command "wyh"; did you mean paddle why?'),
    (["foo"], 'there is no command "foo"; see paddle help'),
    (["launch", "--wroker_num", "2", "x.py"],
     "launch has no flag --wroker_num; did you mean --worker_num?"),
    (["launch", "--worker-nun=2", "x.py"],
     "launch has no flag --worker-nun; did you mean --worker_num?"),
    (["launch", "--colour", "x.py"],
     "launch has no flag --colour; see paddle help launch"),
    (["version", "--verbose"],
     "version has no flag --verbose; see paddle help version"),
    (["pserver", "--prot=7164"],
     "pserver has no flag --prot; did you mean --port?"),
    (["pserver", "--port=70000"],
     "pserver: --port is 70000, expected 1 to 65535"),
    (["pserver", "--port", "65530", "--ports-num=9"],
     "pserver: --port is 65530 with 10 ports: the last would be 65539, which "
     "is more than 65535"),
    (["pserver", "--rdma_tcp=rdma"],
     'pserver: --rdma_tcp is "rdma", expected tcp'),
    (["pserver", "--port"], "--port needs a value; see paddle help pserver"),
    (["pserver", "--port=9999999999"],
     '--port is "9999999999", expected a smaller number'),
    (["pserver", "--port=7164x"],
     '--port is "7164x", expected a whole number'),
    (["data", "check", "--criteo", "--show=17", "file"],
     "data: --show is 17, expected 0 to 16"),
    (["data", "check", "--criteo", "--slots=x:u64", "file"],
     "data check takes either --slots or --criteo, got both: --criteo says "
     "what a line has"),
    (["read"], "read: say which format: paddle read criteo <IN >OUT"),
    (["read", "criteo", "file"],
     'read takes one argument, got "file" as well; it reads stdin and writes '
     "stdout: paddle read criteo <IN >OUT"),
    (["k8s", "--port=0", "x.py"],
     "k8s: --port is 0, expected a number from 1 to 65535"),
    (["train", "--config=trainer_config.py"],
     'there is no command "train" any more: run the training script itself: '
     "python train.py (a v1 configuration must be rewritten with paddle.v2)"),
])
def test_a_misspelt_word_gets_one_sentence(words, sentence):
    assert paddle(*words) == (2, "", "paddle: %s\n" % sentence)


@pytest.mark.parametrize("words", ["ckpt ls", "ckpt verify", "ckpt diff",
                                   "digest"])
def test_a_folder_that_is_missing_is_named(tmp_path, words):
    """Not said to be one that Fluid did not save."""
    file = tmp_path / "file"
    file.write_text("")
    for path, sentence in (
            ("/no/such", "/no/such does not exist, expected a saved folder"),
            (str(file), "%s: cannot list it: Not a directory (expected a saved "
             "folder)" % file)):
        folders = [path] * (2 if "diff" in words else 1)
        assert paddle(*words.split(), *folders) == (
            1, "", "paddle: %s: %s\n" % (words, sentence))


def test_state_rm_names_what_it_was_given(tmp_path):
    todo = "paddle state ls lists the states and journals"
    assert paddle("state", "rm", "/no/such") == (
        1, "", "paddle: state rm: /no/such does not exist; %s\n" % todo)
    assert paddle("state", "rm", str(tmp_path)) == (
        1, "", "paddle: state rm: %s is neither the state nor the journal of "
        "a server; %s\n" % (tmp_path, todo))


@pytest.mark.parametrize("address, sentence", [
    ("127.0.0.1", 'endpoint "127.0.0.1" has no port, expected host:port'),
    ("127.0.0.1:0", 'endpoint "127.0.0.1:0" has the port "0", expected a '
     "number from 1 to 65535"),
    ("nowhere.invalid:6170",
     "no server answers at nowhere.invalid:6170 (name not known)"),
])
def test_why_tells_what_is_wrong_with_an_address(address, sentence):
    assert paddle("why", address) == (1, "", "paddle: why: %s\n" % sentence)


def test_env_names_the_flag_that_is_wrong():
    assert paddle("env", "--trainers", "0") == (
        1, "", "paddle: env: argument trainers is 0, expected 1 or more\n")


@pytest.mark.parametrize("wrong, right", [
    ("PADDLE_TRANING_ROLE", "PADDLE_TRAINING_ROLE"),
    ("TRANING_ROLE", "TRAINING_ROLE"),
    ("SEVER_ENDPOINT", "SERVER_ENDPOINT"),
])
def test_env_tells_of_a_misspelt_variable(wrong, right):
    code, out, _ = paddle("env", **{wrong: "PSERVER"})
    assert code == 0 and out.endswith(
        "note: %s is set, but nothing reads it; did you mean %s?\n"
        % (wrong, right))


def test_env_shows_settings_that_are_set():
    _, out, _ = paddle("env", FLUID_STAGED="1000000")
    assert "settings     FLUID_STAGED=1000000\n" in out


@pytest.mark.parametrize("words, sentence", [
    ("k8s --cpu two x.py",
     'k8s: --cpu is "two", expected a number of CPUs such as 2 or 500m'),
    ("k8s --memory 4GB x.py",
     'k8s: --memory is "4GB", expected bytes such as 4Gi or 512Mi'),
    ("k8s --out /proc/x x.py", "/proc/x: cannot make the directory: No such "
     "file or directory (choose another folder with --out)"),
    ("launch no-such-program",
     "launch: no-such-program cannot be started: it is not in PATH; name a "
     "script that ends in .py, a program in PATH, or the path of a program, "
     "such as ./train"),
    ("launch --python no-such-python %s" % __file__,
     "launch: no-such-python cannot be started: it is not in PATH; name "
     "another Python with --python or PADDLE_PYTHON"),
    ("launch --job_dispatch_package . true",
     "launch: --job_dispatch_package is only for jobs on other hosts: name "
     "them with --hosts or --hostfile, or use --slurm"),
    ("launch --ssh myssh true",
     "launch: --ssh is only for jobs on other hosts: name them with --hosts or "
     "--hostfile, or use --slurm"),
    ("launch --hosts a --ssh it's true",
     'launch: --ssh is "it\'s", expected a command and its flags, with quotes '
     'as in a shell: "ssh -i \'my key\'"'),
    ("launch --selected_gpus 0,1 true",
     "launch: --selected_gpus is only for --mode collective, where it says how "
     "many trainers start; with servers, say --worker_num"),
    ("resume x.py", "resume: folder x.py: Not a directory; name the folder of "
     "the job's snapshots (its FLUID_SNAPSHOT_DIR)"),
    ("env --role WORKER",
     'env: argument role is "WORKER", expected TRAINER or PSERVER'),
])
def test_a_wrong_value_gets_a_sentence_that_helps(tmp_path, monkeypatch, words,
                                                  sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.py").write_text("")
    assert paddle(*words.split()) == (1, "", "paddle: %s\n" % sentence)


@pytest.mark.parametrize("words, sentence", [
    ("--hosts a,b --hostfile hosts", "--hosts and --hostfile both name the "
     "hosts; leave out one of the two"),
    ("--mode collective --server_num 1",
     "--mode collective has no servers; leave out --server_num"),
    ("--mode collective --selected_gpus 0,1 --nproc_per_node 3",
     "--selected_gpus names 2 trainers, but --worker_num is 3; leave out one "
     "of the two"),
    ("--mode collective --endpoints a:1,b:1 --trainer_num 3",
     "--endpoints names 2 trainers, but --worker_num is 3; leave out one of "
     "the two"),
    ("--mode collective --endpoints a:1,b:1 --selected_gpus 0,1,2",
     "--selected_gpus names 3 trainers, but --endpoints names 2; leave out one "
     "of the two"),
    ("--endpoints a:1 --server_num 2", "--endpoints names 1 server, but "
     "--server_num is 2; leave out one of the two"),
    ("--servers=a:1,b:1,c:1 --server_num=2", "--endpoints names 3 servers, but "
     "--server_num is 2; leave out one of the two"),
])
def test_launch_refuses_flags_of_which_one_has_no_effect(words, sentence):
    assert paddle("launch", *words.split(), "true") == (
        2, "", "paddle: launch: %s\n" % sentence)


def test_launch_takes_flags_that_agree():
    code, _, err = paddle("launch", "--dry_run", "--mode", "collective",
                          "--selected_gpus", "3,5", "--worker_num", "2", "true")
    assert code == 0 and "FLAGS_selected_gpus=5" in err


def test_the_command_of_ssh_may_have_quotes():
    code, _, err = paddle("launch", "--dry_run", "--hosts", "a", "--ssh",
                          "ssh -i 'my key' -oUser=\"a b\"", "true")
    assert code == 0 and "    ssh -i 'my key' '-oUser=a b' -T " in err


def test_launch_refuses_a_number_of_processes_that_is_a_slip():
    for words, counts in ((["--server_num", "1000000"],
                           "1000000 servers and 2 trainers"),
                          (["--worker_num=1000000"],
                           "2 servers and 1000000 trainers")):
        assert paddle("launch", *words, "true") == (
            1, "", "paddle: launch: %s on one host were asked for, expected "
            "at most 1000 of each; see --server_num and --worker_num\n"
            % counts)


def test_env_tells_of_collective_mode():
    code, out, _ = paddle("env", PADDLE_TRAINER_IPS="127.0.0.1,127.0.0.2",
                          PADDLE_TRAINER_ID="0")
    assert code == 0 and "mode         collective" in out
    assert "peers        127.0.0.1:6174  (PADDLE_TRAINER_IPS)" in out


@pytest.mark.parametrize("env, sentence", [
    (dict(PADDLE_PSERVER_IPS="h", PADDLE_PSERVER_PORT="0"),
     'PADDLE_PSERVER_IPS and PADDLE_PSERVER_PORT: "h:0" has the port "0", '
     "expected a number from 1 to 65535"),
    (dict(PADDLE_PSERVER_ENDPOINTS=":6174"),
     'PADDLE_PSERVER_ENDPOINTS: ":6174" has no host, expected host:port'),
    (dict(PADDLE_TRAINERS="0"), "PADDLE_TRAINERS is 0, expected 1 or more"),
])
def test_env_refuses_what_no_job_can_have(env, sentence):
    assert paddle("env", **env) == (1, "", "paddle: env: %s\n" % sentence)


@pytest.mark.parametrize("flags, sentence", [
    ("--endpoints h:0", 'launch: server "h:0" has the port "0", expected a '
     "number from 1 to 65535"),
    ("--endpoints :6170", 'launch: server ":6170" has no host, expected '
     "host:port"),
    ("--start_port 70000", "launch: --start_port is 70000, expected a number "
     "from 1 to 65535"),
    ("--start_port 65535", 'launch: server "127.0.0.1:65536" has the port '
     '"65536", expected a number from 1 to 65535'),
])
def test_launch_refuses_a_port_that_cannot_be(flags, sentence):
    assert paddle("launch", *flags.split(), "true") == (
        1, "", "paddle: %s\n" % sentence)


def test_bash_completes_commands_and_flags(tmp_path):
    (tmp_path / "completion").write_text(paddle("help", "--bash")[1])

    def complete(*words):
        said = subprocess.run(
            ["bash", "-c", 'source "$0"; COMP_WORDS=("$@"); '
             'COMP_CWORD=$(($# - 1)); _paddle; echo "${COMPREPLY[@]}"',
             str(tmp_path / "completion"), *words],
            capture_output=True, text=True, check=True)
        return said.stdout.split()

    assert complete("paddle", "la") == ["launch"]
    assert complete("paddle", "launch", "--job_d") == ["--job_dispatch_package"]
    assert "--worker_num" in complete("paddle", "launch", "--")
    assert complete("paddle", "help", "ve") == ["version"]


def commands():
    """The commands that paddle help lists."""
    return re.findall(r"^  (\w+) ", paddle("help")[1], re.M)


def test_help_lists_every_command_under_a_heading():
    _, out, _ = paddle("help")
    found = commands()
    assert len(found) == len(set(found)) > 10
    assert found.index("launch") < found.index("show") < found.index("agent")
    assert "\nrun a job\n  k8s" in out


def test_help_fits_into_a_terminal():
    for name in ["", *commands()]:
        code, out, _ = paddle("help", *name.split())
        assert code == 0 and out.startswith("usage: paddle " + name)
        too_long = [line for line in out.splitlines() if len(line) > 80
                    and not line.startswith(("usage:", "  paddle "))]
        assert not too_long
        assert paddle(name or "help", "--help")[0] == 0


def test_a_page_of_one_command_has_its_examples():
    _, out, _ = paddle("help", "launch")
    shown = re.findall(r"^  (\w+ .*)$", out[out.index("Examples:"):], re.M)
    assert "paddle launch train.py" in shown
    man = paddle("help", "--man", "launch")[1]
    assert man.startswith(".TH paddle\\-launch 1") and ".SH EXAMPLES" in man


@pytest.mark.skipif(not shutil.which("zsh"), reason="needs zsh")
def test_zsh_can_read_its_completion(tmp_path):
    (tmp_path / "_paddle").write_text(paddle("help", "--zsh")[1])
    assert subprocess.run(["zsh", "-n", tmp_path / "_paddle"],
                          capture_output=True).stderr == b""


@pytest.mark.skipif(not shutil.which("groff"), reason="needs groff")
def test_groff_has_no_complaint_of_the_manual_pages():
    for name in ["", *commands()]:
        page = paddle("help", "--man", *name.split())[1]
        done = subprocess.run(["groff", "-man", "-Tascii", "-ww"], input=page,
                              capture_output=True, text=True)
        assert done.stderr == "" and "User Commands" in done.stdout


def test_the_manual_page_and_zsh_know_every_flag():
    flags = re.findall(r"^  (--?\w+)", paddle("help", "launch")[1], re.M)
    man, zsh = paddle("help", "--man")[1], paddle("help", "--zsh")[1]
    assert len(flags) > 20 and man.startswith(".TH PADDLE 1")
    for flag in flags:
        assert ".B " + flag.replace("-", "\\-") + "\n" in man \
            or ".B " + flag.replace("-", "\\-") + " " in man, flag
        assert "'%s[" % flag in zsh, flag
    assert zsh.startswith("#compdef paddle")


@pytest.mark.parametrize("name, value, sentence", [
    ("FLUID_DURABILITY", "disk", "expected auto, memory, process or host"),
    ("FLUID_LEASE", "0", "expected more than 0"),
    ("FLUID_STAGED", "1GB", "expected a number of at least 0"),
    ("FLUID_OVERLAP", "maybe", "expected 0 or 1"),
    ("FLUID_STATUS", "lots", "expected off, lines, json or bar"),
])
def test_a_setting_that_processes_refuse_is_refused_before(name, value,
                                                           sentence):
    code, out, err = paddle("env", **{name: value})
    assert (code, out) == (1, "") and sentence in err and name in err
    code, out, err = paddle("launch", "--dry_run", "true", **{name: value})
    assert (code, out) == (1, "") and sentence in err and name in err
    code, out, err = paddle("pserver", "--port=70000", **{name: value})
    assert (code, out) == (2, "") and sentence in err and name in err
