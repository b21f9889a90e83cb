# SPDX-License-Identifier: Apache-2.0
"""A port before a server's, which stops what clients send when a test says so."""

import contextlib
import socket
import threading


class Gate:
    """Passes on what clients and the server at `address` send to each other. Once closes() has been true, nothing of clients
    passes until open(). It has an address for them, as a Server has."""

    def __init__(self, address, closes):
        self.closes = closes
        self.opened = threading.Event()
        host, _, port = address.rpartition(":")
        self.server = host, int(port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.grpc = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def open(self):
        self.opened.set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.open()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self):
        with contextlib.suppress(OSError):  # the listener is closed
            while True:
                self._connect(self.listener.accept()[0])

    def _connect(self, client):
        try:
            server = socket.create_connection(self.server)
        except OSError:  # it has gone: so does its client
            return client.close()
        for side in client, server:
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=self._pass, args=(client, server, self._stand), daemon=True).start()
        threading.Thread(target=self._pass, args=(server, client, lambda: None), daemon=True).start()

    def _stand(self):
        if self.closes():
            self.opened.wait()

    @staticmethod
    def _pass(source, sink, stand):
        """Until either side has closed: then the other one is closed too."""
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                stand()
                sink.sendall(data)
        for side in source, sink:
            with contextlib.suppress(OSError):  # it is closed
                side.shutdown(socket.SHUT_RDWR)
