"""Fixtures: a small repository that looks like a kernel tree, and a daemon with fake boots."""
import json
import os
import pathlib
import signal
import socket
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("KBISECT_BUILD", "build"))
BUILD = BUILD if BUILD.is_absolute() else TOP / BUILD


def git(repo, *args, **kw):
    env = {
        **os.environ,
        "GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org",
        "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.org",
        "GIT_AUTHOR_DATE": "1700000000 +0000", "GIT_COMMITTER_DATE": "1700000000 +0000",
        "GIT_CONFIG_GLOBAL": "/dev/null",
    }
    out = subprocess.run(["git", "-C", str(repo), *args], check=True, capture_output=True,
                         text=True, env=env, **kw)
    return out.stdout.strip()


@pytest.fixture
def kernel_repo(tmp_path):
    """A linear history of 16 commits; returns (path, [ids, oldest first])."""
    repo = tmp_path / "linux"
    (repo / "arch/x86/configs").mkdir(parents=True)
    (repo / "Makefile").write_text("VERSION = 6\n")
    (repo / "Kconfig").write_text("mainmenu \"test\"\n")
    (repo / "arch/x86/Kconfig").write_text("config X86\n")
    subprocess.run(["git", "init", "-q", "-b", "master", str(repo)], check=True)
    ids = []
    for i in range(16):
        (repo / "file.c").write_text(f"int v = {i};\n")
        git(repo, "add", "-A")
        git(repo, "commit", "-q", "-m", f"subsystem: change number {i}")
        ids.append(git(repo, "rev-parse", "HEAD"))
    git(repo, "tag", "v1", ids[0])
    git(repo, "tag", "v2", ids[-1])
    return repo, ids


JOB = """\
[job]
name = {name}
[range]
repo = {repo}
good = v1
bad = v2
[test]
benchmark = hackbench
[search]
samples = {samples}
"""


class Daemon:
    """A kbisectd in a state folder of its own, its boots answered by fakestep.py."""

    def __init__(self, path, repo, ids):
        self.path, self.repo, self.ids = path, repo, ids
        self.fake = path / "fake"
        self.fake.mkdir()
        self.state = path / "state"
        self.socket = path / "s"
        self.conf = path / "kbisectd.conf"
        self.child = None
        self.extra = ""
        self.world(culprit=11)

    def world(self, culprit=11, good=5.0, bad=7.0, delay=0, noise=0.004, **special):
        """special: index (as i3) -> dict of fakestep.py."""
        commits = {sha: {"level": bad if i >= culprit else good} for i, sha in enumerate(self.ids)}
        for name, what in special.items():
            commits[self.ids[int(name[1:])]].update(what)
        (self.fake / "world.json").write_text(
            json.dumps({"commits": commits, "delay": delay, "noise": noise}))

    def calls(self, step=None):
        path = self.fake / "calls"
        lines = [json.loads(x) for x in path.read_text().splitlines()] if path.exists() else []
        return [x for x in lines if step is None or x["step"] == step]

    def write_conf(self):
        self.conf.write_text(
            f"[daemon]\nstate-dir = {self.state}\nsocket = {self.socket}\n"
            f"benchmarks = {TOP}/etc/benchmarks.d\ndata-dir = {TOP}/etc\nhost = testhost\n"
            f"step-program = {TOP}/tests/e2e/fakestep.py\n"
            f"[limits]\nretry-delay = 10ms\n{self.extra}")

    def start(self, expect=0):
        """Start and wait for readiness; with expect, wait for the failed exit instead."""
        self.write_conf()
        notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = self.path / "notify"
        path.unlink(missing_ok=True)
        notify.bind(str(path))
        notify.settimeout(20)
        self.log = open(self.path / "daemon.log", "ab")
        self.child = subprocess.Popen(
            [BUILD / "kbisectd", "-c", self.conf], stderr=self.log,
            env={**os.environ, "NOTIFY_SOCKET": str(path), "FAKE_DIR": str(self.fake),
                 "FAKE_REAL": str(BUILD / "kbisectd")})
        if expect:
            assert self.child.wait(20) == expect
            return
        assert b"READY=1" in notify.recv(4096)
        notify.close()

    def stop(self, sig=signal.SIGTERM):
        if self.child and self.child.poll() is None:
            self.child.send_signal(sig)
            self.child.wait(40)
        return self.child.returncode if self.child else None

    def processes(self):
        """The daemon and its steps, known by their environment."""
        mark = f"FAKE_DIR={self.fake}".encode()
        found = []
        for environ in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark in environ.read_bytes().split(b"\0"):
                    found.append(int(environ.parent.name))
            except OSError:
                pass  # another user's, or gone
        return found

    def log_text(self):
        return (self.path / "daemon.log").read_text()

    def kbctl(self, *args, check=True, **kw):
        out = subprocess.run([BUILD / "kbctl", "--socket", self.socket, *map(str, args)],
                             capture_output=True, text=True, timeout=60, **kw)
        if check:
            assert out.returncode == 0, out.stderr
        return out

    def job_text(self, name="t", samples=3, extra=""):
        return JOB.format(name=name, repo=self.repo, samples=samples) + extra

    def submit(self, **kw):
        out = self.kbctl("--json", "submit", "-", input=self.job_text(**kw))
        return json.loads(out.stdout)["job"]

    def follow(self, job):
        """Until the job ends; returns the followed log."""
        return self.kbctl("log", "-f", job, check=False).stdout

    def show(self, job):
        return json.loads(self.kbctl("--json", "show", job).stdout)


@pytest.fixture
def daemon(tmp_path, kernel_repo):
    repo, ids = kernel_repo
    d = Daemon(tmp_path, repo, ids)
    yield d
    d.stop(signal.SIGKILL)
