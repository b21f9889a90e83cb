# SPDX-License-Identifier: Apache-2.0
TESTS = ["sentence_settings_test", "warm_up_test", "model_registry_test", "app_test"]
FILE_TESTS = {
    "server/models/sentence_settings.cc": ["sentence_settings_test"],
    "server/models/sentence/cross_encoder.cc": ["sentence_settings_test"],
    "server/models/sentence/transformer_file.cc": ["sentence_settings_test", "model_folder_test"],
    "server/models/sentence/prompts.cc": ["model_folder_test", "sentence_folders_test"],
    "server/models/sentence/late_interaction.cc": ["model_folder_test"],
    "server/models/sentence/model_folder.cc": ["model_folder_test"],
    "server/models/sentence/model_prompts.cc": ["model_folder_test"],
    "server/models/sentence/sparse_lookup.cc": ["model_folder_test"],
    "server/models/model_registry.cc": ["model_registry_test", "app_test", "drain_test"],
    "server/models/model_jobs.cc": ["model_registry_test"],
    "server/models/warm_up.cc": ["warm_up_test"],
    "server/models/served_name.cc": ["model_registry_test", "flags_test", "rpc_parts_test"],
    "server/models/repository/model_repository.cc": ["model_repository_test"],
    "server/models/model_observer.cc": ["model_registry_test", "app_test", "encoder_service_test",
                                        "kserve_service_test", "attention_service_test"],
    "server/models/encoder_model.cc": ["model_registry_test", "app_test", "encoder_service_test",
                                       "kserve_service_test", "attention_service_test"],
}
MUTANTS = {
    "server/models/sentence/cross_encoder.cc": [
        ("!transformer || «elements.size() != 1»", "false"),
        ("if (text.empty()) return absl::OkStatus();", ""),
        ("if (scores.has_value()) classifier->scores = *scores;", ""),
    ],
    "server/models/sentence/late_interaction.cc": [
        ("if (!skips_punctuation) late.skipped.clear();", ""),
        ("std::min(side.max_tokens, max_tokens)", "side.max_tokens"),
        ("farthest <= config.window", "farthest < config.window"),
    ],
    "server/models/sentence/model_folder.cc": [
        ("return route == kQueryRoute;", "return false;"),
        ("colbert && !path.empty()", "false"),
        ("elements.size() > 1", "false"),
    ],
    "server/models/sentence/model_prompts.cc": [
        ("folder.query.has_value() && model.makes_sparse", "folder.query.has_value()"),
        ("root, model.tokenizer, «model.max_sequence_tokens», prompts", "model.max_text_tokens"),
    ],
    "server/models/sentence/transformer_file.cc": [
        ("if («!fields.empty()») return std::optional(*std::move(config));", "true"),
        ('task == "feature-extraction" ? "last_hidden_state" : "logits"', '"last_hidden_state"'),
        ("if («length == max_text_tokens») continue;", "length >= max_text_tokens"),
    ],
    "server/models/sentence/sparse_lookup.cc": [
        ("if (weight(id) != 0) ids.push_back(id);", "ids.push_back(id);"),
        ("std::abs(weight(a)) > std::abs(weight(b))", "weight(a) > weight(b)"),
        ("tensor->dims[0] > vocab", "false"),
        ("own.vocab() <= static_cast<int64_t>(lookup.weights.size())", "true"),
    ],
    "server/models/sentence_settings.cc": [
        ("if (settings.normalize) modules.pop_back();", ""),
        ("dims >= settings.embedding_dims(hidden)", "dims > settings.embedding_dims(hidden)"),
        ("if («limit >= 1») return limit;", "true"),
        ("!modes.empty() && !flags.empty() && modes != flags", "false"),
        ("std::min(tokens, static_cast<double>(limit))", "tokens"),
        ('if (file.has_value()) ATTENDANT_RETURN_IF_ERROR(file->Read("do_lower_case", lowercases));', ""),
    ],
    "server/models/sentence/prompts.cc": [
        ("changes ? &prompt : nullptr", "&prompt"),
        ("|| «prompt.looks_up»;", "false"),
        ("tokenizer.special_tokens().after > 0 ? 1 : 0", "0"),
    ],
    "server/models/model_registry.cc": [
        ("entry == nullptr || entry->status.state != ModelState::kReady", "entry == nullptr"),
        ("if (options_.readiness == Readiness::kEveryModel) return failure;", ""),
        ("any |= !entry->built_in;", "any = true;"),
        ("status.HasFailed() || status.IsTriedAgain()", "status.HasFailed()"),
        ("failure.ok() && !may_come", "!may_come"),
        ("return could_not_wake ? 1 : 2;", "return 2;"),
        ('if (drain_announced_) return absl::UnavailableError("the server is stopping");', ""),
        ("if (status.HasFailed() || status.state == ModelState::kUnloaded) continue;", ""),
        ("entry->status.stalled_workers = workers;", ""),
    ],
    "server/models/model_jobs.cc": [
        ("if (!AwaitGivenUp(name)) EndGivenUp(name);", "AwaitGivenUp(name);"),
        ("if (given_up.name != name) continue;", ""),
        ("entry.status.stalled_workers = 0;", ""),
        ("model->Touch();", ""),
        ("if (entry->status.state != ModelState::kReady) continue;", ""),
    ],
    "server/models/served_name.cc": [
        ("name.size() > kMaxNameBytes", "name.size() >= kMaxNameBytes"),
        ("name == kAttentionName", "false"),
    ],
    "server/models/repository/model_repository.cc": [
        ("a.version < b.version", "a.version > b.version"),
        ("name.front() == '.'", "false"),
        ("content.refused[name] = versions.status();", ""),
        ("AddFiles(version.directory, files);", ""),
        ("content.unreadable.insert(name);", ""),
    ],
    "server/models/warm_up.cc": [
        ("len = std::min(len, max_len);", ""),
        ("std::min(samples[i].time, sample.time)", "std::max(samples[i].time, sample.time)"),
    ],
    "server/models/model_observer.cc": [
        ("if (statistics_ != nullptr) statistics_->RecordBatch(sequences, compute);", ""),
        ("queued_tokens - std::exchange(queued_tokens_, queued_tokens)", "queued_tokens"),
        ("metrics_.AddStalledWorkers(workers - std::exchange(stalled_workers_, workers));", ""),
        ("  OnLost(0);", ""),
        ("  OnQueueChanged(0, 0);", ""),
    ],
    "server/models/encoder_model.cc": [
        ("std::min(model.config().max_positions, options.batcher.max_batch_tokens)", "model.config().max_positions"),
    ],
}
