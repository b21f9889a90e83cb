# SPDX-License-Identifier: Apache-2.0
"""Addresses, headers and files of TLS that cannot be used."""

import pytest

import attendant

DAMAGED = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize("client", [attendant.Client, attendant.AsyncClient])
@pytest.mark.parametrize("target, error", [("", ValueError), ("127.0.0.1:65536", ValueError), ("[::1]:99999999999", ValueError),
                                           ("127.0.0.1:-1", ValueError), ("localhost:99999999999999999999", ValueError),
                                           ("localhost:65537/", ValueError), ("localhost:+65537", ValueError),
                                           (8001, TypeError), (None, TypeError), (("127.0.0.1", 8001), TypeError)])
def test_addresses_that_no_server_has(client, target, error):
    with pytest.raises(error, match="target is .*: it must be .*HOST:PORT"):
        client(target)


@pytest.mark.parametrize("client", [attendant.Client, attendant.AsyncClient])
@pytest.mark.parametrize("options, error", [
    ({"tls": True}, r"tls is True: it must be Tls\(\), or None"), ({"tls": "ca.pem"}, r"tls is 'ca.pem': it must be Tls\(\), or None"),
    ({"model": 5}, "model is 5: it must be a text"), ({"retry": 3}, "retry is 3: it must be a Retry")])
def test_options_of_another_type(client, options, error):
    with pytest.raises(TypeError, match=f"^{error}$"):
        client(**options)


@pytest.fixture
def pem(tmp_path):
    """pem(text): a file of it."""
    def write(text):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.pem"
        path.write_text(text)
        return path
    return write


@pytest.mark.parametrize("options, error", [
    ({"api_key": b"key"}, "api_key is of bytes"), ({"api_key": lambda: 5}, "api_key is of int"), ({"request_id": 5}, "request_id is of int"),
    ({"metadata": {"team": 5}}, r"metadata\['team'\] is of int"), ({"metadata": {"team-bin": "x"}}, "'team-bin'")])
def test_headers_that_are_no_texts(fake, connect, options, error):
    with pytest.raises((TypeError, ValueError), match=error), connect(**options) as client:
        client.embed("abc")
    assert not fake.requests


@pytest.mark.parametrize("client", [attendant.Client, attendant.AsyncClient])
@pytest.mark.parametrize("files, missing", [
    ({"ca_file": ""}, "certificate"), ({"ca_file": "text"}, "certificate"), ({"ca_file": KEY}, "certificate"),
    ({"cert_file": KEY, "key_file": KEY}, "certificate"), ({"cert_file": DAMAGED, "key_file": DAMAGED}, "private key")])
def test_a_file_that_holds_something_else(client, pem, files, missing):
    tls = attendant.Tls(**{name: pem(text) for name, text in files.items()})
    with pytest.raises(ValueError, match=f"the PEM file .*pem has no {missing}$"):
        client(tls=tls)


@pytest.mark.parametrize("client", [attendant.Client, attendant.AsyncClient])
def test_a_file_without_an_end(client):
    with pytest.raises(ValueError, match="the PEM file /dev/zero has more than 16777216 bytes"):
        client(tls=attendant.Tls(ca_file="/dev/zero"))


def test_a_damaged_file_is_not_tried_again(fake, connect, pem):
    with connect(tls=attendant.Tls(ca_file=pem(DAMAGED))) as client:
        with pytest.raises(attendant.UnavailableError, match="the files of Tls cannot be used: is one damaged") as caught:
            client.embed("abc")
    assert not caught.value.retryable
