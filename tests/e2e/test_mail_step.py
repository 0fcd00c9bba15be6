"""The mail step against real SMTP servers and a sendmail command.

KBISECT_BUILD names the folder of the binary under test (default: build).
"""

import base64
import email
import email.header
import email.policy
import json
import os
import pathlib
import socket
import ssl
import stat
import subprocess
import threading
import time

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult

ROOT = pathlib.Path(__file__).resolve().parents[2]
KBISECTD = str(ROOT / os.environ.get("KBISECT_BUILD", "build") / "kbisectd")
PASSWORD = "s3cret pässword"

BODY = """\
The culprit is 3d97ea08.

--- a/arch/x86/kernel/process.c
+++ b/arch/x86/kernel/process.c
@@ -1 +1,2 @@ int x;
-\told \n \t
+\tnew = 1;  \n.
..
.leading dot
From the start: a line that mailboxes like to change
| v3.12.6 |  2317 | good |
-- \nkbisectd
"""

BODIES = {
    "ascii": BODY,
    "latin": BODY + "Søren Ærø – 50 % slower = bad\n",
    "japanese": "これはカーネルの性能の報告です。\n遅くなりました。\n" * 20,
    "long line": "x" * 5000 + "\nshort\n",
    "empty": "",
    "no line end": "no line end",
    "colours": "\x1b[31mred\x1b[0m then 10%\r20%\n",
}


class Handler:
    """Keeps what it is given; answers as told: {command or address: reply}."""

    def __init__(self, replies=None):
        self.replies = replies or {}
        self.got = []
        self.rcpts_asked = []

    async def handle_MAIL(self, server, session, envelope, address, options):
        if "MAIL" in self.replies:
            return self.replies["MAIL"]
        envelope.mail_from = address
        return "250 sender ok"

    async def handle_RCPT(self, server, session, envelope, address, options):
        self.rcpts_asked.append(address)
        if address in self.replies:
            return self.replies[address]
        envelope.rcpt_tos.append(address)
        return "250 recipient ok"

    async def handle_DATA(self, server, session, envelope):
        if "DATA" in self.replies:
            return self.replies["DATA"]
        self.got.append((envelope.mail_from, list(envelope.rcpt_tos), envelope.content, session.ssl,
                         session.authenticated))
        return "250 2.0.0 queued as 4711"


class Server(Controller):
    """One aiosmtpd on a free port of 127.0.0.1."""

    def __init__(self, handler, implicit=None, **options):
        self.options = options
        super().__init__(handler, hostname="127.0.0.1", port=free_port(), ssl_context=implicit)

    def factory(self):
        return SMTP(self.handler, hostname="mx.test", **self.options)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.stop()

    @property
    def url(self):
        return f"smtp://127.0.0.1:{self.port}"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Mail:
    """One message and its state folder; run() is one try."""

    def __init__(self, folder):
        self.folder = folder
        self.marker = folder / "7.sent"
        self.request = {
            "from": "kbisectd on host <kbisectd@example.org>",
            "to": ["Bob <bob@example.org>"],
            "subject": "[kbisectd] ebizzy: culprit found",
            "body": BODY,
            "message_id": "<7.1@host.example.org>",
            "date": 1767225600,
            "timeout_ms": 20000,
            "marker": str(self.marker),
        }
        self.log = ""

    def run(self, url=None, smtp=None, **changes):
        request = dict(self.request, **changes)
        if url:
            request["smtp"] = dict({"url": url, "tls": "none"}, **(smtp or {}))
        proc = subprocess.run([KBISECTD, "--step", "mail"], input=json.dumps(request).encode(),
                              capture_output=True, timeout=60)
        self.log = proc.stderr.decode()
        assert proc.returncode == 0, self.log
        lines = proc.stdout.decode().splitlines()
        assert len(lines) == 1, lines
        return json.loads(lines[0])


