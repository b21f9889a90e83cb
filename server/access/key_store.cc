// SPDX-License-Identifier: Apache-2.0
#include "server/access/key_store.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/core/base/regular_file.h"
#include "kernels/core/status_macros.h"

namespace attendant {
namespace {

constexpr int64_t kMaxKeyFileBytes = int64_t{1} << 20;

absl::StatusOr<ApiKeys> ParseFile(const std::string& path,
                                  const absl::StatusOr<std::string>& text) {
  ATTENDANT_RETURN_IF_ERROR(text.status());
  absl::StatusOr<ApiKeys> keys = ApiKeys::Parse(*text);
  if (keys.ok()) return keys;
  return absl::Status(keys.status().code(), absl::StrCat(path, ": ", keys.status().message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<KeyStore>> KeyStore::Open(std::string path) {
  std::unique_ptr<KeyStore> store(new KeyStore(std::move(path)));
  ATTENDANT_RETURN_IF_ERROR(store->Reload().status());
  return store;
}

absl::StatusOr<bool> KeyStore::Reload() {
  const absl::StatusOr<std::string> text = ReadTextFile(path_, kMaxKeyFileBytes);
  const Sha256Digest seen = Sha256(text.ok() ? absl::StrCat("text ", *text)
                                             : absl::StrCat("error ", text.status().message()));
  {
    absl::MutexLock lock(&mutex_);
    if (seen == seen_) return false;
    seen_ = seen;
  }
  ATTENDANT_ASSIGN_OR_RETURN(ApiKeys keys, ParseFile(path_, text));
  absl::MutexLock lock(&mutex_);
  keys_ = std::make_shared<const ApiKeys>(std::move(keys));
  generation_.fetch_add(1, std::memory_order_release);
  return true;
}

absl::StatusOr<KeyStore::Grant> KeyStore::Authorize(absl::string_view key,
                                                    MethodGroup group) const {
  if (key.empty()) {
    return absl::UnauthenticatedError(
        "an API key is needed: send the metadata 'authorization: Bearer KEY' or 'x-api-key: KEY'");
  }
  return Authorize([key](const ApiKeys& keys) { return keys.Find(key); }, group);
}

absl::StatusOr<KeyStore::Grant> KeyStore::Authorize(const Sha256Digest& digest,
                                                    MethodGroup group) const {
  return Authorize([&digest](const ApiKeys& keys) { return keys.Find(digest); }, group);
}

absl::StatusOr<KeyStore::Grant> KeyStore::Authorize(
    absl::FunctionRef<const ApiKeys::Key*(const ApiKeys&)> find, MethodGroup group) const {
  const uint64_t generation = this->generation();  // before its keys: those may be newer
  std::shared_ptr<const ApiKeys> keys;
  {
    absl::MutexLock lock(&mutex_);
    keys = keys_;
  }
  const ApiKeys::Key* const found = find(*keys);
  if (found == nullptr) return absl::UnauthenticatedError("the server does not know this API key");
  if (found->may_call(group)) return Grant{found->name, found->digest, generation};
  return absl::PermissionDeniedError(absl::StrCat("the API key '", found->name,
                                                  "' does not have the group '", GroupName(group),
                                                  "' of this method"));
}

}  // namespace attendant
