"""A stand-in for the daemon: JSON lines on a Unix socket, answered from a table of methods.

A method is a value (the result), a Failure, or a function (connection, params) that returns one of
these; a function that returns None has sent what it wanted by itself.
"""

import fcntl
import json
import os
import pty
import select
import socket
import struct
import subprocess
import termios
import threading
import time

import pytest

BUILD = os.environ.get("KBISECT_BUILD", "build")
KBCTL = os.path.join(os.path.abspath(BUILD), "kbctl")


class Failure:
    def __init__(self, code, message):
        self.error = {"code": code, "message": message}


class Connection:
    """One client, as a method sees it."""

    def __init__(self, sock, server):
        self.sock = sock
        self.server = server
        self.call_id = None

    def raw(self, data):
        self.sock.sendall(data)

    def line(self, message):
        self.raw(json.dumps(message).encode() + b"\n")

    def reply(self, result):
        self.line({"jsonrpc": "2.0", "id": self.call_id, "result": result})

    def notify(self, method, **params):
        self.line({"jsonrpc": "2.0", "method": method, "params": params})

    def hang_up(self):
        self.sock.shutdown(socket.SHUT_RDWR)


class FakeDaemon:
    def __init__(self, path):
        self.path = str(path)
        self.methods = {"hello": {"name": "kbisectd", "version": "0.1", "protocol": 1, "host": "h"}}
        self.calls = []  # (method, params), hello left out
        self.listener = None

    def start(self):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(8)
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def stop(self):
        if self.listener:
            os.unlink(self.path)
            self.listener.shutdown(socket.SHUT_RDWR)
            self.listener.close()
        self.listener = None

    def _accept(self, listener):
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        connection = Connection(sock, self)
        try:
            for line in sock.makefile("rb"):
                self._answer(connection, json.loads(line))
        except OSError:
            pass
        sock.close()

    def _answer(self, connection, request):
        assert request["jsonrpc"] == "2.0"
        method, params = request["method"], request["params"]
        connection.call_id = request["id"]
        if method != "hello":
            self.calls.append((method, params))
        answer = self.methods.get(method, Failure(-32601, "no such method"))
        if callable(answer):
            answer = answer(connection, params)
        if isinstance(answer, Failure):
            connection.line({"jsonrpc": "2.0", "id": request["id"], "error": answer.error})
        elif answer is not None:
            connection.reply(answer)


def environment(path, **extra):
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "TERM")}
    return {**env, "KBISECTD_SOCKET": path, "TERM": "xterm", "TZ": "UTC", **extra}


class Terminal:
    """kbctl on a terminal of its own; `text` is everything that it wrote there."""

    def __init__(self, args, env, columns):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.process = subprocess.Popen([KBCTL, *args], stdin=slave, stdout=slave, stderr=slave,
                                        env=env, start_new_session=True)
        os.close(slave)
        self.text = ""

    def read(self, until=None, timeout=10):
        """Read until a text was seen, or the program ended."""
        deadline = time.monotonic() + timeout
        while until is None or until not in self.text:
            left = deadline - time.monotonic()
            assert left > 0, f"not seen within {timeout} s: {until!r} in {self.text!r}"
            if not select.select([self.master], [], [], left)[0]:
                continue
            try:
                data = os.read(self.master, 65536)
            except OSError:  # the other side is closed
                break
            self.text += data.decode()
        return self.text

    def finish(self):
        self.read()
        os.close(self.master)
        return self.process.wait(timeout=10)


class Kbctl:
    """Runs the client against the fake daemon of a test."""

    def __init__(self, daemon, cwd):
        self.daemon = daemon
        self.cwd = cwd

    def __call__(self, *args, stdin="", timeout=60, **env):
        return subprocess.run([KBCTL, *args], input=stdin, capture_output=True, text=True,
                              timeout=timeout, cwd=self.cwd,
                              env=environment(self.daemon.path, **env))

    def background(self, *args):
        return subprocess.Popen([KBCTL, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, cwd=self.cwd, env=environment(self.daemon.path))

    def terminal(self, *args, columns=80, **env):
        return Terminal(args, environment(self.daemon.path, **env), columns)


@pytest.fixture
def fake(tmp_path):
    daemon = FakeDaemon(tmp_path / "sock")
    daemon.start()
    yield daemon
    daemon.stop()


@pytest.fixture
def kbctl(fake, tmp_path):
    return Kbctl(fake, tmp_path)
