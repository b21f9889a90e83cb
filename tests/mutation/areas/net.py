# SPDX-License-Identifier: Apache-2.0
TESTS = ["net_test", "http_endpoint_test"]
FILE_TESTS = {
    "server/net/connection_acceptor.cc": ["net_test"],
    "server/net/listening_socket.cc": ["net_test"],
    "server/http/http_connection.cc": ["http_endpoint_test"],
    "server/http/http_endpoint.cc": ["http_endpoint_test"],
}
MUTANTS = {
    "server/net/connection_acceptor.cc": [
        ("static_cast<int64_t>(open.size()) >= limits.max_connections",
         "static_cast<int64_t>(open.size()) > limits.max_connections"),
        ("if (--found->second == 0) open_by_address.erase(found);", ""),
        ("SocketNumber(connection.fd) == connection.number", "SocketNumber(connection.fd) != 0"),
        ("if (!reserve.valid()) reserve = OpenReserve();", ""),
        ("errno == EMFILE || errno == ENFILE", "errno == ENFILE"),
        ("Forget();\n  return WithinLimits(address, refusal);", "return WithinLimits(address, refusal);"),
        ("++open_by_address[address];", ""),
    ],
    "server/net/listening_socket.cc": [
        ("ntohl(v4.s_addr) >> 24 == 127", "true"),
        ("if (port != 0) SetPort(port, address);", ""),
        ("!listening.fds.empty() && reason != EADDRINUSE", "!listening.fds.empty()"),
    ],
    "server/http/http_connection.cc": [
        ("input_.size() < kMaxRequestBytes", "true"),
        ("written_ < output_.size()", "written_ + 1 < output_.size()"),
        ("deadline_ = now + kWriteTime;", ""),
        ("target.substr(0, target.find('?'))", "target"),
    ],
    "server/http/http_endpoint.cc": [
        ("connections[i].deadline() > now", "true"),
        ("scrape.clear();", ""),
    ],
}