@pytest.fixture
def mail(tmp_path):
    return Mail(tmp_path)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
                   check=True, capture_output=True)
    return folder


@pytest.fixture
def tls(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    return context


def parse(content):
    return email.message_from_bytes(content, policy=email.policy.SMTP)


def text_of(message):
    """The body as a reader sees it, with the line ends of a text file."""
    return message.get_payload(decode=True).decode(message.get_content_charset()).replace("\r\n", "\n")


def decoded(header):
    """By RFC 2047, where blanks between encoded words do not count."""
    return str(email.header.make_header(email.header.decode_header(header.replace("\r\n", ""))))


def only(handler):
    assert len(handler.got) == 1
    return handler.got[0]


@pytest.mark.parametrize("name", BODIES)
def test_body(mail, name):
    handler = Handler()
    with Server(handler) as server:
        result = mail.run(server.url, body=BODIES[name])
    assert result == {"sent": True, "reply": "250 2.0.0 queued as 4711", "refused": []}
    content = only(handler)[2]
    assert all(len(line) <= 998 for line in content.split(b"\r\n"))
    assert b"\n" not in content.replace(b"\r\n", b"")
    want = BODIES[name]
    if want and not want.endswith("\n"):
        want += "\n"
    message = parse(content)
    assert text_of(message) == want
    assert message.get_content_type() == "text/plain"
    if name == "ascii":
        assert message["Content-Transfer-Encoding"] == "7bit"
        assert content.split(b"\r\n\r\n", 1)[1] == want.replace("\n", "\r\n").encode()


def test_headers(mail):
    to = ["\"O'Neil, \\\"Bob\\\" [x86]\" <bob@example.org>", "Αλέξης Παπαδόπουλος <alex@example.org>",
          "محمد الأمين <m@example.org>", "山田太郎 <yamada@bücher.example>, plain@example.org"]
    subject = "[kbisectd] ebizzy-3.12.7-rc2: «x86 idle: Repair large-server 50-watt power» 遅い " * 3
    handler = Handler()
    with Server(handler) as server:
        mail.run(server.url, to=to, subject=subject.strip(), in_reply_to="<abc.1@lists.example.org>",
                 **{"from": '"Søren @ host" <kbisectd@example.org>'})
    sender, rcpts, content, _, _ = only(handler)
    assert sender == "kbisectd@example.org"
    assert rcpts == ["bob@example.org", "alex@example.org", "m@example.org",
                     "yamada@xn--bcher-kva.example", "plain@example.org"]
    message = parse(content)
    assert not message.defects
    assert [(a.display_name, a.addr_spec) for a in message["To"].addresses] == [
        ("O'Neil, \"Bob\" [x86]", "bob@example.org"), ("Αλέξης Παπαδόπουλος", "alex@example.org"),
        ("محمد الأمين", "m@example.org"), ("山田太郎", "yamada@xn--bcher-kva.example"),
        ("", "plain@example.org")]
    assert message["From"].addresses[0].display_name == "Søren @ host"
    assert decoded(email.message_from_bytes(content)["Subject"]) == subject.strip()
    assert message["Subject"] == subject.strip()
    assert message["Date"].datetime.timestamp() == 1767225600
    assert message["Message-ID"] == "<7.1@host.example.org>"
    assert message["In-Reply-To"] == "<abc.1@lists.example.org>"
    assert message["References"] == "<abc.1@lists.example.org>"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["MIME-Version"] == "1.0"
    head = content.split(b"\r\n\r\n", 1)[0]
    assert head.isascii() and all(len(line) <= 90 for line in head.split(b"\r\n"))


def test_subject_cannot_add_headers(mail):
    handler = Handler()
    with Server(handler) as server:
        mail.run(server.url, subject="x\r\nBcc: evil@example.org\r\n\r\nhello")
    message = parse(only(handler)[2])
    assert message["Bcc"] is None
    assert message["Subject"] == "x  Bcc: evil@example.org    hello"
    assert text_of(message) == BODY


@pytest.mark.parametrize("changes", [
    {"to": ["bob@example.org\r\nBcc: evil@example.org"]},
    {"to": ["bob"]},
    {"to": []},
    {"to": ["josé@example.org"]},
    {"from": "a@example.org, b@example.org"},
    {"from": ""},
    {"message_id": "a@b>\r\nBcc: <evil@example.org"},
    {"in_reply_to": "no id"},
])
def test_bad_address(mail, changes):
    handler = Handler()
    with Server(handler) as server:
        result = mail.run(server.url, **changes)
    assert set(result) == {"rejected"}
    assert "\n" not in result["rejected"] and "\r" not in result["rejected"]
    assert not handler.got and not handler.rcpts_asked
    assert list(mail.folder.iterdir()) == []


def test_never_twice(mail):
    handler = Handler()
    with Server(handler) as server:
        first = mail.run(server.url)
        assert [p.name for p in mail.folder.iterdir()] == ["7.sent"]
        assert mail.run(server.url) == first
    only(handler)
    assert mail.run(server.url) == first  # and does not even need the server


def test_empty_marker_counts(mail):
    mail.marker.touch()
    assert mail.run("smtp://127.0.0.1:1")["sent"] is True


def test_marker_is_there_before_goodbye(mail):
    """A server that never ends the session must not make the next try send again."""
    seen = []

    class Slow(SMTP):
        async def smtp_QUIT(self, arg):
            seen.append(mail.marker.exists())
            await super().smtp_QUIT(arg)

    handler = Handler()
    server = Server(handler)
    server.factory = lambda: Slow(handler, hostname="mx.test")
    with server:
        assert mail.run(server.url)["sent"] is True
    assert seen == [True]


def test_goodbye_is_not_waited_for(mail):
    server = Script(TO_DATA + ["250 taken"], hang=True)
    start = time.monotonic()
    assert mail.run(server.url)["sent"] is True
    assert time.monotonic() - start < 6


def test_state_folder_gone(mail):
    handler = Handler()
    with Server(handler) as server:
        result = mail.run(server.url, marker=str(mail.folder / "gone" / "7.sent"))
    assert "not sent" in result["infra"] and "gone" in result["infra"]
    assert not handler.got


def test_starttls(mail, certificate, tls):
    handler = Handler()
    with Server(handler, tls_context=tls, require_starttls=True) as server:
        result = mail.run(server.url, {"tls": "starttls"})
        assert "not trusted" in result["infra"] and not handler.got
        result = mail.run(server.url, {"tls": "starttls", "ca_file": str(certificate / "cert.pem")})
    assert result["sent"] is True
    assert only(handler)[3] is not None


def test_starttls_is_not_given_up(mail):
    handler = Handler()
    with Server(handler) as server:
        result = mail.run(server.url, {"tls": "starttls"})
    assert "STARTTLS" in result["infra"]
    assert not handler.got


def test_auto_takes_what_is_there(mail, tls):
    for options, encrypted in (({}, False), ({"tls_context": tls}, True)):
        handler = Handler()
        mail.marker.unlink(missing_ok=True)
        with Server(handler, **options) as server:
            assert mail.run(server.url, {"tls": "auto"})["sent"] is True
        assert (only(handler)[3] is not None) == encrypted


def test_implicit_tls(mail, certificate, tls):
    handler = Handler()
    ca = {"ca_file": str(certificate / "cert.pem")}
    with Server(handler, implicit=tls) as server:
        assert "not trusted" in mail.run(server.url, {"tls": "implicit"})["infra"]
        assert mail.run(server.url, dict(ca, tls="implicit"))["sent"] is True
        mail.marker.unlink()
        smtps = server.url.replace("smtp:", "smtps:")
        assert "not trusted" in mail.run(smtps, {"tls": "auto"})["infra"]
        assert mail.run(smtps, dict(ca, tls="auto"))["sent"] is True
    assert len(handler.got) == 2


def authenticator(server, session, envelope, mechanism, data):
    ok = (data.login, data.password) == (b"robot", PASSWORD.encode())
    return AuthResult(success=ok, handled=False, auth_data=data.login)


def test_login(mail, certificate, tls):
    handler = Handler()
    password = mail.folder / "password"
    password.write_text(PASSWORD + "\n")
    smtp = {"user": "robot", "password_file": str(password), "tls": "starttls",
            "ca_file": str(certificate / "cert.pem")}
    with Server(handler, tls_context=tls, auth_required=True, authenticator=authenticator) as server:
        assert mail.run(server.url, smtp)["sent"] is True
        assert only(handler)[4] is True
        for secret in (PASSWORD, "robot"):
            assert secret not in mail.log
        assert base64.b64encode(f"\0robot\0{PASSWORD}".encode()).decode() not in mail.log
        mail.marker.unlink()
        password.write_text("wrong")
        result = mail.run(server.url, smtp)
        assert "refused the login: 535" in result["rejected"]
        assert "wrong" not in mail.log
        result = mail.run(server.url, dict(smtp, password_file=str(mail.folder / "none")))
        assert "password" in result["infra"] and "No such file" in result["infra"]
    only(handler)


@pytest.mark.filterwarnings("ignore:Requiring AUTH")
def test_login_never_in_clear_unless_asked(mail):
    handler = Handler()
    password = mail.folder / "password"
    password.write_text(PASSWORD)
    smtp = {"user": "robot", "password_file": str(password), "tls": "auto"}
    with Server(handler, auth_required=True, auth_require_tls=False,
                authenticator=authenticator) as server:
        assert "STARTTLS" in mail.run(server.url, smtp)["infra"]
        assert "AUTH" not in mail.log.replace("< 250-AUTH", "").replace("< 250 AUTH", "")
        assert mail.run(server.url, dict(smtp, tls="none"))["sent"] is True
    assert only(handler)[4] is True


def test_login_in_url_is_refused(mail):
    assert "password-file" in mail.run("smtp://robot:secret@127.0.0.1:1")["infra"]
    assert "secret" not in mail.log


@pytest.mark.parametrize("replies,kind,words", [
    ({"MAIL": "451 come back later"}, "infra", "put off the sender: 451 come back later"),
    ({"MAIL": "550 not from you"}, "rejected", "refused the sender: 550 not from you"),
    ({"bob@example.org": "450 greylisted"}, "infra", "bob@example.org: 450 greylisted"),
    ({"bob@example.org": "550 no such user"}, "rejected", "bob@example.org: 550 no such user"),
    ({"DATA": "452 disk full"}, "infra", "put off the message: 452 disk full"),
    ({"DATA": "554 looks like spam"}, "rejected", "refused the message: 554 looks like spam"),
])
def test_refusals(mail, replies, kind, words):
    handler = Handler(replies)
    with Server(handler) as server:
        result = mail.run(server.url)
        assert set(result) == {kind} and words in result[kind]
        assert str(server.port) in result[kind]
        assert not mail.marker.exists()
        handler.replies.clear()
        assert mail.run(server.url)["sent"] is True
    only(handler)


def test_some_refused(mail):
    handler = Handler({"nobody@example.org": "550 no such user"})
    with Server(handler) as server:
        result = mail.run(server.url, to=["bob@example.org", "nobody@example.org", "eve@example.org"])
    assert result["sent"] is True
    assert result["refused"] == ["nobody@example.org: 550 no such user"]
    assert only(handler)[1] == ["bob@example.org", "eve@example.org"]


def test_all_refused(mail):
    handler = Handler({"a@example.org": "550 no a", "b@example.org": "551 no b"})
    with Server(handler) as server:
        result = mail.run(server.url, to=["a@example.org", "b@example.org"])
    assert "a@example.org: 550 no a; b@example.org: 551 no b" in result["rejected"]
    assert not handler.got


def test_put_off_recipient_is_asked_alone(mail):
    to = {"to": ["a@example.org", "b@example.org", "c@example.org"]}
    handler = Handler({"b@example.org": "450 greylisted", "c@example.org": "550 no c"})
    with Server(handler) as server:
        result = mail.run(server.url, **to)
        assert "1 of 3" in result["infra"] and "b@example.org: 450 greylisted" in result["infra"]
        assert not mail.marker.exists()
        del handler.replies["b@example.org"]
        handler.rcpts_asked.clear()
        result = mail.run(server.url, **to)
        assert result["sent"] is True and result["refused"] == ["c@example.org: 550 no c"]
        assert handler.rcpts_asked == ["b@example.org"]
        assert mail.run(server.url, **to) == result
    assert [got[1] for got in handler.got] == [["a@example.org"], ["b@example.org"]]
    assert parse(handler.got[0][2])["Message-ID"] == parse(handler.got[1][2])["Message-ID"]
    assert [p.name for p in mail.folder.iterdir()] == ["7.sent"]


def test_put_off_then_refused(mail):
    to = {"to": ["a@example.org", "b@example.org"]}
    handler = Handler({"b@example.org": "450 greylisted"})
    with Server(handler) as server:
        assert "infra" in mail.run(server.url, **to)
        handler.replies["b@example.org"] = "550 no"
        result = mail.run(server.url, **to)
        assert result["sent"] is True
        assert len(result["refused"]) == 1 and "550 no" in result["refused"][0]
        assert mail.run(server.url, **to)["sent"] is True
    assert [got[1] for got in handler.got] == [["a@example.org"]]


def test_server_away(mail):
    result = mail.run(f"smtp://127.0.0.1:{free_port()}")
    assert "cannot reach 127.0.0.1:" in result["infra"]


def test_unknown_host(mail):
    assert "cannot reach no-such-host.invalid" in mail.run("smtp://no-such-host.invalid")["infra"]


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "127.0.0.1:25", "", "smtp://"])
def test_bad_url(mail, url):
    assert "smtp://HOST" in mail.run(smtp={"url": url}, url=url or "x")["infra"]


