"""Bad input: one clear sentence, and nothing left behind."""
import json
import os
import socket
import stat
import subprocess

import pytest

from conftest import git


def edit(daemon, old, new):
    text = daemon.job_text()
    assert old in text
    return text.replace(old, new)


CASES = {
    "unknown key": (lambda d: d.job_text(extra="smaples = 2\n"),
                    ':11: unknown key "smaples" in [search]; known are: strategy, samples'),
    "wrong value": (lambda d: edit(d, "samples = 3", "samples = many"),
                    ':10: samples: expected a whole number, found "many"'),
    "missing key": (lambda d: edit(d, "good = v1\n", ""),
                    '"good" is missing in [range] (revision that is known to be good)'),
    "no repository": (lambda d: edit(d, f"repo = {d.repo}", "repo = /nowhere"), "/nowhere"),
    "not a repository": (lambda d: edit(d, f"repo = {d.repo}", f"repo = {d.fake}"),
                         "not a git repository"),
    "good does not resolve": (lambda d: edit(d, "good = v1", "good = v0.9"), "v0.9"),
    "option as a revision": (lambda d: edit(d, "good = v1", "good = --all"), "--all"),
    "good = bad": (lambda d: edit(d, "good = v1", "good = v2"), "same commit"),
    "wrong way round": (lambda d: edit(d, "good = v1\nbad = v2", "good = v2\nbad = v1"),
                        "wrong way round"),
    "no benchmark": (lambda d: edit(d, "benchmark = hackbench", "benchmark = hackbnech"),
                     "hackbnech"),
    "benchmark elsewhere": (lambda d: edit(d, "benchmark = hackbench",
                                           "benchmark = ../../etc/passwd"), "../../etc/passwd"),
    "no metric": (lambda d: edit(d, "benchmark = hackbench", "benchmark = hackbench\nmetric = rate"),
                  "rate"),
    "no config file": (lambda d: d.job_text(extra="[build]\nconfig = /nowhere/config\n"),
                       "/nowhere/config"),
    "no such defconfig": (lambda d: d.job_text(extra="[build]\nconfig = nosuch_defconfig\n"),
                          "nosuch_defconfig"),
    "mail without a server": (lambda d: d.job_text(extra="[report]\nmail = a@example.org\n"),
                              "neither smtp nor sendmail"),
    "threshold": (lambda d: edit(d, "benchmark = hackbench",
                                 "benchmark = hackbench\nthreshold = low"), "threshold"),
}


@pytest.mark.parametrize("case", CASES)
def test_refused(daemon, case):
    make, words = CASES[case]
    daemon.start()
    out = daemon.kbctl("submit", "-", input=make(daemon), check=False)
    assert out.returncode == 2, out.stderr
    assert words in out.stderr, out.stderr
    assert len(out.stderr.strip().splitlines()) == 1, out.stderr
    assert json.loads(daemon.kbctl("--json", "list").stdout)["jobs"] == []
    assert not (daemon.state / "jobs").exists()
    assert list((daemon.state / "accept").glob("*")) == []


def test_unrelated_histories(daemon):
    git(daemon.repo, "checkout", "-q", "--orphan", "other")
    git(daemon.repo, "commit", "-q", "-m", "another root")
    git(daemon.repo, "tag", "v0")
    daemon.start()
    out = daemon.kbctl("submit", "-", input=edit(daemon, "good = v1", "good = v0"), check=False)
    assert out.returncode == 2 and "no history in common" in out.stderr


def test_regex_that_does_not_compile(daemon):
    folder = daemon.path / "benchmarks"
    folder.mkdir()
    (folder / "hackbench.conf").write_text(
        "[benchmark]\ncommand = true\n[metric time]\nformat = regex\npattern = (\nbetter = lower\n")
    daemon.start()
    daemon.stop()
    text = daemon.conf.read_text().splitlines()
    daemon.write_conf = lambda: daemon.conf.write_text("\n".join(
        f"benchmarks = {folder}" if x.startswith("benchmarks") else x for x in text) + "\n")
    daemon.start()
    out = daemon.kbctl("submit", "-", input=daemon.job_text(), check=False)
    assert out.returncode == 2
    assert "hackbench.conf:5" in out.stderr


