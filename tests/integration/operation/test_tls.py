# SPDX-License-Identifier: Apache-2.0
"""Encrypted connections: the server shows its certificate and, when told to, asks for the client's."""

import contextlib
import json
import shutil
import socket
import ssl
import subprocess
import urllib.error
import urllib.request

import grpc
import pytest

from harness import exposition, settings
from harness.attendant import DEADLINE
from harness.server import SANITIZER_REPORT, wait_until

USAGE = 2
NO_ANSWER = 3
CERTIFICATE = 4


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A folder with ca, other_ca, server, client and new_server: NAME.pem and NAME.key. other_ca has signed new_server.
    encrypted.key is server's with a passphrase."""
    folder = tmp_path_factory.mktemp("tls")

    def openssl(name, subject, *arguments):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                        "-nodes", "-days", "2", "-subj", f"/CN={subject}", "-keyout", f"{name}.key",
                        "-out", f"{name}.pem", *arguments], cwd=folder, check=True, capture_output=True)

    for name in ("ca", "other_ca"):
        openssl(name, name, "-addext", "keyUsage=critical,keyCertSign")
    signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "basicConstraints=critical,CA:FALSE"]
    openssl("server", "server", *signed, "-addext", "subjectAltName=IP:127.0.0.1")
    openssl("client", "client", *signed)
    openssl("new_server", "server", *[word.replace("ca.", "other_ca.") for word in signed], "-addext",
            "subjectAltName=IP:127.0.0.1")
    subprocess.run(["openssl", "pkey", "-in", "server.key", "-aes256", "-passout", "pass:secret", "-out",
                    "encrypted.key"], cwd=folder, check=True, capture_output=True)
    return folder


def encode(target, *flags):
    """The command line asking the server there."""
    command = [settings.bin_dir() / "attendant", "encode", f"--server={target}", f"--timeout={DEADLINE}s", "--ids=5,6,7"]
    return subprocess.run([*command, *flags], capture_output=True, timeout=2 * DEADLINE, check=False, text=True)


def embed(server, *flags):
    """The exit code of the command line asking this server."""
    ended = encode(server.grpc, *flags)
    assert not SANITIZER_REPORT.search(ended.stderr), ended.stderr
    return ended.returncode


@pytest.fixture
def start_tls(start_server, certificates):
    def start(*flags):
        return start_server({"tiny": settings.TINY_MODEL}, f"--tls_cert={certificates / 'server.pem'}",
                            f"--tls_key={certificates / 'server.key'}", *flags).wait_ready()
    return start


def test_server_certificate(start_tls, certificates):
    server = start_tls()
    assert embed(server, f"--tls_ca={certificates / 'ca.pem'}") == 0
    assert embed(server, f"--tls_ca={certificates / 'other_ca.pem'}") == CERTIFICATE
    assert embed(server) == NO_ANSWER
    assert encode(server.grpc).stderr.endswith("Socket closed (the server may need --tls)\n")
    credentials = grpc.ssl_channel_credentials((certificates / "ca.pem").read_bytes())
    with grpc.secure_channel(server.grpc, credentials) as channel:
        grpc.channel_ready_future(channel).result(timeout=DEADLINE)


def test_a_new_certificate_is_taken(start_server, certificates, tmp_path):
    for name in ("server.pem", "server.key"):
        shutil.copy(certificates / name, tmp_path / name)
    server = start_server({"tiny": settings.TINY_MODEL}, f"--tls_cert={tmp_path / 'server.pem'}",
                          f"--tls_key={tmp_path / 'server.key'}", "--tls_reload_s=1").wait_ready()
    assert embed(server, f"--tls_ca={certificates / 'ca.pem'}") == 0
    for name in ("server.pem", "server.key"):
        shutil.copy(certificates / f"new_{name}", tmp_path / "next")
        (tmp_path / "next").rename(tmp_path / name)
    wait_until("the new certificate", 30, lambda: embed(server, f"--tls_ca={certificates / 'other_ca.pem'}") == 0)
    assert embed(server, f"--tls_ca={certificates / 'ca.pem'}") == CERTIFICATE


