// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/reflection_service.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;

void AppendFile(const FileDescriptor& file, absl::flat_hash_set<const FileDescriptor*>& seen,
                ServerReflectionResponse& response) {
  if (!seen.insert(&file).second) return;
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  proto.SerializeToString(response.mutable_file_descriptor_response()->add_file_descriptor_proto());
  for (int i = 0; i < file.dependency_count(); ++i) AppendFile(*file.dependency(i), seen, response);
}

void AnswerNotFound(const std::string& name, ServerReflectionResponse& response) {
  response.mutable_error_response()->set_error_code(grpc::StatusCode::NOT_FOUND);
  response.mutable_error_response()->set_error_message(absl::StrCat("there is no ", name));
}

void AnswerFile(const FileDescriptor* file, const std::string& name,
                ServerReflectionResponse& response) {
  if (file == nullptr) return AnswerNotFound(name, response);
  absl::flat_hash_set<const FileDescriptor*> seen;
  AppendFile(*file, seen, response);
}

const FileDescriptor* FileOfExtension(const DescriptorPool& pool, const std::string& type,
                                      int number) {
  const Descriptor* message = pool.FindMessageTypeByName(type);
  if (message == nullptr) return nullptr;
  const FieldDescriptor* extension = pool.FindExtensionByNumber(message, number);
  return extension == nullptr ? nullptr : extension->file();
}

void AnswerExtensions(const DescriptorPool& pool, const std::string& type,
                      ServerReflectionResponse& response) {
  const Descriptor* message = pool.FindMessageTypeByName(type);
  if (message == nullptr) return AnswerNotFound(type, response);
  std::vector<const FieldDescriptor*> extensions;
  pool.FindAllExtensions(message, &extensions);
  auto& answer = *response.mutable_all_extension_numbers_response();
  answer.set_base_type_name(type);
  for (const FieldDescriptor* extension : extensions) {
    answer.add_extension_number(extension->number());
  }
}

void Fill(const ServerReflectionRequest& request, const std::vector<std::string>& services,
          ServerReflectionResponse& response) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kListServices:
      for (const std::string& service : services) {
        response.mutable_list_services_response()->add_service()->set_name(service);
      }
      return;
    case ServerReflectionRequest::kFileByFilename:
      return AnswerFile(pool.FindFileByName(request.file_by_filename()), request.file_by_filename(),
                        response);
    case ServerReflectionRequest::kFileContainingSymbol:
      return AnswerFile(pool.FindFileContainingSymbol(request.file_containing_symbol()),
                        request.file_containing_symbol(), response);
    case ServerReflectionRequest::kFileContainingExtension: {
      const auto& asked = request.file_containing_extension();
      return AnswerFile(
          FileOfExtension(pool, asked.containing_type(), asked.extension_number()),
          absl::StrCat("extension ", asked.extension_number(), " of ", asked.containing_type()),
          response);
    }
    case ServerReflectionRequest::kAllExtensionNumbersOfType:
      return AnswerExtensions(pool, request.all_extension_numbers_of_type(), response);
    case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      response.mutable_error_response()->set_error_code(grpc::StatusCode::INVALID_ARGUMENT);
      response.mutable_error_response()->set_error_message("the request asks for nothing");
  }
}

}  // namespace

// The messages of a stream are answered one after the other.
ReflectionService::ReflectionService(CallGate& gate, MemoryBudgets& budgets,
                                     std::vector<std::string> others)
    : RawService(gate, budgets), services_(std::move(others)) {
  services_.emplace_back(grpc::reflection::v1alpha::ServerReflection::service_full_name());
  AddOpenMethod(streams_);
  ServeStream<ServerReflectionResponse>(
      "ServerReflectionInfo", MethodGroup::kRead, [this, &budgets](IncomingCall& call) {
        return Stream::Start(
            streams_.calls, {.max_requests = 1}, budgets, call,
            [this](Stream::Exchange& exchange, Stream::Done done) { done(Answer(exchange)); });
      });
}

absl::Status ReflectionService::Answer(Stream::Exchange& exchange) {
  ServerReflectionRequest request;
  ATTENDANT_RETURN_IF_ERROR(ReadSmall(exchange.request, request));
  exchange.request.Clear();
  Fill(request, services_, exchange.answer);
  return exchange.state->AcquireResponse(static_cast<int64_t>(exchange.answer.ByteSizeLong()) +
                                         kAnswerBytes);
}

}  // namespace attendant