class Script:
    """A server that says its lines, one for each thing it hears, and then hangs up or hangs."""

    def __init__(self, lines, hang=False, swallow=0):
        self.lines, self.hang, self.swallow = lines, hang, swallow
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"smtp://127.0.0.1:{self.socket.getsockname()[1]}"
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        conn, _ = self.socket.accept()
        with conn:
            for line in self.lines:
                conn.sendall(line.encode() + b"\r\n")
                conn.recv(4096)
            while self.swallow > 0:
                self.swallow -= len(conn.recv(min(self.swallow, 4096)) or b"x" * self.swallow)
            if self.hang:
                conn.recv(1 << 20)
                time.sleep(8)


TO_DATA = ["220 mx", "250 mx", "250 sender", "250 rcpt", "354 go on"]


@pytest.mark.parametrize("lines,kind,words", [
    ([], "infra", "the connection"),
    (["421 too busy"], "infra", "put off the connection: 421 too busy"),
    (["554 no service here"], "rejected", "refused the connection: 554 no service here"),
    (["this is no mail server"], "infra", "does not answer"),
    (["220 mx"], "infra", "the greeting"),
    (["220 mx", "502 no EHLO", "502 no HELO"], "rejected", "refused the greeting: 502 no HELO"),
    (["220 mx", "250 mx", "421 going down"], "infra", "put off the sender: 421 going down"),
    (TO_DATA, "infra", "the message"),
])
def test_server_hangs_up(mail, lines, kind, words):
    result = mail.run(Script(lines).url, timeout_ms=2000)
    assert set(result) == {kind} and words in result[kind]
    assert not mail.marker.exists()


