"""make install, uninstall and dist into a folder of their own."""
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

import pytest

from conftest import BUILD, TOP

# path below the prefix (or /etc): mode
FILES = {
    "bin/kbctl": 0o755,
    "sbin/kbisectd": 0o755,
    "sbin/kbisectd-step": 0o755,
    "share/kbisectd/guest/mkguest": 0o755,
    "share/kbisectd/guest/init": 0o755,
    "share/kbisectd/kernel/tiny.config": 0o644,
    "share/kbisectd/kernel/guest.config": 0o644,
    "share/man/man1/kbctl.1": 0o644,
    "share/man/man5/kbisectd.conf.5": 0o644,
    "share/man/man5/kbisectd-job.5": 0o644,
    "share/man/man5/kbisectd-benchmark.5": 0o644,
    "share/man/man8/kbisectd.8": 0o644,
    "lib/systemd/system/kbisectd.service": 0o644,
    "lib/systemd/system/kbisectd.socket": 0o644,
    "lib/sysusers.d/kbisectd.conf": 0o644,
    "lib/tmpfiles.d/kbisectd.conf": 0o644,
}
CONFIGURATION = {
    f"kbisectd/{name}": 0o644
    for name in ["kbisectd.conf", *(f"benchmarks.d/{p.name}" for p in TOP.glob("etc/benchmarks.d/*.conf"))]
}
PREFIX = pathlib.Path("usr/local")


def make(*args, check=True):
    # Neither the flags nor the jobs of a make that runs this test.
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    out = subprocess.run(["make", "-C", TOP, f"B={BUILD}", *args], capture_output=True, text=True, env=env)
    assert not check or out.returncode == 0, out.stderr
    return out.stdout


def files(root):
    return {str(p.relative_to(root)): p.stat().st_mode & 0o7777 for p in root.rglob("*") if not p.is_dir()}


def expected(prefix=PREFIX, etc="etc"):
    return ({str(prefix / k): v for k, v in FILES.items()}
            | {f"{etc}/{k}": v for k, v in CONFIGURATION.items()})


@pytest.fixture
def dest(tmp_path):
    dest = tmp_path / "root"
    old = os.umask(0o077)
    try:
        make("install", f"DESTDIR={dest}")
    finally:
        os.umask(old)
    return dest


def test_files_and_modes(dest):
    """Whatever the umask."""
    assert files(dest) == expected()
    assert {p.stat().st_mode & 0o7777 for p in (dest / "usr").rglob("*") if p.is_dir()} == {0o755}


def test_folders_are_the_packagers(tmp_path):
    make("install", f"DESTDIR={tmp_path}", "prefix=/usr", "sysconfdir=/opt/etc", "unitdir=/x/units")
    want = expected(pathlib.Path("usr"), "opt/etc")
    for unit in ("kbisectd.service", "kbisectd.socket"):
        want[f"x/units/{unit}"] = want.pop(f"usr/lib/systemd/system/{unit}")
    assert files(tmp_path) == want
    assert "ExecStart=/usr/sbin/kbisectd\n" in (tmp_path / "x/units/kbisectd.service").read_text()


def test_configuration_is_the_administrators(dest):
    mine = [dest / "etc/kbisectd/kbisectd.conf", dest / "etc/kbisectd/benchmarks.d/hackbench.conf"]
    for path in mine:
        path.write_text("# mine\n")
    gone = dest / "etc/kbisectd/benchmarks.d/command.conf"
    gone.unlink()
    make("install", f"DESTDIR={dest}")
    assert [p.read_text() for p in mine] == ["# mine\n"] * 2
    assert gone.exists()


def test_uninstall_leaves_the_configuration(dest):
    make("uninstall", f"DESTDIR={dest}")
    assert files(dest) == {f"etc/{k}": v for k, v in CONFIGURATION.items()}
    assert not (dest / PREFIX / "share/kbisectd").exists()


def test_strip(tmp_path):
    make("install-strip", f"DESTDIR={tmp_path}")
    for name in ("bin/kbctl", "sbin/kbisectd", "sbin/kbisectd-step"):
        assert (tmp_path / PREFIX / name).stat().st_size < (BUILD / pathlib.Path(name).name).stat().st_size
    assert files(tmp_path) == expected()


