#!/usr/bin/python3
"""Fill a database with finished jobs, as years of use would leave it.

usage: filldb.py DATABASE JOBS SAMPLES

The schema is read from db/schema.sql beside this script's folder when DATABASE does not exist yet.
Each job gets its share of the samples, one a run, spread over about ten commits.
"""

import ctypes
import json
import os
import random
import sqlite3
import sys

APPLICATION_ID = 0x6B626973  # as in db/db.c
HOUR = 3600 * 1000
M_TRIM_THRESHOLD, M_TOP_PAD = -1, -2  # mallopt(3)


def open_database(path):
    new = not os.path.exists(path)
    db = sqlite3.connect(path)
    db.execute("PRAGMA foreign_keys = ON")
    db.execute("PRAGMA cache_size = -400000")
    db.execute("PRAGMA synchronous = OFF")
    if new:
        here = os.path.dirname(os.path.abspath(__file__))
        with open(os.path.join(here, "../../db/schema.sql"), encoding="utf-8") as schema:
            db.executescript(schema.read())
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("PRAGMA user_version = 1")
        db.execute("PRAGMA journal_mode = WAL")
    return db


def add_job(db, number, start):
    text = f"[job]\nname = ebizzy-{number}\n[range]\nrepo = /srv/linux.git\n" + "# why\n" * 60
    facts = json.dumps({"metric": "mean-4", "config": {"text": "CONFIG_SMP=y\n" * 200}})
    state = random.choice(("done", "done", "done", "failed", "cancelled"))
    return db.execute(
        "INSERT INTO job (owner_uid, owner_name, name, host, state, result, reason, submitted,"
        " started, ended, source_name, source_dir, source_text, facts, summary)"
        " VALUES (1000, 'eve', ?, 'compass', ?, ?, ?, ?, ?, ?, 'job.conf', '/home/eve', ?, ?, ?)",
        (f"ebizzy-{number}", state, "culprit" if state == "done" else None,
         "the first bad commit is 3d97ea08 (x86 idle: repair a regression), -28.2%",
         start, start + 1000, start + HOUR, text, facts, json.dumps({"culprit": "3d97ea08"}))
    ).lastrowid


def add_runs(db, job, count, start):
    commits = []
    for i in range(min(10, count)):
        role = ("good", "bad")[i] if i < 2 else "candidate"
        commits.append(db.execute(
            "INSERT INTO candidate (job, sha, label, subject, role, build, build_key, kernel,"
            " build_log, build_ms) VALUES (?, ?, ?, 'a commit', ?, 'ok', ?, ?, ?, 4000)",
            (job, f"{random.getrandbits(160):040x}", f"c{i}", role, "k" * 64,
             f"/var/lib/kbisectd/store/{job}-{i}/bzImage",
             f"/var/lib/kbisectd/jobs/{job}/build-{i}.log")).lastrowid)
    for i in range(count):
        value = random.gauss(2300, 20)
        text = f"{value:.2f}"
        metrics = {"mean-4": {"value": value, "text": text, "all": [text]}}
        run = db.execute(
            "INSERT INTO run (job, candidate, outcome, accel, timing, dir, boot_ms, test_ms,"
            " started, ended, value, number, metrics)"
            " VALUES (?, ?, 'ok', 'kvm', 'wall', ?, 2100, 9000, ?, ?, ?, ?, ?)",
            (job, commits[i % len(commits)], f"/var/lib/kbisectd/jobs/{job}/run-{i}",
             start, start + 12000, text, value, json.dumps(metrics))).lastrowid
        db.execute("INSERT INTO sample VALUES (?, 'mean-4', ?, ?, ?)",
                   (run, value, text, json.dumps([text])))
        db.execute("INSERT INTO event (job, at, kind, text, data) VALUES (?, ?, 'run', ?, '{}')",
                   (job, start, f"run {run}: mean-4:{text} good"))


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    jobs, samples = int(sys.argv[2]), int(sys.argv[3])
    random.seed(1)
    # Without these two the C library gives memory back, and asks for it again, at every row.
    libc = ctypes.CDLL(None)
    libc.mallopt(M_TRIM_THRESHOLD, 1 << 30)
    libc.mallopt(M_TOP_PAD, 16 << 20)
    db = open_database(sys.argv[1])
    with db:
        for number in range(jobs):
            start = 1389174839000 + number * HOUR
            job = add_job(db, number, start)
            add_runs(db, job, samples * (number + 1) // jobs - samples * number // jobs, start)
    db.close()


main()