@pytest.mark.parametrize("text", ["", "broken"])
def test_a_broken_certificate_changes_nothing(start_server, certificates, tmp_path, text):
    """Also an empty one, which is what a file is for a moment while it is written in place."""
    for name in ("server.pem", "server.key"):
        shutil.copy(certificates / name, tmp_path / name)
    server = start_server({"tiny": settings.TINY_MODEL}, f"--tls_cert={tmp_path / 'server.pem'}",
                          f"--tls_key={tmp_path / 'server.key'}", "--tls_reload_s=1").wait_ready()
    (tmp_path / "server.pem").write_text(text)
    wait_until("the error", 30, lambda: server.log().count("the files read before stay") >= 3)
    assert embed(server, f"--tls_ca={certificates / 'ca.pem'}") == 0
    assert 'attendant_reload_failed{file="grpc_tls"} 1' in server.get("/metrics")[1]
    for name in ("server.key", "server.pem"):  # in place, and one after the other
        (tmp_path / name).write_bytes((certificates / f"new_{name}").read_bytes())
    wait_until("the new certificate", 30, lambda: embed(server, f"--tls_ca={certificates / 'other_ca.pem'}") == 0)
    wait_until("the metric", 30, lambda: 'attendant_reload_failed{file="grpc_tls"} 0' in server.get("/metrics")[1])


@pytest.mark.parametrize("cert, key, text", [
    ("server.pem", "client.key", "client.key: not a PEM private key that fits the certificate"),
    ("server.key", "server.key", "server.key: not a PEM certificate chain"),
    ("server.pem", "gone.key", "gone.key"),
    ("server.pem", "encrypted.key", "encrypted.key: the key is encrypted"),
])
def test_files_that_do_not_fit(certificates, cert, key, text):
    command = [settings.bin_dir() / "attendant-server", "--listen=127.0.0.1:0", "--http_listen=127.0.0.1:0",
               f"--model=tiny={settings.TINY_MODEL}", f"--tls_cert={certificates / cert}",
               f"--tls_key={certificates / key}"]
    ended = subprocess.run(command, capture_output=True, timeout=60, check=False, text=True)
    assert ended.returncode == 1
    assert text in ended.stdout + ended.stderr


@pytest.mark.parametrize("flags, text", [
    (["ca=server.key"], "server.key has no certificate"),
    (["cert=client.key", "key=client.key"], "client.key has no certificate"),
    (["cert=client.pem", "key=client.pem"], "client.pem has no private key"),
    (["ca=gone.pem"], "gone.pem"),
])
def test_files_of_a_client_that_do_not_fit(certificates, flags, text):
    ended = encode("127.0.0.1:1", *[f"--tls_{flag.replace('=', f'={certificates}/')}" for flag in flags])
    assert ended.returncode == USAGE, ended.stderr
    assert text in ended.stderr


def test_client_certificate(start_tls, certificates):
    server = start_tls(f"--tls_client_ca={certificates / 'ca.pem'}")
    trusted = f"--tls_ca={certificates / 'ca.pem'}"
    assert embed(server, trusted) == NO_ANSWER
    assert embed(server, trusted, f"--tls_cert={certificates / 'client.pem'}",
                 f"--tls_key={certificates / 'client.key'}") == 0


def https(server, authority, path="/readyz", body=None, client=None):
    """The status code over TLS; 0 when there is no connection. `client`: certificate and key."""
    context = ssl.create_default_context(cafile=authority)
    if client:
        context.load_cert_chain(*client)
    try:
        with urllib.request.urlopen(urllib.request.Request(f"https://{server.http}{path}", body), timeout=DEADLINE,
                                    context=context) as answer:
            answer.read()
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def test_http_speaks_tls_too(start_server, certificates, tmp_path):
    for name in ("server.pem", "server.key"):
        shutil.copy(certificates / name, tmp_path / name)
    server = start_server({"tiny": settings.TINY_MODEL}, f"--tls_cert={tmp_path / 'server.pem'}",
                          f"--tls_key={tmp_path / 'server.key'}", "--tls_reload_s=1", "--http_tls=on")
    wait_until("/readyz", 60, lambda: https(server, certificates / "ca.pem") == 200)
    long_body = json.dumps({"inputs": [[5, 6, 7]] * 3000}).encode()
    assert https(server, certificates / "ca.pem", "/embed_all", long_body) == 200
    assert https(server, certificates / "ca.pem", "/embed", b"{") == 400
    assert https(server, certificates / "other_ca.pem") == 0
    with pytest.raises(OSError):
        server.get("/readyz")  # without TLS
    for name in ("server.pem", "server.key"):
        shutil.copy(certificates / f"new_{name}", tmp_path / "next")
        (tmp_path / "next").rename(tmp_path / name)
    wait_until("the new certificate", 30, lambda: https(server, certificates / "other_ca.pem") == 200)
    (tmp_path / "server.pem").write_text("broken")
    wait_until("the error", 30, lambda: "the files read before stay" in server.log())
    assert https(server, certificates / "other_ca.pem") == 200


