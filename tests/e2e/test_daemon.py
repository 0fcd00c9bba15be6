"""The running daemon: jobs from submission to answer, with fake boots (tests/e2e/fakestep.py)."""
import collections
import json
import os
import re
import signal
import sqlite3
import subprocess
import time

from conftest import BUILD, git

LINE = re.compile(r"^\w{3} \d{1,2} \w{3} \d\d:\d\d:\d\d \S+ \d{4} testhost hackbench (\S+) time:(\S+) (good|bad)$")


def sample_lines(text):
    return [m for m in map(LINE.match, text.splitlines()) if m]


def test_finds_the_culprit(daemon):
    daemon.start()
    job = daemon.submit()
    log = daemon.follow(job)
    shown = daemon.show(job)
    assert shown["result"] == "culprit"
    assert shown["culprit"]["id"] == daemon.ids[11]
    # Every sample is one line in the published shape, endpoints under their tags.
    lines = sample_lines(log)
    assert len(lines) == len(daemon.calls("boot"))
    assert {m[1] for m in lines} >= {"v1", "v2"}
    for m in lines:
        assert m[3] == ("bad" if float(m[2]) > 6 else "good")
    # 16 commits: the ends and at most 4 more; nothing is built twice.
    builds = collections.Counter(x["commit"] for x in daemon.calls("build"))
    assert max(builds.values()) == 1 and len(builds) <= 6


def test_exit_status_of_follow(daemon):
    daemon.start()
    assert daemon.kbctl("log", "-f", daemon.submit(), check=False).returncode == 0
    daemon.world(culprit=99)
    assert daemon.kbctl("log", "-f", daemon.submit(), check=False).returncode == 1


def test_git_replay(daemon, tmp_path):
    daemon.world(culprit=5, i8={"build": "fail"})
    daemon.start()
    job = daemon.submit()
    daemon.follow(job)
    log = tmp_path / "bisect.log"
    log.write_text(daemon.kbctl("log", "--git", job).stdout)
    out = git(daemon.repo, "bisect", "replay", str(log))
    assert f"{daemon.ids[5]} is the first bad commit" in out


def test_not_reproducible(daemon):
    daemon.world(culprit=99, noise=0.05)
    daemon.start()
    job = daemon.submit()
    daemon.follow(job)
    shown = daemon.show(job)
    assert (shown["state"], shown["result"]) == ("done", "not-reproducible")
    assert "95% interval" in shown["reason"]
    assert len({x["commit"] for x in daemon.calls("boot")}) == 2


def test_skips_leave_a_set(daemon):
    daemon.world(culprit=8, delay=0.1, i6={"build": "fail"}, i7={"outcome": "panic"}, i8={"build": "fail"})
    daemon.start()
    job = daemon.submit()
    log = daemon.follow(job)
    shown = daemon.show(job)
    assert shown["result"] == "set"
    assert [c["id"] for c in shown["set"]] == daemon.ids[6:10]
    assert re.search(r"boot:panic skip \(Kernel panic - not syncing: fake\)", log)
    # Ending a batch of hopeless boots early is nobody's failure.
    assert len([x for x in daemon.calls("boot") if x["commit"] == daemon.ids[7]]) == 2
    assert "infrastructure" not in log
    report = daemon.kbctl("report", job).stdout
    assert "error: no such thing" in report and "Kernel panic" in report


def test_failure_counts_as_bad_when_asked(daemon):
    daemon.world(culprit=99, **{f"i{i}": {"outcome": "panic"} for i in range(9, 15)}, i15={"level": 9})
    daemon.start()
    job = daemon.submit(extra="[boot]\nfailure = bad\n")
    daemon.follow(job)
    assert daemon.show(job)["culprit"]["id"] == daemon.ids[9]


def test_infrastructure_is_never_a_verdict(daemon):
    daemon.world(culprit=11, i0={"infra": 2}, i7={"infra": 3})
    daemon.start()
    job = daemon.submit()
    daemon.follow(job)
    shown = daemon.show(job)
    assert shown["culprit"]["id"] == daemon.ids[11]
    infra = [r for c in shown["commit_list"] for r in c["runs"] if r["outcome"] == "infra"]
    assert len([r for r in infra if r["boot_ms"]]) == 5