def test_server_hangs_up_in_the_middle_of_data(mail):
    server = Script(TO_DATA, swallow=100000)
    result = mail.run(server.url, body="0123456789abcdef" * 50 + "\n" * 3 + "x\n" * 2000000)
    assert "the message" in result["infra"]
    assert not mail.marker.exists()


@pytest.mark.parametrize("lines", [[], ["220 mx"], TO_DATA[:3], TO_DATA])
def test_server_hangs(mail, lines):
    start = time.monotonic()
    result = mail.run(Script(lines, hang=True).url, timeout_ms=1000)
    assert "does not answer" in result["infra"]
    assert time.monotonic() - start < 6


def test_many_lines_in_an_answer(mail):
    server = Script(["220-hello\r\n220 mx", "250-mx\r\n250 SIZE 1000", "550-no\r\n550-and\r\n550 never"])
    assert "refused the sender: 550 no and never" in mail.run(server.url)["rejected"]


def test_answer_that_is_no_text(mail):
    server = Script(["220 mx", "250 mx"])
    server.lines.append("550 \x1b[2Jno \udcff".encode("utf-8", "replace").decode() + "\x00é")
    result = mail.run(server.url)
    assert "refused the sender: 550" in result["rejected"]
    assert "\x1b" not in result["rejected"]