def test_an_http_port_that_is_left_in_plaintext_is_warned_of(start_tls, certificates):
    authority = f"--tls_client_ca={certificates / 'ca.pem'}"
    warning, without_certificates = "--http_listen 0.0.0.0:0 reaches other machines", "need no certificate"
    log = start_tls("--http_listen=0.0.0.0:0").log()
    assert warning in log and "is not encrypted" in log and without_certificates not in log
    assert without_certificates in start_tls("--http_listen=0.0.0.0:0", authority).log()
    assert "reaches other machines" not in start_tls(authority).log(), "on loopback"


def test_the_end_of_an_https_connection_is_told(start_server, certificates):
    """Without TLS's close_notify a client cannot tell a whole answer from one that somebody has cut off."""
    server = start_server({"tiny": settings.TINY_MODEL}, f"--tls_cert={certificates / 'server.pem'}",
                          f"--tls_key={certificates / 'server.key'}", "--http_tls=on")
    context = ssl.create_default_context(cafile=certificates / "ca.pem")
    host, port = server.http.rsplit(":", 1)
    for rest in (b"", b"GET /healthz HTTP/1.1\r\n\r\n"):  # what comes behind the last request is not answered
        with socket.create_connection((host, int(port)), timeout=DEADLINE) as plain, \
                context.wrap_socket(plain, server_hostname="127.0.0.1", suppress_ragged_eofs=False) as tls:
            tls.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + rest)
            answer = b""
            while part := tls.recv(1000):
                answer += part
            assert answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b"\r\n\r\nok\n")


@pytest.mark.parametrize("behind, ends", [(0, False), (1, False), (100000, True)])
def test_an_https_client_that_closes_cancels_its_request(start_server, certificates, behind, ends):
    """By its close_notify, also behind a next request; behind a long one by the end of its connection."""
    server = start_server({"tiny": settings.TINY_MODEL}, f"--tls_cert={certificates / 'server.pem'}",
                          f"--tls_key={certificates / 'server.key'}", "--http_tls=on",
                          "--max_queue_delay_us=60000000")  # a request alone waits for that long
    context = ssl.create_default_context(cafile=certificates / "ca.pem")
    host, port = server.http.rsplit(":", 1)
    body = json.dumps({"model": "tiny", "input": [5, 6, 7]}).encode()
    head = b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"

    def scraped(line):
        with urllib.request.urlopen(f"https://{server.http}/metrics", context=context, timeout=DEADLINE) as page:
            return line in page.read().decode()

    wait_until("/readyz", 60, lambda: https(server, certificates / "ca.pem") == 200)
    tls = context.wrap_socket(socket.create_connection((host, int(port)), timeout=DEADLINE), server_hostname="127.0.0.1")
    tls.sendall(head % len(body) + body)
    wait_until("the request", 30, lambda: scraped('attendant_queue_requests{model="tiny"} 1'))
    if behind:
        tls.sendall(head % behind + b"x" * behind)
    assert scraped('attendant_queue_requests{model="tiny"} 1')
    tls.setblocking(False)
    with contextlib.suppress(ssl.SSLError):
        tls.unwrap()  # says goodbye, and reads what the server has said meanwhile: nothing, its answer or its goodbye
    if ends:
        tls.close()
    wait_until("its end", 30, lambda: scraped(
        'attendant_requests_total{code="CANCELLED",method="openai_embeddings",model="tiny"} 1'))