def test_too_much_infrastructure_fails_and_retry_goes_on(daemon):
    daemon.world(culprit=11, i7={"infra": 5})
    daemon.start()
    job = daemon.submit()
    assert daemon.kbctl("log", "-f", job, check=False).returncode == 6
    shown = daemon.show(job)
    assert shown["state"] == "failed" and "5 infrastructure failures" in shown["reason"]
    boots = len(daemon.calls("boot"))
    daemon.kbctl("retry", job)
    daemon.follow(job)
    assert daemon.show(job)["culprit"]["id"] == daemon.ids[11]
    # The endpoints kept their samples.
    again = daemon.calls("boot")[boots:]
    assert not {daemon.ids[0], daemon.ids[15]} & {x["commit"] for x in again}


def test_bad_end_that_does_not_build(daemon):
    daemon.world(i15={"build": "fail"})
    daemon.start()
    job = daemon.submit()
    daemon.follow(job)
    shown = daemon.show(job)
    assert shown["state"] == "failed"
    assert shown["reason"] == "the bad end v2 does not build: fs/x.c:1:1: error: no such thing"
    daemon.world(culprit=11)
    daemon.kbctl("retry", job)
    daemon.follow(job)
    assert daemon.show(job)["culprit"]["id"] == daemon.ids[11]


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


def test_hold_resume_cancel(daemon):
    daemon.world(delay=0.2)
    daemon.start()
    job, second = daemon.submit(name="one"), daemon.submit(name="two")
    wait_for(lambda: len(daemon.calls("boot")) >= 2)
    daemon.kbctl("hold", job)
    # The slot is free for the next job.
    wait_for(lambda: daemon.show(second)["state"] == "running")
    daemon.kbctl("cancel", second, "--why", "enough")
    assert daemon.show(second)["reason"].endswith(": enough")
    assert daemon.kbctl("cancel", second, check=False).returncode == 7
    daemon.world(delay=0)
    daemon.kbctl("resume", job)
    daemon.follow(job)
    assert daemon.show(job)["culprit"]["id"] == daemon.ids[11]


def test_retire_and_mark_replay(daemon):
    daemon.start()
    job = daemon.submit()
    daemon.follow(job)
    shown = daemon.show(job)
    picked = [c for c in shown["commit_list"] if c["role"] == "candidate"]
    run = picked[0]["runs"][0]["run"]
    boots = len(daemon.calls("boot"))
    daemon.kbctl("retire", run)
    daemon.kbctl("retry", job)
    daemon.follow(job)
    # One sample was replaced, the answer stays.
    assert len(daemon.calls("boot")) == boots + 1
    assert daemon.show(job)["culprit"]["id"] == daemon.ids[11]
    # A verdict by hand changes it.
    first_bad = daemon.show(job)["culprit"]["id"]
    daemon.kbctl("mark", job, first_bad, "good")
    daemon.kbctl("retry", job)
    daemon.follow(job)
    assert daemon.show(job)["culprit"]["id"] == daemon.ids[12]
    daemon.kbctl("mark", job, first_bad, "none")
    daemon.kbctl("retry", job)
    daemon.follow(job)
    assert daemon.show(job)["culprit"]["id"] == daemon.ids[11]


def test_kill_9_loses_nothing(daemon):
    daemon.world(delay=0.05)
    daemon.start()
    job = daemon.submit(samples=4)
    kills = 0
    while daemon.show(job)["state"] not in ("done", "failed"):
        time.sleep(0.25 + 0.1 * kills)
        daemon.stop(signal.SIGKILL)
        kills += 1
        daemon.start()
    assert kills >= 3
    shown = daemon.show(job)
    assert shown["culprit"]["id"] == daemon.ids[11]
    # Nothing counts twice: each commit has exactly the samples that were asked for.
    for c in shown["commit_list"]:
        assert len([r for r in c["runs"] if r["outcome"] == "ok"]) == 4, c["label"]
    # No diary entry twice either.
    db = sqlite3.connect(daemon.state / "kbisectd.db")
    texts = [t for (t,) in db.execute("SELECT text FROM event WHERE kind = 'run'")]
    assert len(sample_lines("\n".join(texts))) == sum(
        len([r for r in c["runs"] if r["outcome"] == "ok"]) for c in shown["commit_list"])


