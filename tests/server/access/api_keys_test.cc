// SPDX-License-Identifier: Apache-2.0
#include "server/access/api_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "server/access/key_store.h"
#include "tests/support/checkpoint.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kKey[] = "0123456789abcdef";
constexpr char kOtherKey[] = "fedcba9876543210";
// printf '%s' 0123456789abcdef | sha256sum
constexpr char kHash[] = "sha256:9f9f5111f7b27a781f1f1ddde5ebc2dd2b796bfc7365c9c28b548e564176929f";

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::trunc) << text;
}

std::string Problem(const std::string& text) {
  const absl::StatusOr<ApiKeys> keys = ApiKeys::Parse(text);
  EXPECT_EQ(keys.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(keys.status().message());
}

TEST(ApiKeysTest, ReadsKeysNamesAndGroups) {
  const auto keys = ApiKeys::Parse(
      absl::StrCat("# a comment\n\n  ", kKey, "\tsearch  infer,read\r\n", kOtherKey, " ops admin"));
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(keys->size(), 2u);
  const ApiKeys::Key* const search = keys->Find(kKey);
  ASSERT_NE(search, nullptr);
  EXPECT_EQ(search->name, "search");
  EXPECT_TRUE(search->may_call(MethodGroup::kInfer));
  EXPECT_TRUE(search->may_call(MethodGroup::kRead));
  EXPECT_FALSE(search->may_call(MethodGroup::kAdmin));
  EXPECT_TRUE(keys->Find(kOtherKey)->may_call(MethodGroup::kAdmin));
  EXPECT_EQ(keys->Find("0123456789abcdeF"), nullptr);
  EXPECT_EQ(keys->Find(""), nullptr);
  EXPECT_EQ(keys->Find(std::string(1 << 20, 'x')), nullptr);
}

TEST(ApiKeysTest, AByteOrderMarkIsSkipped) {
  for (const char* const first : {"", "# a comment\n"}) {
    const auto keys = ApiKeys::Parse(absl::StrCat("\xef\xbb\xbf", first, kKey, " search infer"));
    ASSERT_TRUE(keys.ok()) << keys.status();
    EXPECT_NE(keys->Find(kKey), nullptr);
  }
}

TEST(ApiKeysTest, AHashStandsForItsKey) {
  const auto keys = ApiKeys::Parse(absl::StrCat(kHash, " search infer"));
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_NE(keys->Find(kKey), nullptr);
  EXPECT_EQ(keys->Find(kHash), nullptr);
}

TEST(ApiKeysTest, AnErrorNamesTheLineAndNoKey) {
  const std::string good = absl::StrCat(kKey, " search infer\n");
  const std::string cases[][2] = {
      {"", "no key"},
      {"# only a comment\n", "no key"},
      {good + "0123456789abcde short infer", "line 2: the key has 15 bytes"},
      {good + std::string(257, 'k') + " long infer", "line 2: the key has 257 bytes"},
      {good + "0123456789abcde\xff name infer", "not printable ASCII"},
      {good + "fedcba9876543210 name", "there are 2 words, not 3"},
      {good + "fedcba9876543210 a b infer", "there are 4 words, not 3"},
      {good + "fedcba9876543210 na/me infer", "the key's name"},
      {good + "fedcba9876543210 name infer,write", "infer, read and admin"},
      {good + "fedcba9876543210 name open", "infer, read and admin"},
      {good + "fedcba9876543210 name infer,", "infer, read and admin"},
      {good + "sha256:12 name infer", "64 hexadecimal digits"},
      {good + "sha256:" + std::string(64, 'g') + " name infer", "64 hexadecimal digits"},
      {good + "\n" + kHash + " again read", "line 3: an earlier line has the same key"},
  };
  for (const auto& [text, problem] : cases) {
    EXPECT_THAT(Problem(text), HasSubstr(problem));
    EXPECT_THAT(Problem(text), Not(HasSubstr("fedcba9876543210")));
  }
}

TEST(ApiKeysTest, TooManyKeysAreRefused) {
  std::string text;
  for (int i = 0; i < 1025; ++i) absl::StrAppend(&text, "key-number-", 100'000 + i, " a infer\n");
  EXPECT_THAT(Problem(text), HasSubstr("line 1025: there are more than 1024 keys"));
}

class KeyStoreTest : public testing::Test {
 protected:
  KeyStoreTest() { Write(path_, absl::StrCat(kKey, " search infer\n")); }

  TempDirectory directory_;
  const std::string path_ = directory_ / "keys";
};

TEST_F(KeyStoreTest, SaysWhoMayCallWhat) {
  const auto store = KeyStore::Open(path_);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->Authorize(kKey, MethodGroup::kInfer).value().name, "search");
  EXPECT_EQ((*store)->Authorize(kKey, MethodGroup::kAdmin).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ((*store)->Authorize(kOtherKey, MethodGroup::kInfer).status().code(),
            absl::StatusCode::kUnauthenticated);
  EXPECT_EQ((*store)->Authorize("", MethodGroup::kRead).status().code(),
            absl::StatusCode::kUnauthenticated);
}

TEST_F(KeyStoreTest, AChangedFileCounts) {
  const auto store = KeyStore::Open(path_);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_FALSE((*store)->Reload().value());
  Write(path_, absl::StrCat(kOtherKey, " search infer\n"));
  EXPECT_TRUE((*store)->Reload().value());
  EXPECT_FALSE((*store)->Authorize(kKey, MethodGroup::kInfer).ok());
  EXPECT_TRUE((*store)->Authorize(kOtherKey, MethodGroup::kInfer).ok());
}

TEST_F(KeyStoreTest, AGrantedKeyIsLookedAtAgain) {
  const auto store = KeyStore::Open(path_);
  ASSERT_TRUE(store.ok()) << store.status();
  const KeyStore::Grant grant = (*store)->Authorize(kKey, MethodGroup::kInfer).value();
  EXPECT_EQ(grant.generation, (*store)->generation());
  Write(path_, absl::StrCat(kKey, " renamed infer\n"));
  ASSERT_TRUE((*store)->Reload().value());
  EXPECT_NE(grant.generation, (*store)->generation());
  EXPECT_EQ((*store)->Authorize(grant.digest, MethodGroup::kInfer).value().name, "renamed");
  EXPECT_EQ((*store)->Authorize(grant.digest, MethodGroup::kRead).status(),
            (*store)->Authorize(kKey, MethodGroup::kRead).status());
  Write(path_, absl::StrCat(kOtherKey, " search infer\n"));
  ASSERT_TRUE((*store)->Reload().value());
  EXPECT_EQ((*store)->Authorize(grant.digest, MethodGroup::kInfer).status(),
            (*store)->Authorize(kKey, MethodGroup::kInfer).status());
}

TEST_F(KeyStoreTest, ABrokenFileIsReportedOnceAndTheKeysStay) {
  const auto store = KeyStore::Open(path_);
  ASSERT_TRUE(store.ok()) << store.status();
  Write(path_, "one\n");
  EXPECT_THAT(std::string((*store)->Reload().status().message()), HasSubstr("keys: line 1: "));
  EXPECT_FALSE((*store)->Reload().value());
  EXPECT_TRUE((*store)->Authorize(kKey, MethodGroup::kInfer).ok());
  std::remove(path_.c_str());
  EXPECT_FALSE((*store)->Reload().ok());
  EXPECT_FALSE((*store)->Reload().value());
  EXPECT_TRUE((*store)->Authorize(kKey, MethodGroup::kInfer).ok());
  Write(path_, absl::StrCat(kKey, " search read\n"));
  EXPECT_TRUE((*store)->Reload().value());
  EXPECT_FALSE((*store)->Authorize(kKey, MethodGroup::kInfer).ok());
}

TEST_F(KeyStoreTest, ABrokenFileAtTheStartIsAnError) {
  Write(path_, absl::StrCat(kKey, " search infer\nbroken\n"));
  const absl::Status status = KeyStore::Open(path_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat(path_, ": line 2: ")));
  EXPECT_FALSE(KeyStore::Open(directory_ / "none").ok());
  EXPECT_FALSE(KeyStore::Open(directory_ / "").ok());
}

}  // namespace
}  // namespace attendant