def talk(daemon, data, shut=True):
    s = socket.socket(socket.AF_UNIX)
    s.connect(str(daemon.socket))  # waits for room in the backlog, which it would not with a time-out
    s.settimeout(30)
    for i in range(0, len(data), 1 << 16):
        s.sendall(data[i:i + (1 << 16)])
    if shut:
        s.shutdown(socket.SHUT_WR)
    got = b""
    while chunk := s.recv(65536):
        got += chunk
    return [json.loads(x) for x in got.splitlines()]


HELLO = b'{"jsonrpc":"2.0","id":1,"method":"hello"}\n'


def memory_kib(daemon):
    text = open(f"/proc/{daemon.child.pid}/status").read()
    return int(next(x for x in text.splitlines() if x.startswith("VmHWM")).split()[1])


def test_100_mb_line(daemon):
    daemon.start()
    before = memory_kib(daemon)
    answers = talk(daemon, b"x" * 100_000_000 + b"\n" + HELLO)
    assert "error" in answers[0] and answers[-1]["result"]["name"] == "kbisectd"
    assert memory_kib(daemon) - before < 16 * 1024


@pytest.mark.parametrize("rubbish", [
    bytes(range(256)) * 40, b"\0" * 5000, b"{" * 5000, b"[" * 100000, b'"' * 99, b"\xff\xfe\n" * 50,
    b'{"jsonrpc":"2.0","id":1,"method":7}', b'{"jsonrpc":"1.0","id":1,"method":"hello"}', b"null",
    b'{"jsonrpc":"2.0","id":1,"method":"show","params":[1]}',
    b'{"jsonrpc":"2.0","id":1,"method":"show","params":{"job":1e99}}',
    b'{"jsonrpc":"2.0","id":1,"method":"show","params":{"jbo":1}}',
])
def test_rubbish(daemon, rubbish):
    daemon.start()
    answers = talk(daemon, rubbish + b"\n" + HELLO)
    assert all("error" in a for a in answers[:-1]) and len(answers) > 1
    assert answers[-1]["result"]["protocol"] == 1


def test_client_that_leaves_in_the_middle(daemon):
    daemon.start()
    for _ in range(50):
        s = socket.socket(socket.AF_UNIX)
        s.connect(str(daemon.socket))
        s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"submit","params":{"text":"')
        s.close()
    for _ in range(20):
        s = socket.socket(socket.AF_UNIX)
        s.connect(str(daemon.socket))
        s.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "submit", "params": {
            "text": daemon.job_text(), "where": "x", "dir": "/"}}).encode() + b"\n")
        s.close()
    assert talk(daemon, HELLO)[0]["result"]["name"] == "kbisectd"


def as_nobody(daemon, *args, **kw):
    return subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *args],
                          capture_output=True, text=True, **kw)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to be someone else")
def test_strangers_and_members(daemon, tmp_path):
    """Whoever is not in the group may not even read; a member may, but not change others' jobs."""
    from conftest import BUILD

    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_uid == 0 and path != path.parent and not path.stat().st_mode & stat.S_IXOTH:
            path.chmod(path.stat().st_mode | 0o711)
    daemon.world(delay=0.2)
    daemon.start()
    job = daemon.submit()
    os.chmod(daemon.socket, 0o666)  # the file's mode is the first lock, the peer's uid the second
    kbctl = tmp_path / "kbctl"
    kbctl.write_bytes((BUILD / "kbctl").read_bytes())
    kbctl.chmod(0o755)
    out = as_nobody(daemon, kbctl, "--socket", daemon.socket, "list")
    assert out.returncode == 4, out.stderr
    daemon.stop()
    text = daemon.conf.read_text()
    daemon.write_conf = lambda: daemon.conf.write_text(
        text.replace("host = testhost\n", "host = testhost\ngroup = nogroup\n"))
    daemon.start()
    out = as_nobody(daemon, kbctl, "--socket", daemon.socket, "list")
    assert out.returncode == 0, out.stderr
    out = as_nobody(daemon, kbctl, "--socket", daemon.socket, "cancel", str(job))
    assert out.returncode == 4 and "belongs to root" in out.stderr
