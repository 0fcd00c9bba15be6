#!/usr/bin/python3
"""A step program for tests of the daemon without VMs (configuration key step-program).

accept, pick, mail and sweep are the real ones. build and measure answer from $FAKE_DIR/world.json:
  {"commits": {SHA: {"level": 5.0, "build": "fail", "outcome": "panic", "infra": 2}},
   "delay": seconds a boot or build takes, "noise": relative sd}
Everything that was done is appended to $FAKE_DIR/calls, one JSON object a line.
"""
import json
import os
import pathlib
import random
import signal
import sys
import time

FAKE = pathlib.Path(os.environ["FAKE_DIR"])
REAL = os.environ["FAKE_REAL"]


def answer(**result):
    print(json.dumps(result), flush=True)


def note(**call):
    with open(FAKE / "calls", "a") as f:
        f.write(json.dumps(call) + "\n")


def world():
    return json.loads((FAKE / "world.json").read_text())


def build(req):
    w = world()
    c = w["commits"][req["commit"]]
    note(step="build", commit=req["commit"])
    time.sleep(w.get("delay", 0))
    if c.get("build") == "fail":
        answer(ok=False, error="fs/x.c:1:1: error: no such thing", seconds=0.1)
        return
    folder = pathlib.Path(req["store"]) / req["commit"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bzImage").write_text(req["commit"])
    answer(ok=True, key=req["commit"], kernel=str(folder / "bzImage"), image="0" * 64, seconds=0.1,
           cached=False, compiler="fake")


def measure(req):
    w = world()
    answer(accel="tcg", timing="virtual", why="a fake")
    for boot in req["boots"]:
        sha = pathlib.Path(boot["kernel"]).read_text()
        c = w["commits"][sha]
        answer(run=boot["run"], state="booting")
        time.sleep(w.get("delay", 0))
        left = FAKE / f"infra-{sha}"
        n = int(left.read_text()) if left.exists() else c.get("infra", 0)
        if n:
            left.write_text(str(n - 1))
            answer(run=boot["run"], outcome="infra", detail="connection lost", boot_ms=1, test_ms=0)
            return
        note(step="boot", commit=sha, run=boot["run"])
        if c.get("outcome", "ok") != "ok":
            answer(run=boot["run"], outcome=c["outcome"], detail="Kernel panic - not syncing: fake",
                   boot_ms=1, test_ms=0)
            continue
        value = c["level"] * (1 + random.Random(boot["run"]).gauss(0, w.get("noise", 0.004)))
        text = f"{value:.3f}"
        metrics = {"time": {"value": float(text), "text": text, "all": [text]}}
        answer(run=boot["run"], outcome="ok", detail=None, boot_ms=1, test_ms=1, metrics=metrics)


def told_to_stop(number, frame):
    """What the real measure step does on SIGTERM."""
    answer(infra="told to stop")
    sys.exit(0)


def main():
    signal.signal(signal.SIGTERM, told_to_stop)
    name = sys.argv[2]
    if name in ("build", "measure"):
        {"build": build, "measure": measure}[name](json.load(sys.stdin))
        return
    os.execv(REAL, [REAL, "--step", name])


if __name__ == "__main__":
    main()
