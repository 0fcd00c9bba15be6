"""kbctl against a stand-in daemon: outputs, exit codes, terminals, and daemons that misbehave."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from kbctl_fake import KBCTL, Failure, environment, fake, kbctl  # noqa: E402,F401

SAMPLE = "Wed 8 Jan 09:53:59 GMT 2014 compass ebizzy v3.12.6 mean-4:2317 good"
BAD = "Wed 8 Jan 10:07:12 GMT 2014 compass ebizzy v3.12.7-rc2 mean-4:1631 bad"

KEYS = {"keys": [
    {"section": "job", "name": "name", "type": "string", "required": True, "help": "a name"},
    {"section": "range", "name": "good", "type": "string", "required": True, "help": "good end"},
    {"section": "build", "name": "timeout", "type": "duration", "default": "2h", "help": "limit"},
    {"section": "boot", "name": "accel", "type": "enum", "choices": "auto|kvm|tcg",
     "default": "auto", "help": "how"},
    {"section": "boot", "name": "timeout", "type": "duration", "default": "5m", "help": "limit"},
]}


def entry(number, text=SAMPLE, kind="run"):
    return {"id": number, "at": 1389174839000, "kind": kind, "text": text}


def job(number, **more):
    now = int(time.time() * 1000)
    return {"job": number, "name": f"job-{number}", "state": "running", "result": None,
            "reason": None, "owner": "ann", "submitted": now - 200000, "started": now - 190000,
            "ended": 0, **more}


# Usage and the daemon's absence


@pytest.mark.parametrize("args, words", [
    (["nonsense"], 'no command "nonsense"'),
    (["show"], "show needs JOB"),
    (["show", "1", "2"], 'does not take the argument "2"'),
    (["show", "x"], '"x" is no job'),
    (["show", "0"], '"0" is no job'),
    (["list", "--follow"], "no option --follow"),
    (["list", "--limit", "x"], "--limit needs a number"),
    (["mark", "1", "v6.1", "ugly"], "a verdict is good, bad, skip or none"),
    (["retire", "last"], '"last" is no run'),
    (["log", "--git", "-f", "1"], "do not go together"),
    (["submit"], "submit needs a job file"),
    (["submit", "nowhere.job"], "cannot find nowhere.job"),
    (["submit", "a.job", "--good", "v1"], "not both"),
    (["help", "nonsense"], 'no command "nonsense"'),
    (["--socket", "/" + "x" * 200, "list"], "path is longer than"),
])
def test_wrong_use(kbctl, fake, args, words):
    r = kbctl(*args)
    assert r.returncode == 2
    assert r.stderr.startswith("kbctl: ") and words in r.stderr and r.stderr.count("\n") == 1
    assert r.stdout == "" and fake.calls == []


def test_no_command(kbctl):
    r = kbctl()
    assert r.returncode == 2 and r.stderr.startswith("usage: kbctl") and r.stdout == ""


def test_help_and_version(kbctl):
    assert kbctl("--version").stdout.startswith("kbctl ")
    overview = kbctl("--help").stdout
    commands = [line.split()[0] for line in overview.splitlines()
                if line.startswith("  ") and line[2] not in " -"]
    assert len(commands) == 15
    for command in commands:
        r = kbctl(command, "--help")
        assert r.returncode == 0 and r.stdout.startswith(f"usage: kbctl {command} ")
        assert r.stdout == kbctl("help", command).stdout
        assert max(map(len, r.stdout.splitlines())) <= 80


def test_daemon_not_there(kbctl, fake):
    fake.stop()
    r = kbctl("list")
    assert r.returncode == 3
    assert fake.path in r.stderr and "start kbisectd" in r.stderr
    assert r.stderr.count("\n") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
def test_socket_of_others(tmp_path, fake):
    os.chmod(fake.path, 0o600)
    for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        os.chmod(folder, 0o755)
    # The build folder may lie where only its owner gets to.
    program = shutil.copy(KBCTL, tmp_path)
    r = subprocess.run([program, "list"], user=65534, capture_output=True, text=True,
                       env=environment(fake.path))
    assert r.returncode == 4
    assert 'members of the group "root"' in r.stderr


def test_connected_but_silent(kbctl, fake):
    fake.methods["hello"] = lambda connection, params: connection.hang_up()
    r = kbctl("list")
    assert r.returncode == 3 and "lost the connection" in r.stderr


def test_other_protocol(kbctl, fake):
    fake.methods["hello"] = {"name": "kbisectd", "version": "9", "protocol": 2, "host": "h"}
    r = kbctl("list")
    assert r.returncode == 3 and "speaks protocol 2" in r.stderr


def test_refused_connection_says_why(kbctl, fake):
    def full(connection, params):
        connection.line({"jsonrpc": "2.0", "id": None,
                         "error": {"code": 5, "message": "too many connections"}})
        connection.hang_up()
    fake.methods["hello"] = full
    r = kbctl("list")
    assert r.returncode == 3 and r.stderr == "kbctl: too many connections\n"


@pytest.mark.parametrize("code, status", [(1, 5), (2, 4), (3, 2), (4, 7), (5, 3), (-32602, 2), (-32603, 3),
                                          (-32601, 3), (77, 3)])
def test_error_answers(kbctl, fake, code, status):
    fake.methods["show"] = Failure(code, "one sentence\x1b[2J")
    r = kbctl("show", "7")
    assert r.returncode == status
    assert r.stderr == "kbctl: one sentence\\x1b[2J\n" and r.stdout == ""


@pytest.mark.parametrize("garbage", [
    b"\x00\xff\x1b]0;x\x07 rubbish\n", b"[1, 2]\n", b"{\"id\": 2}\n", b"\n", b"{" * 5000 + b"\n",
    b"{\"id\": 2, \"result\": 7}\n", b"HTTP/1.1 400 Bad Request\r\n\r\n"],
    ids=["binary", "array", "no-result", "empty", "deep", "number", "http"])
def test_garbage(kbctl, fake, garbage):
    fake.methods["list"] = lambda connection, params: connection.raw(garbage)
    r = kbctl("list")
    assert r.returncode == 3 and r.stderr.startswith("kbctl: ") and r.stdout == ""
    assert r.stderr.count("\n") == 1 and "\x1b" not in r.stderr


def test_hang_up_within_a_line(kbctl, fake):
    def half(connection, params):
        connection.raw(b'{"jsonrpc": "2.0", "id": 2, "res')
        connection.hang_up()
    fake.methods["list"] = half
    r = kbctl("list")
    assert r.returncode == 3 and "ended within a line" in r.stderr


def test_answer_in_pieces_and_news_before_it(kbctl, fake):
    def slowly(connection, params):
        connection.notify("progress", text="news")
        text = json.dumps({"jsonrpc": "2.0", "id": connection.call_id, "result": {"jobs": [job(3)]}})
        for c in text[:40]:
            connection.raw(c.encode())
        connection.raw(text[40:].encode() + b"\n")
    fake.methods["list"] = slowly
    r = kbctl("list")
    assert r.returncode == 0 and "job-3" in r.stdout


# Lists


def test_list(kbctl, fake):
    fake.methods["list"] = {"jobs": [
        job(12, name="a-name-that-is-far-too-long-to-fit-into-the-table-with-the-rest-of-it"),
        job(11, state="done", result="not-reproducible", ended=int(time.time() * 1000)),
        job(9, state="queued", started=0)]}
    r = kbctl("list")
    lines = r.stdout.splitlines()
    assert r.returncode == 0 and r.stderr == "" and "\x1b" not in r.stdout
    assert lines[0].split() == ["JOB", "NAME", "STATE", "OWNER", "SUBMITTED", "TOOK"]
    assert "..." in lines[1] and " running " in lines[1] and "3 min ago" in lines[1]
    assert "not-reproducible" in lines[2] and lines[3].endswith("-")
    assert max(map(len, lines)) <= 80
    assert len({line.index(word) for line, word in zip(lines[1:], ["ann"] * 3)}) == 1
    assert fake.calls == [("list", {"limit": 20})]


def test_list_options(kbctl, fake):
    fake.methods["list"] = {"jobs": []}
    assert kbctl("list", "--all").stdout == ""
    kbctl("list", "--state=held", "-n5")
    assert fake.calls == [("list", {"limit": 0}), ("list", {"limit": 5, "state": "held"})]


def test_list_json_and_huge(kbctl, fake):
    fake.methods["list"] = {"jobs": [job(n, name="x" * 900) for n in range(10000)]}
    r = kbctl("list", "--all", "--json")
    assert r.returncode == 0 and len(json.loads(r.stdout)["jobs"]) == 10000
    assert len(kbctl("list", "--all").stdout.splitlines()) == 10001


def test_colour_only_on_a_terminal(kbctl, fake):
    fake.methods["list"] = {"jobs": [job(1, state="failed"), job(2, state="done", result="culprit")]}
    t = kbctl.terminal("list")
    assert t.finish() == 0 and "\x1b[31mfailed" in t.text and "\x1b[32mculprit" in t.text
    for extra in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        t = kbctl.terminal("list", **extra)
        assert t.finish() == 0 and "\x1b" not in t.text and "failed" in t.text


def test_terminal_width(kbctl, fake):
    fake.methods["list"] = {"jobs": [job(1, name="n" * 60)]}
    wide, narrow = kbctl.terminal("list", columns=200), kbctl.terminal("list", columns=60)
    assert wide.finish() == 0 and "n" * 60 in wide.text
    assert narrow.finish() == 0
    assert max(map(len, narrow.text.replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines())) <= 60


@pytest.mark.parametrize("where", ["pipe", "terminal"])
def test_escape_sequences(kbctl, fake, where):
    evil = "\x1b]0;title\x07\x1b[2J\u009b31m\u202e\r\nend"
    fake.methods["list"] = {"jobs": [job(1, name=evil, owner=evil, state=evil)]}
    fake.methods["log"] = {"entries": [entry(1, evil), entry(2, evil, "note")], "state": "running"}
    fake.methods["report"] = {"text": evil, "final": True}
    fake.methods["show"] = {**SHOW, "name": evil, "now": evil, "reason": evil, "commit_list": [
        {"id": "1", "label": evil, "subject": evil, "build": "failed", "build_error": evil,
         "runs": [{"run": 1, "outcome": evil, "detail": evil, "dir": evil}]}]}
    fake.methods["status"] = {"version": evil, "host": evil, "uri": evil, "jobs": {evil: 3}}
    fake.methods["benchmarks"] = {"benchmarks": [{"name": evil, "error": evil}]}
    fake.methods["keys"] = {"keys": [{"section": evil, "name": evil, "help": evil, "type": evil}]}
    for args in (["list"], ["log", "1"], ["report", "1"], ["show", "1"], ["status"],
                 ["benchmarks"], ["keys"]):
        if where == "pipe":
            text = kbctl(*args).stdout
        else:
            t = kbctl.terminal(*args, columns=400, NO_COLOR="1")
            assert t.finish() == 0
            text = t.text.replace("\r\n", "\n")
        assert "title\\x07\\x1b[2J" in text, args
        assert not set(text) & set("\x1b\x07\r\u009b\u202e"), args


# One job


SHOW = {
    "job": 7, "name": "ebizzy", "state": "done", "result": "culprit", "owner": "ann", "host": "compass",
    "reason": "3d97ea08 made mean-4 28% lower", "submitted": 1389170000000, "started": 1389170001000,
    "ended": 1389174839000, "good": {"id": "a" * 40, "label": "v3.12.6", "subject": "Linux 3.12.6"},
    "bad": {"id": "b" * 40, "label": "v3.12.7-rc2", "subject": "Linux 3.12.7-rc2"}, "commits": 85,
    "benchmark": "ebizzy", "metric": "mean-4", "better": "higher", "unit": "records/s",
    "threshold": 1974, "text": "[job]\n", "now": "", "steps_left": 0,
    "culprit": {"id": "c" * 40, "label": "3d97ea08", "subject": "x86 idle: Repair regression"},
    "mail": {"state": "sent", "attempts": 1},
    "commit_list": [
        {"id": "a" * 40, "label": "v3.12.6", "subject": "Linux 3.12.6", "role": "good",
         "verdict": "good", "build": "ok", "build_ms": 61000, "median": 2317, "runs": [
             {"run": 31, "outcome": "ok", "value": "2317.00", "retired": False, "boot_ms": 2100,
              "test_ms": 10400, "accel": "tcg", "timing": "virtual", "dir": "/s/31"},
             {"run": 32, "outcome": "ok", "value": "9", "retired": True, "boot_ms": 2000,
              "test_ms": 10000, "accel": "tcg", "timing": "virtual", "dir": "/s/32"}]},
        {"id": "d" * 40, "label": "1a2b3c4d", "subject": "break the build", "role": "candidate",
         "verdict": "skip", "build": "failed", "build_ms": 900, "build_log": "/s/build.log",
         "build_error": "kernel/fork.c:3:1: error: expected ';'", "median": None, "runs": []},
        {"id": "e" * 40, "label": "5e6f7a8b", "subject": "panic", "role": "candidate",
         "verdict": "skip", "reason": "does not boot", "build": "ok", "build_ms": 3000,
         "median": None, "runs": [{"run": 33, "outcome": "panic", "boot_ms": 0, "test_ms": 0,
                                   "detail": "Kernel panic - not syncing", "dir": "/s/33"}]},
    ],
}


def test_show(kbctl, fake):
    fake.methods["show"] = SHOW
    r = kbctl("show", "7")
    assert r.returncode == 0 and r.stderr == ""
    for words in ("done: culprit", "3d97ea08 (x86 idle: Repair regression)", "v3.12.6 (Linux 3.12.6)",
                  "85 in the range", "ebizzy, mean-4 (records/s), higher is better", "1974",
                  "ann, on compass", "took 1 h 20 min", "2317.00", "retired",
                  "1a2b3c4d: does not build: kernel/fork.c:3:1: error: expected ';' (/s/build.log)",
                  "run 33: panic: Kernel panic - not syncing (/s/33)", "5e6f7a8b: does not boot"):
        assert words in r.stdout, words
    tables = [l for l in r.stdout.splitlines() if l[:1] in "Cv15 " and "(" not in l]
    assert max(map(len, tables)) <= 80
    assert json.loads(kbctl("show", "--json", "7").stdout) == SHOW


def test_show_nearly_empty(kbctl, fake):
    fake.methods["show"] = {"job": 7, "state": "queued"}
    r = kbctl("show", "7")
    assert r.returncode == 0 and "queued" in r.stdout


def test_last(kbctl, fake):
    fake.methods["list"] = {"jobs": [job(41)]}
    fake.methods["show"] = SHOW
    assert kbctl("show", "last").returncode == 0
    assert fake.calls == [("list", {"limit": 1}), ("show", {"job": 41})]
    fake.methods["list"] = {"jobs": []}
    r = kbctl("show", "last")
    assert r.returncode == 5 and "no jobs yet" in r.stderr


def test_report(kbctl, fake):
    fake.methods["report"] = {"text": "two\n\tlines", "final": False}
    r = kbctl("report", "7")
    assert (r.returncode, r.stdout, r.stderr) == (0, "two\n\tlines\n", "")


@pytest.mark.parametrize("command", ["cancel", "hold", "resume", "retry"])
def test_change(kbctl, fake, command):
    fake.methods[command] = {"state": "held"}
    r = kbctl(command, "7")
    assert (r.returncode, r.stdout) == (0, "job 7: held\n")
    assert fake.calls == [(command, {"job": 7})]
    assert json.loads(kbctl(command, "--json", "7").stdout) == {"state": "held"}


def test_why(kbctl, fake):
    fake.methods["cancel"] = {"state": "cancelled"}
    kbctl("cancel", "7", "--why", "wrong range")
    assert fake.calls == [("cancel", {"job": 7, "why": "wrong range"})]


def test_retire_and_mark(kbctl, fake):
    fake.methods["retire"] = lambda c, p: {"job": 7, "run": p["run"], "retired": not p.get("undo")}
    fake.methods["mark"] = lambda c, p: {k: p[k] for k in ("job", "commit", "verdict")}
    assert kbctl("retire", "31").stdout == "run 31 of job 7 is retired\n"
    assert kbctl("retire", "31", "--undo").stdout == "run 31 of job 7 counts again\n"
    assert kbctl("mark", "7", "1a2b", "skip").stdout == "job 7: 1a2b is marked skip\n"
    assert fake.calls[1] == ("retire", {"run": 31, "undo": True})


def test_status_benchmarks_keys(kbctl, fake):
    fake.methods["status"] = {
        "version": "0.1", "protocol": 1, "host": "compass", "pid": 42, "uptime_s": 7300,
        "jobs": {"queued": 2, "running": 1, "done": 0}, "connections": 1, "state_dir": "/var/x",
        "uri": "qemu:///system", "slots": 1}
    fake.methods["benchmarks"] = {"benchmarks": [
        {"name": "hackbench", "description": "scheduler and sockets",
         "metrics": [{"name": "time", "unit": "s", "better": "lower"}]},
        {"name": "broken", "error": "broken.conf:3: unknown key \"x\""}]}
    fake.methods["keys"] = KEYS
    text = kbctl("status").stdout
    assert "up 2 h 01 min" in text and "2 queued, 1 running" in text and "qemu:///system" in text
    text = kbctl("benchmarks").stdout
    assert "hackbench" in text and "lower" in text and 'broken.conf:3: unknown key "x"' in text
    text = kbctl("keys").stdout
    assert "[boot]\n  accel        auto|kvm|tcg, default auto\n" in text
    for command in ("status", "benchmarks", "keys"):
        assert json.loads(kbctl(command, "--json").stdout) == fake.methods[command]


# Handing in


def test_submit_file(kbctl, fake, tmp_path):
    fake.methods["submit"] = {"job": 8}
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.job").write_text("[job]\nname = é\n")
    r = kbctl("submit", "sub/a.job")
    assert (r.returncode, r.stdout, r.stderr) == (0, "job 8\n", "")
    assert fake.calls == [("submit", {"text": "[job]\nname = é\n", "where": "sub/a.job",
                                      "dir": str(tmp_path / "sub")})]


def test_submit_stdin(kbctl, fake, tmp_path):
    fake.methods["submit"] = {"job": 8}
    assert kbctl("submit", "-", stdin="[job]\n").returncode == 0
    assert fake.calls == [("submit", {"text": "[job]\n", "where": "stdin", "dir": str(tmp_path)})]


def test_submit_keys(kbctl, fake, tmp_path):
    fake.methods["submit"] = {"job": 8}
    fake.methods["keys"] = KEYS
    r = kbctl("submit", "--name=x y", "--good", "v6.1", "--boot.timeout", "9m")
    assert r.returncode == 0
    assert fake.calls[1] == ("submit", {
        "text": "[job]\nname = x y\n[range]\ngood = v6.1\n[boot]\ntimeout = 9m\n",
        "where": "options", "dir": str(tmp_path)})
    r = kbctl("submit", "--timeout", "9m")
    assert r.returncode == 2 and "--build.timeout or --boot.timeout" in r.stderr
    r = kbctl("submit", "--goood", "9m")
    assert r.returncode == 2 and '"goood"' in r.stderr


def test_submit_refused(kbctl, fake, tmp_path):
    fake.methods["submit"] = Failure(3, "a.job:2: unknown key \"colour\"")
    (tmp_path / "a.job").write_text("[job]\n")
    r = kbctl("submit", "a.job")
    assert (r.returncode, r.stderr) == (2, "kbctl: a.job:2: unknown key \"colour\"\n")


@pytest.mark.parametrize("content, words", [(b"\xff\xfe", "not UTF-8"), (b"a\0b", "not UTF-8"),
                                            (b"x" * (2 << 20), "larger than")],
                         ids=["bytes", "zero", "large"])
def test_submit_rubbish(kbctl, fake, tmp_path, content, words):
    (tmp_path / "a.job").write_bytes(content)
    r = kbctl("submit", "a.job")
    assert r.returncode == 2 and words in r.stderr and fake.calls == []


# The log


def log_of(entries, *news, state="running"):
    """A log method: the entries after `since`, then notifications."""
    def method(connection, params):
        since = params.get("since", 0)
        connection.reply({"entries": [e for e in entries if e["id"] > since], "state": state})
        for name, values in news:
            connection.notify(name, **values)
    return method


def end(state="done", result="culprit", reason="it was 3d97ea08"):
    return "end", {"state": state, "result": result, "reason": reason}


def test_log(kbctl, fake):
    fake.methods["log"] = {"entries": [entry(1), entry(2, "building", "note"), entry(3, BAD)],
                           "state": "running"}
    r = kbctl("log", "7")
    assert (r.returncode, r.stdout) == (0, f"{SAMPLE}\n# building\n{BAD}\n")
    lines = kbctl("log", "--json", "7").stdout.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [1, 2, 3]
    fake.methods["log"]["entries"].append(entry(4, "a b c d boot:panic skip (Kernel panic - no)"))
    t = kbctl.terminal("log", "7", columns=200)
    assert t.finish() == 0 and "mean-4:2317 \x1b[32mgood\x1b[0m\r" in t.text
    assert "boot:panic \x1b[33mskip\x1b[0m (Kernel panic - no)" in t.text


def test_log_git(kbctl, fake):
    fake.methods["log"] = {"text": "git bisect start\n# bad: [b] x\n"}
    r = kbctl("log", "--git", "7")
    assert r.stdout == "git bisect start\n# bad: [b] x\n"
    assert fake.calls == [("log", {"job": 7, "format": "git"})]


@pytest.mark.parametrize("state, result, status", [
    ("done", "culprit", 0), ("done", "set", 1), ("done", "not-reproducible", 1),
    ("done", "inconclusive", 1), ("failed", None, 6), ("cancelled", None, 6), ("strange", None, 3)])
def test_follow_exit(kbctl, fake, state, result, status):
    fake.methods["log"] = log_of([entry(1)], ("progress", {"text": "booting"}),
                                 ("log", entry(2, BAD)), ("later", {}), end(state, result))
    r = kbctl("log", "-f", "7")
    assert (r.returncode, r.stdout) == (status, f"{SAMPLE}\n{BAD}\n")


def test_follow_json(kbctl, fake):
    fake.methods["log"] = log_of([entry(1)], ("log", entry(2)), end())
    lines = kbctl("log", "-f", "--json", "7").stdout.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [1, 2]


def test_follow_of_ended_job(kbctl, fake):
    fake.methods["log"] = {"entries": [entry(1)], "state": "done", "result": "culprit"}
    r = kbctl("log", "-f", "7")
    assert (r.returncode, r.stdout) == (0, f"{SAMPLE}\n")


def test_submit_and_wait(kbctl, fake, tmp_path):
    (tmp_path / "a.job").write_text("[job]\n")
    fake.methods["submit"] = {"job": 8}
    fake.methods["log"] = log_of([entry(1)], end())
    r = kbctl("submit", "--wait", "a.job")
    assert (r.returncode, r.stdout) == (0, "job 8\nculprit: it was 3d97ea08\n")
    r = kbctl("submit", "-f", "a.job")
    assert (r.returncode, r.stdout) == (0, f"job 8\n{SAMPLE}\n")
    fake.methods["log"] = log_of([], end("failed", None, "the disk is full"))
    r = kbctl("submit", "--wait", "--json", "a.job")
    assert r.returncode == 6
    assert json.loads(r.stdout.splitlines()[1])["reason"] == "the disk is full"


def test_status_line_on_a_terminal(kbctl, fake):
    def method(connection, params):
        connection.reply({"entries": [entry(1)], "state": "running"})
        connection.notify("progress", text="building 3f2a \x1b[2J 00:12", fraction=0.5)
        time.sleep(0.3)
        connection.notify("log", **entry(2, BAD))
        connection.notify("end", **end()[1])
    fake.methods["log"] = method
    t = kbctl.terminal("log", "-f", "7", columns=120)
    assert t.finish() == 0
    shown = t.text.index("\r\x1b[2mbuilding 3f2a \\x1b[2J 00:12 50%\x1b[0m\x1b[K")
    gone = t.text.index("\r\x1b[K", shown)
    assert t.text.index(BAD.removesuffix("bad")) == gone + len("\r\x1b[K")


def test_status_line_is_cut(kbctl, fake):
    fake.methods["log"] = log_of([], ("progress", {"text": "x" * 300}), end())
    t = kbctl.terminal("log", "-f", "7", columns=50, NO_COLOR="1")
    assert t.finish() == 0 and "x" * 49 in t.text and "x" * 50 not in t.text


def test_interrupt_leaves_a_clean_line(kbctl, fake):
    fake.methods["log"] = log_of([], ("progress", {"text": "booting"}))
    t = kbctl.terminal("log", "-f", "7")
    t.read("booting")
    t.process.send_signal(signal.SIGINT)
    assert t.finish() == -signal.SIGINT
    assert t.text.endswith("\r\x1b[Kkbctl: job 7 goes on; `kbctl log -f 7` follows it again\r\n")


def test_follow_survives_a_restart(kbctl, fake):
    def dies(connection, params):
        connection.reply({"entries": [entry(1, "one"), entry(2, "two")], "state": "running"})
        connection.notify("log", **entry(3, "three"))
        fake.methods["log"] = log_of([entry(n, str(n)) for n in range(1, 6)],
                                     ("log", entry(5, "again")), ("log", entry(6, "six")), end())
        fake.stop()
        connection.hang_up()
    fake.methods["log"] = dies
    p = kbctl.background("log", "-f", "7")
    time.sleep(1)
    assert p.poll() is None
    fake.start()
    out, err = p.communicate(timeout=10)
    assert (p.returncode, out, err) == (0, "one\ntwo\nthree\n4\n5\nsix\n", "")
    assert fake.calls[-1] == ("log", {"job": 7, "since": 3, "follow": True})


def test_follow_does_not_retry_nonsense(kbctl, fake):
    def nonsense(connection, params):
        connection.reply({"entries": [], "state": "running"})
        connection.raw(b"nonsense\n")
    fake.methods["log"] = nonsense
    r = kbctl("log", "-f", "7")
    assert r.returncode == 3 and "is not kbisectd" in r.stderr and len(fake.calls) == 1


def test_follow_job_gone_after_restart(kbctl, fake):
    def dies(connection, params):
        connection.reply({"entries": [], "state": "running"})
        fake.methods["log"] = Failure(1, "there is no job 7")
        connection.hang_up()
    fake.methods["log"] = dies
    r = kbctl("log", "-f", "7")
    assert (r.returncode, r.stderr) == (5, "kbctl: there is no job 7\n")


# Output that cannot be written


def test_reader_goes_away(kbctl, fake):
    fake.methods["log"] = {"entries": [entry(n) for n in range(20000)], "state": "running"}
    p = kbctl.background("log", "7")
    p.stdout.readline()
    p.stdout.close()
    assert p.wait(timeout=10) == 8 and p.stderr.read() == ""


def test_reader_goes_away_while_nothing_happens(kbctl, fake):
    fake.methods["log"] = log_of([entry(1)])
    p = kbctl.background("log", "-f", "7")
    p.stdout.readline()
    p.stdout.close()
    assert p.wait(timeout=10) == 8 and p.stderr.read() == ""


@pytest.mark.parametrize("redirect", [">/dev/full", ">&-"])
def test_output_is_lost(fake, redirect):
    fake.methods["list"] = {"jobs": [job(1)]}
    r = subprocess.run(["sh", "-c", f"{KBCTL} list {redirect}"], stderr=subprocess.PIPE, text=True,
                       env=environment(fake.path))
    assert r.returncode == 8 and r.stderr.startswith("kbctl: cannot write to standard output")
