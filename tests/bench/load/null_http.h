// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace attendant::bench {

// KServe v2 over HTTP/1.1 for the null server: a GET has the page of its path; a POST is an
// inference, and is answered at once with the same tensor as bytes. A thread for each connection.
class NullHttp {
 public:
  struct Answers {
    std::map<std::string, std::string, std::less<>> pages;  // JSON, by path
    std::string model, version, output;
    std::string tensor;  // FP32, little-endian
  };

  // Listens at a free port of `host`, an IPv4 address. Each inference adds one to `num_answered`,
  // which must outlive this.
  NullHttp(const std::string& host, Answers answers, std::atomic<int64_t>& num_answered);
  // Ends the connections.
  ~NullHttp();
  NullHttp(const NullHttp&) = delete;
  NullHttp& operator=(const NullHttp&) = delete;

  int port() const { return port_; }  // 0: cannot listen

 private:
  void Accept() ABSL_LOCKS_EXCLUDED(mutex_);
  void Serve(int connection);
  // `head` is in lower case.
  std::string Answer(absl::string_view path, absl::string_view head, absl::string_view body);
  std::string AnswerInference(absl::string_view request) const;

  const Answers answers_;
  std::atomic<int64_t>& num_answered_;
  int listener_ = -1;
  int port_ = 0;
  absl::Mutex mutex_;
  std::vector<int> connections_ ABSL_GUARDED_BY(mutex_);
  std::list<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  std::thread acceptor_;  // last: it uses all of the above
};

}  // namespace attendant::bench
