"""One whole bisection: a real kernel history, real builds, libvirt VMs, ssh, SQLite and SMTP.

It is the demo's own program that runs; here its outcome is held against what was planted, and what
it left behind is looked at from outside.
"""
import os
import pathlib
import re
import sqlite3
import subprocess
import tempfile

import pytest

from conftest import BUILD, TOP, git

STATE = pathlib.Path(os.environ.get("KBISECT_CHECK_STATE", TOP / "build" / "check-state"))


@pytest.fixture(scope="module")
def demo():
    """The demo's output; its state folder is kept for the next run."""
    log = STATE.parent / "bisection.log"
    STATE.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as out:
        done = subprocess.run([TOP / "tests/demo/run", "--build", BUILD, "--state", STATE],
                              stdout=out, stderr=subprocess.STDOUT, check=False)
    text = log.read_text(errors="replace")
    assert done.returncode == 0, text[-6000:]
    return text


@pytest.fixture(scope="module")
def db(demo):
    con = sqlite3.connect(STATE / "daemon/kbisectd.db")
    con.row_factory = sqlite3.Row
    return con


@pytest.fixture(scope="module")
def job(db):
    return db.execute("SELECT * FROM job ORDER BY id DESC LIMIT 1").fetchone()


def test_planted_commit_is_named(demo, job):
    planted = (STATE / "planted").read_text().split()[0]
    assert job["result"] == "culprit"
    assert planted in job["summary"]
    assert f"found:   {planted}" in demo


def test_broken_and_panicking_commits_are_skips(demo, db, job):
    errors = [r["build_error"] for r in db.execute(
        "SELECT build_error FROM candidate WHERE job = ? AND build = 'failed'", [job["id"]])]
    assert errors and all("error:" in e for e in errors)
    outcomes = {r["outcome"] for r in db.execute("SELECT outcome FROM run WHERE job = ?", [job["id"]])}
    assert {"ok", "panic"} <= outcomes


def test_every_sample_is_on_record(db, job):
    """Each boot's console and log exist where the database says, and the samples add up."""
    runs = db.execute("SELECT * FROM run WHERE job = ? AND outcome = 'ok'", [job["id"]]).fetchall()
    assert len(runs) >= 12
    for run in runs:
        folder = pathlib.Path(run["dir"])
        assert "Linux version" in (folder / "console.log").read_text(errors="replace")
        assert "Time:" in (folder / "output.log").read_text()
        sample = db.execute("SELECT * FROM sample WHERE run = ? AND metric = 'time'", [run["id"]])
        assert sample.fetchone() is not None
    counted = db.execute("SELECT candidate, COUNT(*) n FROM run WHERE job = ? AND outcome = 'ok'"
                         " GROUP BY candidate", [job["id"]]).fetchall()
    assert all(c["n"] >= 3 for c in counted)


def test_log_lines_have_the_published_shape(demo):
    line = re.compile(r"^\w{3} \d{1,2} \w{3} [\d:]{8} \S+ \d{4} \S+ hackbench \S+ time:\d+\.\d+ (good|bad)\s*$",
                      re.M)
    assert len(line.findall(demo)) >= 12


def test_repository_was_not_written_to():
    assert git(STATE / "linux.git", "status", "--porcelain") == "" if (
        STATE / "linux.git/.git").exists() else True
    assert git(STATE / "linux.git", "for-each-ref", "--format=%(refname)", "refs/bisect") == ""


def test_nothing_is_left_running():
    """The demo's daemon knows its state folder by a short link."""
    links = [p for p in pathlib.Path(tempfile.gettempdir()).glob("kbisectd-*") if p.resolve() == STATE.resolve()]
    assert links
    out = subprocess.run(["pgrep", "-af", "qemu-system|kbisectd"], capture_output=True, text=True, check=False)
    assert not [line for line in out.stdout.splitlines() if any(str(x) in line for x in links)]
