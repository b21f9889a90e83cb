// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/http/doors/door_call.h"
#include "server/http/json/json_view.h"
#include "server/limits/limits.h"
#include "server/requests/encode_types.h"

namespace attendant {

// A shape of request and answer, where a path has more than one, or a shape more than one path. An
// object serves one request.
class DoorTranslation {
 public:
  virtual ~DoorTranslation() = default;

  // The three functions of DoorRun with the same names.
  virtual absl::StatusOr<EncodeInput> FromJson(JsonView request, const EncodeLimits& limits) = 0;
  virtual void ToJson(EncodeOutput& output, std::string& json) = 0;
  virtual int64_t TextBytes(const EncodeOutput& output) const { return FloatTextBytes(output); }
};

// A request that a translation answers. Derived classes choose it.
class TranslatedRun : public DoorRun {
 public:
  using DoorRun::DoorRun;

 protected:
  // REQUIRES: model() may be called.
  virtual std::unique_ptr<DoorTranslation> Choose(JsonView request) = 0;

 private:
  absl::StatusOr<EncodeInput> FromJson(JsonView request) final {
    translation_ = Choose(request);
    return translation_->FromJson(request, limits());
  }
  void ToJson(EncodeOutput& output, std::string& json) final { translation_->ToJson(output, json); }
  int64_t TextBytes(const EncodeOutput& output) const final {
    return translation_->TextBytes(output);
  }

  std::unique_ptr<DoorTranslation> translation_;  // set by FromJson
};

}  // namespace attendant
