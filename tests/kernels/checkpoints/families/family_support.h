// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/checkpoints/families/family.h"
#include "kernels/io/json_file.h"

namespace attendant {

inline absl::StatusOr<FamilyConfig> Read(const std::string& text) {
  const absl::StatusOr<JsonNode> json = ParseJson(text, "config.json");
  if (!json.ok()) return json.status();
  const absl::StatusOr<const Family*> family = FindFamily(*json);
  if (!family.ok()) return family.status();
  return (*family)->read_config(*json);
}

// BERT's fields, behind `more`.
inline std::string Bert(const std::string& type, const std::string& more = "") {
  return absl::StrCat("{\"model_type\": \"", type, "\"", more,
                      ", \"num_hidden_layers\": 3, \"num_attention_heads\": 4, "
                      "\"hidden_size\": 48, \"intermediate_size\": 112, \"vocab_size\": 97, "
                      "\"max_position_embeddings\": 42}");
}

inline void ExpectUnimplemented(const std::string& config, const std::string& message) {
  const absl::Status status = Read(config).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(message));
}

}  // namespace attendant