def test_a_failed_handshake_is_counted(start_server, certificates):
    server = start_server({"tiny": settings.TINY_MODEL}, f"--tls_cert={certificates / 'server.pem'}",
                          f"--tls_key={certificates / 'server.key'}", f"--tls_client_ca={certificates / 'ca.pem'}",
                          "--http_tls=on")
    client = certificates / "client.pem", certificates / "client.key"
    wait_until("/readyz", 60, lambda: https(server, certificates / "ca.pem", client=client) == 200)
    context = ssl.create_default_context(cafile=certificates / "ca.pem")
    context.load_cert_chain(*client)

    def handshakes():
        with urllib.request.urlopen(f"https://{server.http}/metrics", context=context, timeout=DEADLINE) as page:
            return exposition.Page(page.read().decode()).value("attendant_http_connections_total", result="handshake")

    host, port = server.http.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=DEADLINE):
        pass  # a probe of the port
    assert handshakes() == 0
    with socket.create_connection((host, int(port)), timeout=DEADLINE) as plain:
        plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        while plain.recv(1000):
            pass
    wait_until("the count of what is no TLS", 30, lambda: handshakes() == 1)
    assert https(server, certificates / "ca.pem") == 0, "without a certificate"
    wait_until("the count of a client without a certificate", 30, lambda: handshakes() == 2)


def test_half_a_record_behind_an_https_request_holds_no_answer(start_server, certificates):
    """The bytes of the record come one by one while the request is in work: a read of them must end wherever it is."""
    server = start_server({"tiny": settings.TINY_MODEL}, f"--tls_cert={certificates / 'server.pem'}",
                          f"--tls_key={certificates / 'server.key'}", "--http_tls=on")
    context = ssl.create_default_context(cafile=certificates / "ca.pem")
    host, port = server.http.rsplit(":", 1)
    wait_until("/readyz", 60, lambda: https(server, certificates / "ca.pem") == 200)
    body = json.dumps({"model": "tiny", "input": [[5] * 30] * 60}).encode()
    request = b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    for _ in range(200):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        with socket.create_connection((host, int(port)), timeout=DEADLINE) as plain:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            exchange(plain, incoming, outgoing, tls.do_handshake)
            tls.write(request)
            plain.sendall(outgoing.read())
            tls.write(b"x" * 16000)
            for byte in outgoing.read()[:1500]:
                plain.send(bytes([byte]))
            assert exchange(plain, incoming, outgoing, lambda: tls.read(12)) == b"HTTP/1.1 200"


def exchange(plain, incoming, outgoing, step):
    """The result of a step of TLS, for which bytes go and come."""
    while True:
        try:
            return step()
        except ssl.SSLWantReadError:
            plain.sendall(outgoing.read())
            incoming.write(plain.recv(65536))
        finally:
            plain.sendall(outgoing.read())


def test_http_asks_for_client_certificates(start_server, certificates):
    server = start_server({"tiny": settings.TINY_MODEL}, f"--tls_cert={certificates / 'server.pem'}",
                          f"--tls_key={certificates / 'server.key'}", f"--tls_client_ca={certificates / 'ca.pem'}",
                          "--http_tls=on")
    client = certificates / "client.pem", certificates / "client.key"
    wait_until("/readyz", 60, lambda: https(server, certificates / "ca.pem", client=client) == 200)
    assert https(server, certificates / "ca.pem") == 0
    context = ssl.create_default_context(cafile=certificates / "ca.pem")
    context.load_cert_chain(*client)
    context.maximum_version = ssl.TLSVersion.TLSv1_2  # its session is there when the handshake ends
    session, resumed = None, []
    for _ in range(2):
        host, port = server.http.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=DEADLINE) as plain, \
                context.wrap_socket(plain, server_hostname="127.0.0.1", session=session) as tls:
            tls.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert tls.recv(1000).startswith(b"HTTP/1.1 200 ")
            session = tls.session
            resumed.append(tls.session_reused)
    assert resumed == [False, True]
