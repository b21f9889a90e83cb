// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

namespace attendant {

// The labels with a fixed set of values, so that no label ever carries a client's input. Each set
// is an enum and a table with a row for each of its values, in the same order. kEnd is no value.

template <typename Enum>
struct LabelRow {
  Enum value;
  const char* name;  // as the label gives it
};

// True if the table is complete: row i is for value i and has a name, for every value of the enum.
template <typename Rows>
constexpr bool IsWhole(const Rows& rows) {
  using Enum = decltype(rows.front().value);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].value != static_cast<Enum>(i) || rows[i].name == nullptr) return false;
  }
  return static_cast<Enum>(rows.size()) == Enum::kEnd;
}

// The row of a value in its table.
template <typename Enum>
constexpr std::size_t RowIndex(Enum value) {
  return static_cast<std::size_t>(value);
}

// The phases of a request: the label `phase`.
enum class Phase { kTotal, kTokenize, kQueue, kCompute, kSerialize, kEnd };
inline constexpr auto kPhases = std::to_array<LabelRow<Phase>>({
    {Phase::kTotal, "total"},
    {Phase::kTokenize, "tokenize"},
    {Phase::kQueue, "queue"},
    {Phase::kCompute, "compute"},
    {Phase::kSerialize, "serialize"},
});
static_assert(IsWhole(kPhases));

// The methods whose requests are counted, over gRPC and over HTTP: the label `method`.
enum class Method {
  kEncode,
  kEncodeStream,
  kModelInfer,
  kAttend,
  kAttendStream,
  kOpenAiEmbeddings,
  kTeiEmbed,
  kTeiEmbedAll,
  kTeiSimilarity,
  kTeiTokenize,
  kHttpModelInfer,
  kCohereEmbed,
  kTeiRerank,
  kTeiPredict,
  kRerank,
  kHttpEncode,
  kHttpAttend,
  kTeiEmbedSparse,
  kTeiRoot,
  kVllmScore,
  kVllmPooling,
  kEnd,
};
enum class ModelKind { kEncoder, kAttention };  // an encoder, whatever its heads
// When the series of a method begin: with the model, or with the first request, so that an idle
// model has few.
enum class SeriesBegin { kWithModel, kWithRequest };
struct MethodRow {
  Method value;
  const char* name;
  ModelKind model;  // that has the method
  SeriesBegin series;
};
inline constexpr auto kMethods = std::to_array<MethodRow>({
    {Method::kEncode, "encode", ModelKind::kEncoder, SeriesBegin::kWithModel},
    {Method::kEncodeStream, "encode_stream", ModelKind::kEncoder, SeriesBegin::kWithModel},
    {Method::kModelInfer, "model_infer", ModelKind::kEncoder, SeriesBegin::kWithModel},
    {Method::kAttend, "attend", ModelKind::kAttention, SeriesBegin::kWithModel},
    {Method::kAttendStream, "attend_stream", ModelKind::kAttention, SeriesBegin::kWithModel},
    {Method::kOpenAiEmbeddings, "openai_embeddings", ModelKind::kEncoder,
     SeriesBegin::kWithRequest},
    {Method::kTeiEmbed, "tei_embed", ModelKind::kEncoder, SeriesBegin::kWithRequest},
    {Method::kTeiEmbedAll, "tei_embed_all", ModelKind::kEncoder, SeriesBegin::kWithRequest},
    {Method::kTeiSimilarity, "tei_similarity", ModelKind::kEncoder, SeriesBegin::kWithRequest},
    {Method::kTeiTokenize, "tei_tokenize", ModelKind::kEncoder, SeriesBegin::kWithRequest},
    {Method::kHttpModelInfer, "http_model_infer", ModelKind::kEncoder, SeriesBegin::kWithRequest},
    {Method::kCohereEmbed, "cohere_embed", ModelKind::kEncoder, SeriesBegin::kWithRequest},
    {Method::kTeiRerank, "tei_rerank", ModelKind::kEncoder, SeriesBegin::kWithRequest},
    {Method::kTeiPredict, "tei_predict", ModelKind::kEncoder, SeriesBegin::kWithRequest},
    {Method::kRerank, "rerank", ModelKind::kEncoder, SeriesBegin::kWithRequest},
    {Method::kHttpEncode, "http_encode", ModelKind::kEncoder, SeriesBegin::kWithRequest},
    {Method::kHttpAttend, "http_attend", ModelKind::kAttention, SeriesBegin::kWithRequest},
    {Method::kTeiEmbedSparse, "tei_embed_sparse", ModelKind::kEncoder, SeriesBegin::kWithRequest},
    {Method::kTeiRoot, "tei_root", ModelKind::kEncoder, SeriesBegin::kWithRequest},
    {Method::kVllmScore, "vllm_score", ModelKind::kEncoder, SeriesBegin::kWithRequest},
    {Method::kVllmPooling, "vllm_pooling", ModelKind::kEncoder, SeriesBegin::kWithRequest},
});
static_assert(IsWhole(kMethods));