def sendmail(mail, script):
    path = mail.folder / "bin" / "sendmail"
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_sendmail(mail):
    out = mail.folder / "bin" / "out"
    command = sendmail(mail, f'printf "%s\\n" "$@" > {out}.args; cat > {out}; echo ok\n')
    to = ["Bób <bob@example.org>", "-evil@example.org", "bob@example.org"]
    for _ in range(2):
        result = mail.run(sendmail=command + "  -f robot@example.org", to=to)
        assert result["sent"] is True and result["refused"] == []
        if not out.exists():
            break
        message = parse(out.read_bytes())
        assert text_of(message) == BODY
        assert b"\r" not in out.read_bytes()
        assert message["To"].addresses[0].display_name == "Bób"
        args = pathlib.Path(f"{out}.args").read_text().split("\n")[:-1]
        assert args == ["-f", "robot@example.org", "-i", "--", "bob@example.org", "-evil@example.org"]
        out.unlink()
    else:
        pytest.fail("sendmail ran again in spite of the marker")


def test_sendmail_t(mail):
    out = mail.folder / "bin" / "args"
    command = sendmail(mail, f'echo "$#" "$@" > {out}; cat > /dev/null\n')
    assert mail.run(sendmail=command + " -t -i")["sent"] is True
    assert out.read_text() == "2 -t -i\n"


