# SPDX-License-Identifier: Apache-2.0
TESTS = ["core_test"]
MUTANTS = {
    "kernels/core/pooling.cc": [
        ("1.0f / static_cast<float>(states.dim(0))", "1.0f / static_cast<float>(states.dim(0) + 1)"),
        ("for (int64_t t = «1»; t < states.dim(0); ++t)", "2"),
        ("states.row(states.dim(0) - 1)", "states.row(0)"),
        ("std::max(std::sqrt(squares), 1e-12)", "std::sqrt(squares)"),
        ("std::sqrt(static_cast<float>(tokens.dim(0)))", "static_cast<float>(tokens.dim(0))"),
        ("} else if («kind == Pooling::kCls») {", "false"),
        ("spec.dims > 0 ? spec.dims : states.dim(1)", "states.dim(1)"),
    ],
    "kernels/core/base/mapped_file.cc": [
        ("++lost_pages;", ""),
        ("is_fault && «LiesInAFile(address)»", "true"),
        ("if (!is_fault) raise(signal);", ""),
        ("lost_pages == lost_before_", "lost_pages == 0"),
        ("now.st_size != before.st_size", "false"),
        ("now.st_mtim.tv_nsec != before.st_mtim.tv_nsec", "false"),
        ("now.st_dev != before.st_dev || now.st_ino != before.st_ino", "false"),
        ("watches.erase(this);", ""),
        ("  slot->begin = 0;", ""),
        ("if («bytes_.empty()») return;\n  Remove", "true"),
    ],
    "kernels/core/base/distances.cc": [
        ("std::min(exact + beyond, «half - 1»)", "half"),
        ("const int64_t first = «distance > 0»", "distance >= 0"),
    ],
    "kernels/core/base/position_tables.cc": [
        ("-slopes[static_cast<size_t>(head)]", "slopes[static_cast<size_t>(head)]"),
        ("«distance < config.max_positions»", "distance <= config.max_positions"),
    ],
    "kernels/core/base/regular_file.cc": [
        ("return «absl::UnavailableError(status.message())»;", "status"),
        ("errno == ENOENT || errno == ENOTDIR", "true"),
    ],
    "kernels/core/base/token_scales.cc": [
        ("id == dropped_token ? «0» : scale", "scale"),
        ("std::max<int64_t>(«1», kept)", "0"),
        ("«len - std::count(ids.begin(), ids.end(), dropped_token)»", "len"),
    ],
    "kernels/core/packed_batch.cc": [
        ("values[i] >= limit", "values[i] > limit"),
        ('return CheckBelow("segment id", segment_ids, config.segment_types, "segment_types");',
         "return absl::OkStatus();"),
        ("segment_ids_.insert(segment_ids_.end(), segment_ids.begin(), segment_ids.end());",
         "segment_ids_.insert(segment_ids_.end(), segment_ids.size(), 0);"),
    ],
    "kernels/core/arena.cc": [
        ("RoundUp(bytes, kAlignment)", "bytes"),
        ("used_bytes_ <= capacity_bytes_", "used_bytes_ <= capacity_bytes_ + 64"),
    ],
    "kernels/core/encoder_config.cc": [
        ("ATTENDANT_RETURN_IF_ERROR(CheckHeadsDivide(config.hidden, config.heads));", ""),
        ("computed.final_norm == config.final_norm", "true"),
        ("if («rate >= 0 && rate <= 1») continue;", "true"),
        ("static_cast<float>(«2 * pair»)", "pair"),
        ("«frequency_scale» * (1.0f", "1"),
        ("«1.0f / static_cast<float>(wave)»", "1.0 / wave"),
        ("(turns - «long_waves.low»)", "0"),
        ("computed.final_epsilon() == config.final_epsilon()", "true"),
        ("config.window < 0", "config.window < 1"),
    ],
    "kernels/core/base/quote.cc": [
        ("text.size() > max_bytes", "text.size() >= max_bytes"),
    ],
    "kernels/core/threads/cpu_budget.cc": [
        ("*quota < *tightest", "*quota > *tightest"),
    ],
    "kernels/core/threads/cpu_placement.cc": [
        ("i < threads % replicas ? 1 : 0", "0"),
        ("options.models > 1", "false"),
        ("replicas % count == 0", "true"),
    ],
    "kernels/core/threads/cpu_topology.cc": [
        ("last >= kMaxCpu", "last > kMaxCpu + 1"),
        ("entry.increment(error)", "++entry"),
        ("domain_of[cpu] = node;", "domain_of[cpu] = 0;"),
    ],
    "kernels/core/threads/thread_pool.cc": [
        ("(state_.load(std::memory_order_acquire) & kWorkers) == 0", "true"),
        ("index < tasks && !Stopped()", "index < tasks"),
        ("if (Stopped()) return;", ""),
    ],
    "kernels/core/weight_checks.cc": [
        ("bound.value <= bound.limit", "bound.value < bound.limit"),
        ("layer_norm_epsilon > 0", "layer_norm_epsilon >= 0"),
        ("rows * columns <= std::numeric_limits<int32_t>::max()", "true"),
    ],
}
EQUIVALENT = [
    ("kernels/core/threads/cpu_topology.cc", "*shared->begin()", "*shared->rbegin()",
     "the lists of one domain are the same: each of their members names it, and domains are sorted afterwards"),
]