// Why the server itself refused a request or ended a call, whatever the model: the label `reason`.
enum class Refusal {
  kMessage,           // malformed, or more elements than the server takes
  kRequestMemory,     // all requests together hold too much
  kResponseMemory,    // all answers together
  kConnectionMemory,  // requests, answers or streams of one connection
  kSlowReader,        // the client did not take its answer in time
  kUnauthenticated,   // a call without an API key that the server knows
  kPermissionDenied,  // a call whose API key does not have the method's group
  kHttpRequests,      // more requests in work on the HTTP port than --max_http_connections
  kStreamMemory,      // all open streams together
  kConnectionCalls,   // more calls on a connection than its client may open
  kUnknownMethod,     // a call of a method that no gRPC service has
  kCallMemory,        // all calls together that wait for their clients: an older one was ended
  kEnd,
};
inline constexpr auto kRefusals = std::to_array<LabelRow<Refusal>>({
    {Refusal::kMessage, "message"},
    {Refusal::kRequestMemory, "request_memory"},
    {Refusal::kResponseMemory, "response_memory"},
    {Refusal::kConnectionMemory, "connection_memory"},
    {Refusal::kSlowReader, "slow_reader"},
    {Refusal::kUnauthenticated, "unauthenticated"},
    {Refusal::kPermissionDenied, "permission_denied"},
    {Refusal::kHttpRequests, "http_requests"},
    {Refusal::kStreamMemory, "stream_memory"},
    {Refusal::kConnectionCalls, "connection_calls"},
    {Refusal::kUnknownMethod, "unknown_method"},
    {Refusal::kCallMemory, "call_memory"},
});
static_assert(IsWhole(kRefusals));

// The end of a connection to the HTTP port: the label `result`.
enum class HttpEnd {
  kNormal,       // the client has closed it, or it has the last answer
  kReplaced,     // a new connection needed its place
  kIdle,         // its client has asked nothing more for too long
  kSlowHead,     // no whole head in time
  kSlowBody,     // no whole body in time
  kSlowReader,   // the client did not take its answer in time
  kHandshake,    // no TLS in time, or none that fits
  kMalformed,    // no head that HTTP/1.1 allows, or one that is too long: answered 400 or 431
  kForeignPage,  // a web page of another server: answered 403
  kSystem,       // the system lacks memory for it
  kEnd,
};
inline constexpr auto kHttpEnds = std::to_array<LabelRow<HttpEnd>>({
    {HttpEnd::kNormal, "normal"},
    {HttpEnd::kReplaced, "replaced"},
    {HttpEnd::kIdle, "idle"},
    {HttpEnd::kSlowHead, "slow_head"},
    {HttpEnd::kSlowBody, "slow_body"},
    {HttpEnd::kSlowReader, "slow_reader"},
    {HttpEnd::kHandshake, "handshake"},
    {HttpEnd::kMalformed, "malformed"},
    {HttpEnd::kForeignPage, "foreign_page"},
    {HttpEnd::kSystem, "system"},
});
static_assert(IsWhole(kHttpEnds));

// The end of a line of the access log: the label `result`.
enum class LogLine {
  kWritten,
  kLimited,  // more lines in a second than --access_log_lines_per_s
  kDropped,  // more lines wait than the queue holds
  kFailed,   // the file did not take it
  kEnd,
};
inline constexpr auto kLogLines = std::to_array<LabelRow<LogLine>>({
    {LogLine::kWritten, "written"},
    {LogLine::kLimited, "limited"},
    {LogLine::kDropped, "dropped"},
    {LogLine::kFailed, "failed"},
});
static_assert(IsWhole(kLogLines));

// The end of a span: the label `result`.
enum class SpanEnd {
  kExported,
  kDropped,  // the queue was full
  kFailed,   // the collector did not take it
  kEnd,
};
inline constexpr auto kSpanEnds = std::to_array<LabelRow<SpanEnd>>({
    {SpanEnd::kExported, "exported"},
    {SpanEnd::kDropped, "dropped"},
    {SpanEnd::kFailed, "failed"},
});
static_assert(IsWhole(kSpanEnds));

// The files that are read again while the server runs: the label `file`.
enum class ReloadedFile {
  kApiKeys,
  kGrpcTls,  // the certificates of the port
  kHttpTls,  // likewise
  kEnd,
};
inline constexpr auto kReloadedFiles = std::to_array<LabelRow<ReloadedFile>>({
    {ReloadedFile::kApiKeys, "api_keys"},
    {ReloadedFile::kGrpcTls, "grpc_tls"},
    {ReloadedFile::kHttpTls, "http_tls"},
});
static_assert(IsWhole(kReloadedFiles));

}  // namespace attendant
