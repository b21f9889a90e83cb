// SPDX-License-Identifier: Apache-2.0
#include "server/models/repository/model_repository.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <string>

#include "tests/support/checkpoint.h"
#include "tests/support/failing_listing.h"

namespace attendant {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;

class ModelRepositoryTest : public ::testing::Test {
 protected:
  // A folder with a config.json.
  void Add(const std::string& path) {
    fs::create_directories(root_ / path);
    WriteFile((root_ / path) + "/config.json", "{}");
  }
  std::vector<int64_t> Versions(const std::string& name, int64_t most) {
    std::vector<int64_t> versions;
    const auto sources = ModelRepository(root_.path(), most).Find(name);
    EXPECT_TRUE(sources.ok()) << sources.status();
    if (!sources.ok()) return {};
    for (const ModelSource& source : *sources) versions.push_back(source.version);
    return versions;
  }

  TempDirectory root_;
};

TEST_F(ModelRepositoryTest, AFolderWithModulesIsAModel) {
  fs::create_directories(root_ / "routed/1");
  WriteFile(root_ / "routed/modules.json", "[]");
  const auto sources = ModelRepository(root_.path(), 5).Find("routed");
  ASSERT_TRUE(sources.ok()) << sources.status();
  ASSERT_EQ(sources->size(), 1u);
  EXPECT_EQ(sources->front().directory, root_ / "routed");
}

TEST_F(ModelRepositoryTest, AFolderIsVersionOneAndItsFoldersAreNotRead) {
  Add("plain");
  Add("plain/7");
  const auto sources = ModelRepository(root_.path(), 5).Find("plain");
  ASSERT_TRUE(sources.ok()) << sources.status();
  ASSERT_EQ(sources->size(), 1u);
  EXPECT_EQ(sources->front().name, "plain");
  EXPECT_EQ(sources->front().version, 1);
  EXPECT_EQ(sources->front().directory, root_ / "plain");
}

TEST_F(ModelRepositoryTest, TheHighestVersionsAreServedByNumber) {
  for (const char* version :
       {"1", "2", "10", "010", "-3", "0", "1.5", "latest", "99999999999999999999"}) {
    Add(std::string("m/") + version);
  }
  fs::create_directory(root_ / "m/11");
  EXPECT_THAT(Versions("m", 1), ElementsAre(10));
  EXPECT_THAT(Versions("m", 2), ElementsAre(2, 10));
  EXPECT_THAT(Versions("m", 100), ElementsAre(1, 2, 10));
}

TEST_F(ModelRepositoryTest, ModelsAreFoldersWithAModel) {
  Add("b");
  Add("a/3");
  Add(".hidden");
  Add("x/latest");
  fs::create_directory(root_ / "empty");
  WriteFile(root_ / "file", "");
  const auto content = ModelRepository(root_.path(), 1).Read();
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_THAT(content->models, ElementsAre(Key("a"), Key("b")));
  EXPECT_TRUE(content->refused.empty());
  EXPECT_TRUE(absl::IsUnavailable(ModelRepository(root_ / "gone", 1).Read().status()));
}

TEST_F(ModelRepositoryTest, NamesFromAClientNeverBecomePathsOutside) {
  Add("repository/m");
  Add("secret");
  fs::create_directory_symlink(root_ / "secret", root_ / "repository/link");
  fs::create_directory_symlink(root_ / "repository/m", root_ / "repository/alias");
  fs::create_directories(root_ / "repository/v");
  fs::create_directory_symlink(root_ / "secret", root_ / "repository/v/1");
  const ModelRepository repository(root_ / "repository", 1);
  for (const char* name : {"../secret", "..", ".", "", "/etc", "m/../../secret", "m/"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(repository.Find(name).status())) << name;
  }
  EXPECT_TRUE(absl::IsPermissionDenied(repository.Find("link").status()));
  EXPECT_TRUE(absl::IsPermissionDenied(repository.Find("v").status()));
  EXPECT_TRUE(repository.Find("alias").ok()) << "a link that stays inside";
  EXPECT_TRUE(absl::IsNotFound(repository.Find("nobody").status()));
}

TEST_F(ModelRepositoryTest, AFingerprintChangesWithEachFileOfAServedVersion) {
  Add("m/1");
  Add("m/2");
  const ModelRepository repository(root_.path(), 1);
  const auto print = [&repository] { return repository.Read()->models.at("m").fingerprint; };
  const std::string first = print();
  EXPECT_EQ(print(), first);
  WriteFile(root_ / "m/1/weights", "x");
  EXPECT_EQ(print(), first) << "version 1 is not served";
  WriteFile(root_ / "m/2/weights", "x");
  const std::string second = print();
  EXPECT_NE(second, first);
  WriteFile(root_ / "m/2/weights", "xy");
  const std::string longer = print();
  EXPECT_NE(longer, second);
  fs::last_write_time(root_ / "m/2/weights",
                      fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_NE(print(), longer);
  fs::create_directory(root_ / "m/2/1_Pooling");
  WriteFile(root_ / "m/2/1_Pooling/config.json", "{}");
  EXPECT_THAT(print(), HasSubstr("1_Pooling"));
  Add("m/3");
  EXPECT_THAT(print(), HasSubstr("m/3/config.json"));
}

// The loader reads them as if they lay in the version itself.
TEST_F(ModelRepositoryTest, AFingerprintChangesWithTheFilesOfALinkedFolder) {
  Add("m");
  Add(".shared/1_Pooling");
  fs::create_directory_symlink(root_ / ".shared/1_Pooling", root_ / "m/1_Pooling");
  const ModelRepository repository(root_.path(), 1);
  const auto print = [&repository] { return repository.Read()->models.at("m").fingerprint; };
  const std::string first = print();
  EXPECT_THAT(first, HasSubstr("m/1_Pooling/config.json"));
  EXPECT_EQ(print(), first);
  WriteFile(root_ / ".shared/1_Pooling/config.json", "{ }");
  EXPECT_NE(print(), first);
}

TEST_F(ModelRepositoryTest, LinkedFoldersThatLeadInACircleAreReadOnce) {
  Add("m/a");
  Add("m/b");
  Add("m");
  fs::create_directory_symlink("..", root_ / "m/a/up");
  fs::create_directory_symlink(root_.path(), root_ / "m/a/root");
  for (const std::string name : {"1", "2", "3"}) {
    fs::create_directory_symlink("../b", root_ / ("m/a/" + name));
    fs::create_directory_symlink("../a", root_ / ("m/b/" + name));
  }
  const auto content = ModelRepository(root_.path(), 1).Read();
  ASSERT_THAT(content->models, ElementsAre(Key("m")));
  const std::string& print = content->models.at("m").fingerprint;
  EXPECT_LE(std::count(print.begin(), print.end(), '\n'), 5) << "each folder, and each by one link";
}

TEST_F(ModelRepositoryTest, AFolderThatCannotBeListedMayBeAsItWas) {
  Add("m");
  Add("m/deep/folder");
  const ModelRepository repository(root_.path(), 1);
  for (const char* folder : {"m", "m/deep"}) {
    for (const int entries : {0, 1}) {
      const FailingListing broken(root_ / folder, entries);
      const auto content = repository.Read();
      ASSERT_TRUE(content.ok()) << content.status();
      EXPECT_TRUE(content->models.empty()) << folder;
      EXPECT_THAT(content->unreadable, ElementsAre("m")) << folder;
      EXPECT_TRUE(absl::IsUnavailable(content->refused.at("m"))) << folder;
    }
  }
  EXPECT_THAT(repository.Read()->models, ElementsAre(Key("m")));
}

TEST_F(ModelRepositoryTest, AFileThatCannotBeLookedAtMayBeAsItWas) {
  Add("m");
  const ModelRepository repository(root_.path(), 1);
  fs::create_symlink(std::string(NAME_MAX + 1, 'x'), root_ / "m/weights");  // no name of a file
  const auto content = repository.Read();
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_TRUE(content->models.empty());
  EXPECT_THAT(content->unreadable, ElementsAre("m"));
  EXPECT_TRUE(absl::IsUnavailable(content->refused.at("m")));
}

TEST_F(ModelRepositoryTest, ALinkThatLeadsNowhereIsNoFile) {
  Add("m");
  const ModelRepository repository(root_.path(), 1);
  const std::string first = repository.Read()->models.at("m").fingerprint;
  fs::create_symlink("nothing", root_ / "m/dangles");
  fs::create_symlink("loops", root_ / "m/loops");
  fs::create_symlink("config.json/weights", root_ / "m/through");  // a file is no folder
  EXPECT_EQ(repository.Read()->models.at("m").fingerprint, first);
}

// The rights of somebody who may not read everything, as root may.
class Unprivileged {
 public:
  Unprivileged() { EXPECT_EQ(seteuid(geteuid() == 0 ? kNobody : geteuid()), 0); }
  ~Unprivileged() { EXPECT_EQ(seteuid(user_), 0); }

 private:
  static constexpr uid_t kNobody = 65534;
  const uid_t user_ = geteuid();
};

TEST_F(ModelRepositoryTest, RightsThatHideFilesDoNotHideTheModel) {
  Add("m");
  Add("m/a");
  Add("m/b");
  fs::permissions(root_.path(), fs::perms(0755));
  const ModelRepository repository(root_.path(), 1);
  fs::permissions(root_ / "m/a", fs::perms(0311));
  {
    const Unprivileged nobody;
    const auto content = repository.Read();
    ASSERT_THAT(content->models, ElementsAre(Key("m")));
    EXPECT_THAT(content->models.at("m").fingerprint, HasSubstr("m/b/config.json"));
  }
  fs::permissions(root_ / "m", fs::perms(0311));
  {
    const Unprivileged nobody;
    EXPECT_THAT(repository.Read()->unreadable, ElementsAre("m"));
  }
  fs::permissions(root_ / "m", fs::perms(0755));
  fs::permissions(root_ / "m/a", fs::perms(0755));
}

}  // namespace
}  // namespace attendant
