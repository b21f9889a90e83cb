# SPDX-License-Identifier: Apache-2.0
TESTS = ["json_file_test", "float_values_test", "safetensors_test", "tensor_store_test", "config_test",
         "checkpoint_test", "attention_module_test", "mutation_test"]
FILE_TESTS = {
    "kernels/checkpoints/adapters.cc": ["adapters_test"],
    "kernels/checkpoints/classifier_head.cc": ["classifier_head_test"],
    "kernels/checkpoints/token_heads.cc": ["token_heads_test"],
    "kernels/checkpoints/colbert_head.cc": ["token_heads_test"],
    "kernels/checkpoints/families/bert_fields.cc": ["config_test"],
    "kernels/checkpoints/families/families.cc": ["config_test"],
    "kernels/checkpoints/families/esm.cc": ["config_test"],
    "kernels/checkpoints/families/gte.cc": ["config_test"],
    "kernels/checkpoints/families/jina_bert.cc": ["config_test"],
    "kernels/checkpoints/families/jina_qk_norm.cc": ["config_test"],
    "kernels/checkpoints/families/neobert.cc": ["config_test"],
    "kernels/checkpoints/families/modernbert.cc": ["config_test"],
    "kernels/checkpoints/families/nomic_bert.cc": ["config_test"],
    "kernels/checkpoints/families/llama/mistral.cc": ["config_test"],
    "kernels/checkpoints/families/llama/qwen2.cc": ["config_test"],
    "kernels/checkpoints/families/llama/llama_block.cc": ["config_test"],
    "kernels/checkpoints/families/mpnet.cc": ["config_test"],
    "kernels/io/config_fields.cc": ["config_test", "attention_module_test"],
    "kernels/io/float_values.cc": ["float_values_test"],
    "kernels/io/json_file.cc": ["json_file_test"],
    "kernels/io/safetensors.cc": ["safetensors_test", "mutation_test"],
    "kernels/checkpoints/checkpoint.cc": ["checkpoint_test", "config_test"],
    "kernels/checkpoints/stored_tensors.cc": ["checkpoint_test", "config_test"],
    "kernels/checkpoints/attention_module.cc": ["attention_module_test"],
}
MUTANTS = {
    "kernels/checkpoints/classifier_head.cc": [
        ("if (found == nullptr) found = &form;", "return &form;"),
        ("head.padding_id = «form.padding_id»;", "std::nullopt"),
        ('«if (config_.IsNull("pad_token_id")) return absl::OkStatus();»', ""),
    ],
    "kernels/checkpoints/token_heads.cc": [
        ("if (form.optional_biases && !Has(form.out_bias, \"\")) return absl::OkStatus();", ""),
        ("own ? static_cast<float>(form.epsilon.otherwise) : config_.layer_norm_epsilon",
         "static_cast<float>(form.epsilon.otherwise)"),
    ],
    "kernels/checkpoints/colbert_head.cc": [
        ("dense.activation != HeadActivation::kNone", "dense.use_residual"),
        ("behind == masks + normalizes", "true"),
        ("linear.weight[i * width + i] += 1.0f;", ""),
        ("for (; !layers.empty(); layers.pop_back()) all = Compose(layers.back(), all);", ""),
        ("masks == (behind > 0 ? 1u : 0u)", "true"),
    ],
    "kernels/checkpoints/adapters.cc": [
        ("left + adapters.chosen * rows * adapters.rank", "left"),
        ("weight[i] += «adapters.scale * change[static_cast<size_t>(i)]»;", "change[static_cast<size_t>(i)]"),
        ("right + adapters.chosen * adapters.rank * columns", "right"),
        ('ReadTensor(store, absl::StrCat(stem, «table ? "A" : "B"»), left_dims', '"B"'),
        ("std::fill(change.begin(), change.end(), 0.0f);", ""),
    ],
    "kernels/checkpoints/families/bert_fields.cc": [
        ("ReadLayerNormEpsilon(json, fields.epsilon, «fields.default_epsilon»,", "1e-5"),
        ('ATTENDANT_RETURN_IF_ERROR(CheckFalse(json, "is_decoder"));', ""),
        ("if (!fields.reads_causal) «ATTENDANT_RETURN_IF_ERROR(CheckFalse(json, \"is_causal\"));»", ""),
        ("if (fields.epsilon == nullptr) «return absl::OkStatus();»",
         "return config.layer_norm_epsilon = 1e-5f, absl::OkStatus();"),
    ],
    "kernels/checkpoints/families/families.cc": [
        ("«code.empty()» ? Find(&Family::model_types, type)", "true"),
    ],
    "kernels/checkpoints/families/gte.cc": [
        ("std::pow(factor, «-2» /", "2"),
        ("config.segments = «segment_types != 0»;", "true"),
        ("config.biases.ffn_up = «false»;", "true"),
    ],
    "kernels/checkpoints/families/albert.cc": [
        ("if («inner != 1») return", "false"),
        ("groups >= 1 && «groups <= layers»", "true"),
    ],
    "kernels/checkpoints/families/electra.cc": [
        ("if («config.encoder.embedding_width == config.encoder.hidden»)", "false"),
    ],
    "kernels/checkpoints/families/esm.cc": [
        ("if («!drops») return", "false"),
        ("config.embedding_scale = «kKeptInTraining»;", "1"),
        ("«config.dropped_token < config.vocab») return", "true"),
        ('ATTENDANT_RETURN_IF_ERROR(json.Require("pad_token_id", padding_id));', ""),
        ('ATTENDANT_RETURN_IF_ERROR(CheckFalse(json, "is_folding_model"));', ""),
    ],
    "kernels/checkpoints/families/jina_bert.cc": [
        ("«type == \"geglu\"» ? Activation::kGeluErf", "type == \"reglu\""),
    ],
    "kernels/checkpoints/families/jina_qk_norm.cc": [
        ("config.encoder.second_attention_norm = «true»;", "false"),
    ],
    "kernels/checkpoints/families/neobert.cc": [
        ("RoundUp(2 * encoder.ffn / 3, «8»)", "1"),
        ('«ATTENDANT_RETURN_IF_ERROR(CheckFalse(json, "ngpt"));»', ""),
    ],
    "kernels/checkpoints/families/nomic_bert.cc": [
        ("«std::min(config.max_positions, trained)»", "trained + 1"),
        ("config.biases.qkv = config.biases.attention_output = «qkv»;", "true"),
        ("for (int64_t i = «1»; step > 1", "0"),
        ("config.gated_ffn = «activation != \"gelu\"»;", "true"),
        ('"expert_choice_router", «"moe_normalize_expert_weights"»}', '"prenorm"'),
    ],
    "kernels/checkpoints/families/llama/mistral.cc": [
        ("config.window = «config.causal» ? window - 1", "true"),
        ("config.local_rotary = «config.rotary»;", "Rotary{}"),
        ('if («json.IsNull("sliding_window")») return CheckLayerTypesAreFull', '!json.Has("sliding_window")'),
        ('if («json.Has("layer_types")») ATTENDANT', "false"),
    ],
    "kernels/checkpoints/families/llama/qwen2.cc": [
        ('if (!code.empty()) «ATTENDANT_RETURN_IF_ERROR(json.Field("is_causal").status());»', ""),
        ("config.biases.qkv = «true»;", "false"),
    ],
    "kernels/checkpoints/families/llama/llama_block.cc": [
        (".attention_output = «bias»", "false"),
        ('«ATTENDANT_RETURN_IF_ERROR(CheckFalse(json, "use_bidirectional_attention"));»', ""),
        ('«ATTENDANT_RETURN_IF_ERROR(json.Read("is_causal", encoder.causal));»', ""),
    ],
    "kernels/checkpoints/families/modernbert.cc": [
        ("config.window = «local_attention / 2»;", "local_attention"),
        ('"sliding_window", 0, «config.window»)', "local_attention"),
        ('"local_attention", «0», local_attention', "2"),
        ("«i % step != 0»", "i % step == 0"),
        ('if (json.Has("rope_scaling")) «return Unsupported(json, "rope_scaling", "there", "none");»', ""),
    ],
    "kernels/checkpoints/families/rotary_fields.cc": [
        ("Rotary& rotary = type == «\"full_attention\"»", "\"sliding_attention\""),
        ('«"rope_scaling"», "rope_parameters"}', '"rope_parameters"'),
        ("if («names.empty()») continue;", "false"),
        ("if («rotary.long_waves.factor == 1») return", "true"),
        ('parameters.Has("rope_type") ? "rope_type" : «"type"»', '"rope_type"'),
        ('«ATTENDANT_RETURN_IF_ERROR(json.Read("rope_theta", rotary.base));»', ""),
    ],
    "kernels/checkpoints/families/deberta_v2.cc": [
        ("config.bias_buckets = «2 * buckets»;", "buckets"),
        ("config.bias_max_distance = distance < 1 ? «config.max_positions» : distance;", "512"),
        ("static_cast<float>(config.head_dim()) * «kTerms»", "2"),
        ("config.segments = «segment_types != 0»;", "true"),
        ("norm |= «option == \"layer_norm\"»;", "true"),
    ],
    "kernels/checkpoints/families/llama/gemma3.cc": [
        ("config.window = «window / 2»;", "window"),
        ('"sliding_window", «0», window', "2"),
        ("if («!causal») return Unsupported", "false"),
        ("«(i + 1) % step != 0»", "i % step != 0"),
        ("config.norm_offset = «1»;", "0"),
        ("config.embedding_scale = «std::sqrt(static_cast<float>(config.hidden))»;", "1"),
    ],
    "kernels/checkpoints/families/t5.cc": [
        ("config.query_scale = «1»;", "0"),
        ("if («is_gated == gated») return absl::OkStatus();", "true"),
        ("config.activation = config.gated_ffn ? «Activation::kGeluTanh»", "Activation::kGeluErf"),
    ],
    "kernels/checkpoints/families/mpnet.cc": [
        ("config.first_position = «kFirstPosition»;", "kFirstPosition - 1"),
        ("«config.encoder.max_positions <= kFirstPosition»", "false"),
    ],
    "kernels/io/config_fields.cc": [
        ("epsilon > 0 && epsilon < 1", "epsilon >= 0 && epsilon < 1"),
    ],
    "kernels/io/float_values.cc": [
        ("static_cast<int64_t>(begin) + (first - block.begin())", "first - block.begin()"),
    ],
    "kernels/io/json_file.cc": [
        ("++values_ <= limits_.max_values", "++values_ <= limits_.max_values + 1"),
        ("static_cast<int64_t>(open_.size()) >= limits_.max_depth",
         "static_cast<int64_t>(open_.size()) > limits_.max_depth"),
        ("value <= INT64_MAX", "true"),
    ],
    "kernels/io/safetensors.cc": [
        ("offsets[0] > offsets[1] || offsets[1] > data_bytes", "offsets[0] > offsets[1]"),
        ("expected == data.data() + data.size()", "true"),
        ("header_bytes > file.size() - kLengthBytes", "header_bytes > file.size()"),
        ('if (value < 0) «return Bad(element.where(), absl::StrCat("is ", value, ", expected >= 0"));»', ""),
    ],
    "kernels/checkpoints/read_tensor.cc": [
        ("!std::equal(dims.begin(), dims.end(), tensor->dims.begin(), tensor->dims.end())",
         "dims.size() != tensor->dims.size()"),
    ],
    "kernels/checkpoints/stored_tensors.cc": [
        ("FindNormSuffixes(store_, «prefix_ + name»)", "name"),
    ],
    "kernels/checkpoints/checkpoint.cc": [
        ("«!tensors_.Has(name)» || config.positions", "true"),
        ("{«names_.own_token_embedding», names_.token_embedding}", "names_.token_embedding"),
        ("ATTENDANT_RETURN_IF_ERROR(CheckNoPeftAdapter(directory));", ""),
    ],
    "kernels/checkpoints/attention_module.cc": [
        ('ATTENDANT_RETURN_IF_ERROR(CheckSame(json_, "d_model", config.hidden));', ""),
        ('config.final_norm = «stack && store_.Find("norm.weight") != nullptr»;', "false"),
        ('"final_norm_eps", «1e-5»', "module.config.layer_norm_epsilon"),
        ('activation == "relu" ? Activation::kRelu : Activation::kGeluErf', "Activation::kRelu"),
    ],
}
EQUIVALENT = [
    ("kernels/io/float_values.cc", "std::abs(value) > std::numeric_limits<float>::max()", "false",
     "undefined in C++, and infinity on every processor that the project runs on: UBSan alone sees it"),
]