def test_programs_know_their_version(dest):
    version = re.search(r"^VERSION = (\S+)$", (TOP / "Makefile").read_text(), re.M)[1]
    for name in ("bin/kbctl", "sbin/kbisectd"):
        out = subprocess.run([dest / PREFIX / name, "--version"], capture_output=True, text=True, check=True)
        assert version in out.stdout


def test_shipped_configuration_is_valid(dest):
    conf = dest / "etc/kbisectd/kbisectd.conf"
    out = subprocess.run([dest / PREFIX / "sbin/kbisectd", "--check", "-c", conf], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr


def test_units_are_clean(dest, tmp_path):
    """systemd-analyze over the installed units, with the program where they say that it is."""
    units = dest / PREFIX / "lib/systemd/system"
    assert "@sbindir@" not in "".join(p.read_text() for p in units.iterdir())
    # systemd looks for programs below this root too, and for the units that ours depend on.
    shutil.copytree("/lib/systemd/system", dest / "lib/systemd/system", symlinks=True)
    kill = dest / "bin/kill"
    kill.parent.mkdir()
    kill.touch(0o755)
    out = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", f"--root={dest}",
         "kbisectd.service", "kbisectd.socket"],
        capture_output=True, text=True)
    assert (out.returncode, out.stdout, out.stderr) == (0, "", "")


def test_manual_pages_are_found(dest):
    man = dest / PREFIX / "share/man"
    for page in man.glob("*/*"):
        name, section = page.name.rsplit(".", 1)
        out = subprocess.run(["mman", "-M", man, "-w", section, name], capture_output=True, text=True, check=True)
        assert out.stdout.strip() == str(page)


def test_second_make_does_nothing():
    make("all")
    out = make("all")
    assert "Nothing to be done" in out
    # Also after an installation.
    assert not re.search(r"^(cc|gcc|clang|ar) ", make("-n", "install", "DESTDIR=/nowhere"), re.M)


def test_users_flags_stay(tmp_path):
    """In the environment and on the command line, for objects and programs."""
    out = make("-n", f"B={tmp_path}/b", "CFLAGS=-O1 -DMINE", "LDFLAGS=-Wl,-z,now", "CPPFLAGS=-DALSO_MINE", "all")
    compiled = [line for line in out.splitlines() if " -c " in line]
    linked = [line for line in out.splitlines() if re.search(r" -o \S*/(kbctl|kbisectd|kbisectd-step) ", line)]
    assert len(compiled) > 50 and len(linked) == 3
    for line in compiled:
        assert " -O1 -DMINE " in line and " -DALSO_MINE " in line and "-O2" not in line
    for line in linked:
        assert " -O1 -DMINE " in line and " -Wl,-z,now " in line


def status(clone, env, *args):
    return subprocess.run(["git", "-C", clone, "status", "--short", *args], check=True,
                          capture_output=True, text=True, env=env).stdout


@pytest.mark.skipif(not (TOP / ".git").exists(), reason="not a git checkout")
def test_dist(tmp_path):
    version = re.search(r"^VERSION = (\S+)$", (TOP / "Makefile").read_text(), re.M)[1]
    clone = tmp_path / "clone"
    env = {**os.environ, "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory",
           "GIT_CONFIG_VALUE_0": "*"}
    subprocess.run(["git", "clone", "-q", TOP, clone], check=True, env=env)
    subprocess.run(["make", "-C", clone, "dist"], check=True, capture_output=True, env=env)
    with tarfile.open(clone / f"kbisectd-{version}.tar.gz") as tar:
        names = tar.getnames()
    assert f"kbisectd-{version}/Makefile" in names
    assert all(name.split("/")[0] == f"kbisectd-{version}" for name in names)
    # distclean leaves nothing behind, and the archive is no file of the repository.
    assert status(clone, env) == ""
    (clone / "build").mkdir()
    (clone / "demo-state").mkdir()
    subprocess.run(["make", "-C", clone, "distclean"], check=True, capture_output=True)
    assert status(clone, env, "--ignored") == ""
