# SPDX-License-Identifier: Apache-2.0
TESTS = ["net_test", "http_endpoint_test", "http_doors_test"]
FILE_TESTS = {
    "server/net/connection_acceptor.cc": ["net_test"],
    "server/net/listening_socket.cc": ["net_test"],
    "server/http/connection/http_connection.cc": ["http_endpoint_test", "http_doors_test"],
    "server/http/port/http_endpoint.cc": ["http_endpoint_test", "http_doors_test", "drain_test:LongDrainTest.*"],
    "server/http/connection/http_message.cc": ["http_endpoint_test"],
    "server/http/connection/dispatch.cc": ["http_endpoint_test", "http_doors_test"],
    "server/http/connection/foreign_page.cc": ["http_endpoint_test"],
    "server/http/connection/request_head.cc": ["http_endpoint_test"],
    "server/http/connection/request_target.cc": ["http_endpoint_test"],
    "server/http/http_routes.cc": ["http_doors_test"],
    "server/http/connection/route_call.cc": ["http_doors_test"],
    "server/http/connection/body_buffer.cc": ["http_endpoint_test"],
    "server/http/gzip.cc": ["http_endpoint_test"],
    "server/app/grpc_server.cc": ["app_test:GrpcServerTest.*"],
    "server/app/grpc_services.cc": ["app_test:GrpcServicesTest.*"],
    "server/app/running_app.cc": ["drain_test:LongDrainTest.*", "app_test:AppTest.*"],
}
MUTANTS = {
    "server/app/grpc_server.cc": [
        ("SetKeepalive(builder);", ""),
        ("""builder.SetResourceQuota(
      grpc::ResourceQuota("attendant")
          .Resize(static_cast<size_t>(std::max(kLeastQuotaBytes, 16 * flags.max_request_bytes))));""", ""),
        ("builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);", ""),
        ("Milliseconds(limits.max_age_s)", "Milliseconds(limits.max_idle_s)"),
    ],
    "server/app/running_app.cc": [
        ("grpc_.goaway->Send(*grpc_.server);", ""),
        ("grpc_.acceptor->StopAccepting();", "grpc_.acceptor.reset();"),
        ("http_->EndConnections();", ""),
        ("registry_.AnnounceDrain();\n  «UpdateHealth();»", ""),
        ("metrics_.SetReady(ready);", ""),
    ],
    "server/app/grpc_services.cc": [
        ("names_.push_back(Proto::service_full_name());", ""),
        ("open_methods_.insert(open_methods_.end(), methods.begin(), methods.end());", ""),
        ('flags.attention_service', "true"),
        ('flags.reflection', "true"),
    ],
    "server/net/connection_acceptor.cc": [
        ("num_open >= limits.max_connections", "num_open > limits.max_connections"),
        ("SocketNumber(connection.fd) != connection.number", "SocketNumber(connection.fd) == 0"),
        ("if (!reserve.valid()) reserve = OpenReserve();", ""),
        ("errno == EMFILE || errno == ENFILE", "errno == ENFILE"),
        ("ForgetIn(own);", "Forget();"),
        ("else {\n    «Forget();»\n  }", ""),
        ("if (now < looks_again) return false;", ""),
        ("++num_open;", ""),
        ("serve = nullptr;\n  «stopped_listening.Notify();»", ""),
        ("socket.fds.clear();", ""),
    ],
    "server/net/listening_socket.cc": [
        ("ntohl(v4.s_addr) >> 24 == 127", "true"),
        ("if (port != 0) SetPort(port, address);", ""),
        ("!listening.fds.empty() && reason != EADDRINUSE", "!listening.fds.empty()"),
    ],
    "server/http/connection/http_connection.cc": [
        ("Expire(kBodyTime);", ""),
        ("if (entered_) call_->state().Cancel();", ""),
        ("if (peer_closed_) call_->state().Cancel();", ""),
        ("if (std::exchange(entered_, false)) host_.Leave();", ""),
        ("if (entered_) return Phase::kInWork;", ""),
        ("if (call_) return Phase::kSending;", ""),
        ("parser_->keep_alive() && !host_.ends_connections()", "parser_->keep_alive()"),
    ],
    "server/http/port/http_endpoint.cc": [
        ("impl_->entered > 0 && «SteadyNow() < deadline»", "false"),
        ("return «phase != Phase::kServing»;", "phase == Phase::kClosing"),
        ("entered >= doors.limits.max_connections", "entered > doors.limits.max_connections"),
        ("if («gone != connections.end()») gone->second->PeerClosed();", "false"),
        ("fresh.size > 0 && !many_bodies", "fresh.size > 0"),
        ("if (waiting.size > 0) gives_way = waiting.oldest;", ""),
        ("fresh.size >= HttpLimits::kPageConnections", "false"),
        ("round.text.reset();", ""),
        ("Compress(takes_gzip, *answer);", ""),
    ],
    "server/http/http_routes.cc": [
        ("shared <= most", "shared < most"),
        ('gets && method == "HEAD"', "false"),
    ],
    "server/http/connection/route_call.cc": [
        ("if (!ended_) End(code);", ""),
    ],
    "server/http/connection/dispatch.cc": [
        ("if (!head.HasFitHost()) return {.answer = UnfitHost()};", ""),
        ("target->authority ? *target->authority : head.Find(\"host\")", "head.Find(\"host\")"),
        ("TakesGzip(header)", "false"),
    ],
    "server/http/connection/request_head.cc": [
        ("if (hosts == 0) return line_.http_1_0;", ""),
        ("hosts == 1 && IsHostValue(*Find(\"host\"))", "hosts == 1"),
        ("if (Count(name) != 1) return std::nullopt;", "if (Count(name) == 0) return std::nullopt;"),
    ],
    "server/http/connection/request_target.cc": [
        ("target == \"*\" && method == \"OPTIONS\"", "target == \"*\""),
        ("target.find_first_of(\"/?\")", "target.find('/')"),
        ("escaped && IsUnreserved(byte[0])", "escaped"),
        ("path_and_query.substr(0, path_and_query.find('?'))", "path_and_query"),
        ("authority.empty() || !IsHostValue(authority)", "authority.empty()"),
        ("path.empty() ? \"/\" : std::move(path)", "std::move(path)"),
    ],
    "server/http/connection/foreign_page.cc": [
        ('absl::EqualsIgnoreCase(name, "localhost")', 'absl::StartsWithIgnoreCase(name, "localhost")'),
        ("if (!host || scheme_end == absl::string_view::npos) return true;", ""),
    ],
    "server/http/connection/http_message.cc": [
        ("while (absl::StartsWith(bytes.substr(count), \"\\r\\n\")) count += 2;", ""),
        ("length.value_or(0) > static_cast<uint64_t>(max_bytes)",
         "length.value_or(0) >= static_cast<uint64_t>(max_bytes)"),
    ],
    "server/http/connection/body_buffer.cc": [
        ("memory_.ShrinkTo(static_cast<int64_t>(text_.size()));", ""),
        ("std::exchange(memory_, ByteBudget::Share())", "ByteBudget::Share()"),
    ],
    "server/http/gzip.cc": [
        ("end == Z_STREAM_END && stream.total_out == text.size()", "end == Z_STREAM_END"),
        ("stream.avail_in == 0", "true"),
        ("bytes > kMostGrowth * member.size()", "bytes > 100 * kMostGrowth * member.size()"),
    ],
}