def test_term_stops_cleanly_and_restart_goes_on(daemon):
    daemon.world(delay=0.3)
    daemon.start()
    job = daemon.submit()
    wait_for(lambda: len(daemon.calls("boot")) >= 2)
    wait_for(lambda: len(daemon.processes()) > 1)  # a step beside the daemon
    assert daemon.stop() == 0
    assert not daemon.socket.exists()
    assert daemon.processes() == []
    daemon.world()
    daemon.start()
    daemon.follow(job)
    assert daemon.show(job)["culprit"]["id"] == daemon.ids[11]


def test_budget(daemon):
    daemon.start()
    job = daemon.submit(extra="max-runs = 8\n")
    daemon.follow(job)
    shown = daemon.show(job)
    assert shown["result"] == "inconclusive" and "max-runs is used up after 8 boots" in shown["reason"]
    assert len(daemon.calls("boot")) == 8


def test_reload(daemon):
    daemon.start()
    daemon.conf.write_text(daemon.conf.read_text() + "nonsense = 1\n")
    daemon.child.send_signal(signal.SIGHUP)
    wait_for(lambda: "nothing changed" in daemon.log_text())
    assert re.search(r'kbisectd.conf:\d+: unknown key "nonsense" in \[limits\]', daemon.log_text())
    daemon.write_conf()
    daemon.conf.write_text(daemon.conf.read_text() + "line = 4K\n")
    daemon.child.send_signal(signal.SIGHUP)
    wait_for(lambda: "reload: " + str(daemon.conf) in daemon.log_text())
    out = daemon.kbctl("submit", "-", input="#" * 10000, check=False)
    assert out.returncode != 0


def test_two_daemons(daemon):
    daemon.start()
    other = subprocess.run([BUILD / "kbisectd", "-c", daemon.conf], capture_output=True, text=True)
    assert other.returncode == 1
    assert f"another kbisectd runs on the state folder {daemon.state}" in other.stderr


def test_socket_in_use(daemon):
    daemon.start()
    conf = daemon.path / "other.conf"
    conf.write_text(daemon.conf.read_text().replace(str(daemon.state), str(daemon.path / "state2")))
    other = subprocess.run([BUILD / "kbisectd", "-c", conf], capture_output=True, text=True)
    assert other.returncode == 1
    assert str(daemon.socket) in other.stderr
    daemon.kbctl("status")


def test_newer_database(daemon):
    daemon.start()
    daemon.stop()
    db = sqlite3.connect(daemon.state / "kbisectd.db")
    db.execute("PRAGMA user_version = 999")
    db.commit()
    db.close()
    daemon.start(expect=1)
    assert "999" in daemon.log_text()


def test_systemd_socket(daemon, tmp_path):
    """The socket is passed as descriptor 3, as systemd does."""
    import socket

    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path = tmp_path / "passed"
    sock.bind(str(path))
    sock.listen()
    daemon.write_conf()

    def pass_it():
        os.dup2(sock.fileno(), 3)
        os.environ["LISTEN_FDS"] = "1"
        os.environ["LISTEN_PID"] = str(os.getpid())

    script = 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"'
    child = subprocess.Popen(["sh", "-c", script, "sh", BUILD / "kbisectd", "-c", daemon.conf],
                             preexec_fn=pass_it, close_fds=False, stderr=subprocess.DEVNULL,
                             env={**os.environ, "FAKE_DIR": str(daemon.fake),
                                  "FAKE_REAL": str(BUILD / "kbisectd")})
    try:
        out = subprocess.run([BUILD / "kbctl", "--socket", path, "--json", "status"],
                             capture_output=True, text=True, timeout=20)
        assert json.loads(out.stdout)["pid"] == child.pid
        assert not daemon.socket.exists()
    finally:
        child.terminate()
        assert child.wait(20) == 0
    assert path.exists()
