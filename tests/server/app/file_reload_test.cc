// SPDX-License-Identifier: Apache-2.0
#include "server/app/file_reload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

// The line of the metrics.
auto Shows(const char* file, int failed) {
  return HasSubstr(absl::StrCat("attendant_reload_failed{file=\"", file, "\"} ", failed, "\n"));
}

TEST(FileReloadTest, KeysThatCannotBeReadShowUntilTheyCan) {
  TempDirectory directory;
  const std::string path = directory / "keys";
  WriteFile(path, "infer-key-0123456789 search infer\n");
  const std::unique_ptr<KeyStore> keys = *KeyStore::Open(path);
  ServerMetrics metrics("test");
  EXPECT_THAT(metrics.Scrape(), Shows("api_keys", 0)) << "before the first look";
  WriteFile(path, "short search infer\n");
  ReloadKeys(*keys, metrics);
  EXPECT_THAT(metrics.Scrape(), Shows("api_keys", 1));
  ReloadKeys(*keys, metrics);
  EXPECT_THAT(metrics.Scrape(), Shows("api_keys", 1)) << "the file is as bad as before";
  WriteFile(path, "other-key-0123456789 search infer\n");
  ReloadKeys(*keys, metrics);
  EXPECT_THAT(metrics.Scrape(), Shows("api_keys", 0));
}

TEST(FileReloadTest, EachPortShowsItsOwnCertificates) {
  ServerMetrics metrics("test");
  const absl::Status failed = absl::InvalidArgumentError("no PEM");
  ReportTlsReload(ReloadedFile::kGrpcTls, failed, metrics);
  ReportTlsReload(ReloadedFile::kHttpTls, failed, metrics);
  ReportTlsReload(ReloadedFile::kGrpcTls, absl::OkStatus(), metrics);
  const std::string scrape = metrics.Scrape();
  EXPECT_THAT(scrape, Shows("grpc_tls", 0));
  EXPECT_THAT(scrape, Shows("http_tls", 1));
  EXPECT_THAT(scrape, Shows("api_keys", 0));
}

}  // namespace
}  // namespace attendant
