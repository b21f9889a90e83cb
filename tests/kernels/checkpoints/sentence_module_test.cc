// SPDX-License-Identifier: Apache-2.0
#include "kernels/checkpoints/sentence_module.h"

#include <gtest/gtest.h>

#include <utility>

namespace attendant {
namespace {

TEST(SentenceModuleTest, AClassIsKnownByItsPackage) {
  const std::pair<const char*, const char*> cases[] = {
      // Versions 2 to 5 of sentence-transformers.
      {"sentence_transformers.models.Transformer", "Transformer"},
      {"sentence_transformers.models.Pooling", "Pooling"},
      {"sentence_transformers.models.Dense", "Dense"},
      {"sentence_transformers.models.Normalize", "Normalize"},
      {"sentence_transformers.sparse_encoder.models.MLMTransformer", "MLMTransformer"},
      {"sentence_transformers.sparse_encoder.models.SpladePooling", "SpladePooling"},
      // Version 6.
      {"sentence_transformers.base.modules.transformer.Transformer", "Transformer"},
      {"sentence_transformers.sentence_transformer.modules.pooling.Pooling", "Pooling"},
      {"sentence_transformers.base.modules.dense.Dense", "Dense"},
      {"sentence_transformers.base.modules.normalize.Normalize", "Normalize"},
      {"sentence_transformers.sparse_encoder.modules.splade_pooling.SpladePooling",
       "SpladePooling"},
      {"pylate.models.Dense.Dense", "Dense"},
      {"custom_st.Transformer", "Transformer"},
  };
  for (const auto& [type, name] : cases) EXPECT_EQ(ModuleClass(type), name);
  for (const char* type :
       {"Transformer", "custom_st.Pooling", "custom_st.TransformerOfMine",
        "custom_st.Transformer.Pooling", "my_module.Transformer", "pylate_more.models.Dense.Dense",
        "sentence_transformers_more.Normalize", "more.sentence_transformers.models.Normalize"}) {
    EXPECT_EQ(ModuleClass(type), type);
  }
}

}  // namespace
}  // namespace attendant
