// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace attendant {

// A folder whose entries cannot all be read while this lives: the entry behind the first `entries`
// fails with EIO, as on a disk or a network that is broken. A program that links failing_listing.cc
// has readdir and closedir replaced for everything in the process. One at a time.
class FailingListing {
 public:
  FailingListing(const std::string& folder, int entries);
  ~FailingListing();
  FailingListing(const FailingListing&) = delete;
  FailingListing& operator=(const FailingListing&) = delete;
};

}  // namespace attendant
