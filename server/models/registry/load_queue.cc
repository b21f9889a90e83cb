// SPDX-License-Identifier: Apache-2.0
#include "server/models/registry/load_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

void MoveBehind(std::vector<LoadQueue::Done>& all, std::vector<LoadQueue::Done>& more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}

}  // namespace

absl::Status StoppingError() { return absl::UnavailableError("the server is stopping"); }

LoadQueue::Waiting* LoadQueue::FindEqual(const LoadJob& job) {
  const auto last =
      std::find_if(waiting_.rbegin(), waiting_.rend(),
                   [&job](const Waiting& waiting) { return waiting.job.name == job.name; });
  return last != waiting_.rend() && last->job == job ? &*last : nullptr;
}

absl::Status LoadQueue::Add(LoadJob job, Done& done) {
  if (closed_) return StoppingError();
  Waiting* waiting = FindEqual(job);
  if (waiting == nullptr) {
    if (waiting_.size() >= kMaxJobs) {
      return absl::ResourceExhaustedError(
          absl::StrCat(kMaxJobs, " loads and unloads wait already, which is the limit"));
    }
    waiting = &waiting_.emplace_back(Waiting{.job = std::move(job), .done = {}});
  }
  waiting->done.push_back(std::exchange(done, nullptr));
  return absl::OkStatus();
}

void LoadQueue::AddAtStart(LoadJob job) {
  if (closed_ || FindEqual(job) != nullptr) return;
  waiting_.push_back({.job = std::move(job), .done = {}});
}

std::optional<LoadJob> LoadQueue::Begin() {
  if (waiting_.empty()) return std::nullopt;
  Waiting first = std::move(waiting_.front());
  waiting_.pop_front();
  running_ = std::move(first.done);
  return std::move(first.job);
}

std::vector<LoadQueue::Done> LoadQueue::End() { return std::exchange(running_, {}); }

std::vector<LoadQueue::Done> LoadQueue::Remove(const LoadJob& job) {
  std::vector<Done> callers;
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    if (waiting->job == job) {
      MoveBehind(callers, waiting->done);
      waiting = waiting_.erase(waiting);
    } else {
      ++waiting;
    }
  }
  return callers;
}

std::vector<LoadQueue::Done> LoadQueue::Close() {
  closed_ = true;
  std::vector<Done> callers = End();
  for (Waiting& waiting : waiting_) MoveBehind(callers, waiting.done);
  waiting_.clear();
  return callers;
}

}  // namespace attendant