def test_sendmail_is_no_shell(mail):
    command = sendmail(mail, 'cat > /dev/null; echo "$@" > ' + str(mail.folder / "bin" / "args") + "\n")
    assert mail.run(sendmail=command + " ; touch " + str(mail.folder / "evil"))["sent"] is True
    assert not (mail.folder / "evil").exists()


@pytest.mark.parametrize("status,kind", [(1, "infra"), (64, "infra"), (65, "rejected"), (67, "rejected"),
                                         (69, "rejected"), (75, "infra"), (77, "rejected")])
def test_sendmail_fails(mail, status, kind):
    command = sendmail(mail, f"cat > /dev/null; echo first; echo mailbox is full >&2; exit {status}\n")
    result = mail.run(sendmail=command)
    assert set(result) == {kind}
    assert f"exit status {status}: mailbox is full" in result[kind]
    assert "first\nmailbox is full" in mail.log
    assert not mail.marker.exists()


def test_sendmail_missing_and_slow(mail):
    assert "No such file" in mail.run(sendmail="/nonexistent/sendmail")["infra"]
    assert "empty" in mail.run(sendmail=" ")["infra"]
    result = mail.run(sendmail=sendmail(mail, "sleep 30\n"), timeout_ms=500)
    assert "killed" in result["infra"]
    assert not mail.marker.exists()
