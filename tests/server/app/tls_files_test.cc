// SPDX-License-Identifier: Apache-2.0
#include "server/app/tls_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "tests/support/checkpoint.h"
#include "tests/support/in_child.h"

namespace attendant {
namespace {

using testing::HasSubstr;

constexpr char kCertificate[] = R"(-----BEGIN CERTIFICATE-----
MIIBbzCCARWgAwIBAgIUZ2hVMH90Yjp6A6pl/T0hSFAXZ/UwCgYIKoZIzj0EAwIw
DDEKMAgGA1UEAwwBeDAgFw0yNjExMjQxODI4MzZaGA8yMTI2MTAzMTE4MjgzNlow
DDEKMAgGA1UEAwwBeDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABL4tm+PovBD6
0CguiBNZmPaB/c/lX4YJgN9WsZGonsSicbFuYvXN0D43EcJq6mGso9woVBlc7+2w
hxOvwk+Y4TOjUzBRMB0GA1UdDgQWBBQgFqVHLl7V/om1hX7IFhg1FX2j2jAfBgNV
HSMEGDAWgBQgFqVHLl7V/om1hX7IFhg1FX2j2jAPBgNVHRMBAf8EBTADAQH/MAoG
CCqGSM49BAMCA0gAMEUCIQD1+Lbfcd82WTx35MQmQ41euynrZ29DDY6vm+EpjT9M
eAIgWNVoRgmPvXDKJdKunveMuWpp+VmZCNIsal71wWWzRL4=
-----END CERTIFICATE-----
)";
// Its key, with the passphrase "secret".
constexpr char kEncryptedKey[] = R"(-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgmvZeyxs/mtwICCAAw
DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEPEOyf9yJH8RA8jVFsRX0/EEgZBq
wu4pAYexbFIqXfXj8tmA/mnYNgmIUysA2Rm5XZYDMzjLsTf4+JtTw6kiD6R3jipA
0kE9mSQtEpDxgGX+5KLlbvVb+UET6KtdLNQUaAzA4wBz18w/3l7FXpSY9ptdKTc3
A7FJT0v82un9I4n6d3eSpnqfBSuQsUgYqRf8VjEVvEKVXFynnX/wNtyitjg3+ks=
-----END ENCRYPTED PRIVATE KEY-----
)";

std::string Read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(MemoryFileTest, ReadersOfThePathSeeTheLastText) {
  absl::StatusOr<MemoryFile> file = MemoryFile::Create();
  ASSERT_TRUE(file.ok()) << file.status();
  const std::string path = file->path();
  EXPECT_EQ(Read(path), "");
  std::ifstream before(path);
  for (const std::string& text : {std::string(100'000, 'a'), std::string("b"), std::string()}) {
    ASSERT_TRUE(file->Replace(text).ok());
    EXPECT_EQ(file->path(), path);
    EXPECT_EQ(Read(path), text);
  }
  std::ostringstream old;
  old << before.rdbuf();
  EXPECT_EQ(old.str(), "") << "a file that is open changes";
}

// As where /proc is not mounted.
TEST(MemoryFileTest, APathThatCannotBeOpenedIsAnError) {
  InChild([] {
    absl::StatusOr<MemoryFile> file = MemoryFile::Create();
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE(file->CheckPath().ok());
    const int next = dup(STDERR_FILENO);  // all below are open
    close(next);
    const auto all = static_cast<rlim_t>(next);
    const rlimit none{.rlim_cur = all, .rlim_max = all};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    EXPECT_THAT(std::string(file->CheckPath().message()),
                HasSubstr(absl::StrCat("cannot open a file in memory as ", file->path())));
  });
}

// Files that fit are in tests/integration/operation/test_tls.py.
TEST(TlsFilesTest, RefusesWhatIsNoCertificate) {
  const TempDirectory folder;
  const std::string cert = folder.path() + "/cert.pem", key = folder.path() + "/key.pem";
  const auto load = [&] { return TlsFiles::Load({cert, key, ""}).status(); };
  EXPECT_EQ(load().code(), absl::StatusCode::kNotFound);
  for (const char* text : {"", "broken"}) {
    std::ofstream(cert) << text;
    std::ofstream(key) << "broken";
    EXPECT_EQ(load().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(load().message()), HasSubstr(cert));
  }
}

TEST(TlsFilesTest, AnEncryptedKeyIsAnErrorAndNoQuestion) {
  const TempDirectory folder;
  const std::string cert = folder.path() + "/cert.pem", key = folder.path() + "/key.pem";
  std::ofstream(cert) << kCertificate;
  std::ofstream(key) << kEncryptedKey;
  const absl::Status status = TlsFiles::Load({cert, key, ""}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(key + ": the key is encrypted"));
}

}  // namespace
}  // namespace attendant
