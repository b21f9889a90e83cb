// SPDX-License-Identifier: Apache-2.0
#include "server/models/repository/repository_watcher.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/models/repository/folder_fingerprint.h"
#include "tests/server/models/registry_fixture.h"

namespace attendant {
namespace {

namespace fs = std::filesystem;
constexpr absl::Duration kSettle = absl::Milliseconds(150);

// A watcher of the folder in which "tiny" is loaded.
class RepositoryWatcherTest : public ModelRegistryTest {
 protected:
  RepositoryWatcherTest()
      : ModelRegistryTest({.control = ModelControl::kPoll,
                           .find =
                               [this](const std::string& name) {
                                 if (before_find_) before_find_(name);
                                 return ModelRepository(directory_.path(), 2).Find(name);
                               },
                           .fingerprint =
                               [](const ModelSource& source) {
                                 return FolderFingerprint(source.directory).value_or("");
                               }}),
        repository_(directory_.path(), 2) {
    at_start_ = *repository_.Read();
    registry_.SetModels(at_start_.models.at("tiny").versions);
    registry_.StartLoading();
    AwaitChange("tiny", ModelState::kReady);
    Watch();
  }

  void Watch() {
    watcher_.reset();
    watcher_ = std::make_unique<RepositoryWatcher>(
        repository_, registry_,
        RepositoryWatcher::Options{
            .interval = absl::Milliseconds(5),
            .settle = kSettle,
            .is_ours = [](const std::string& name) { return name != "ours"; },
            .on_unreadable = [this](const absl::Status&) { ++unreadable_; },
            .on_refused = [this](const absl::Status&) { ++refused_; }},
        at_start_);
  }

  // A model that is there at once: what is written in pieces may be loaded half.
  void Add(const std::string& name) {
    WriteTinyModel(directory_ / ".new");
    fs::create_directories(fs::path(directory_ / name).parent_path());
    fs::rename(directory_ / ".new", directory_ / name);
  }

  // Has "linked" lead elsewhere: a link is put in the place of another one at once.
  void Lead(const char* target) {
    fs::create_directory_symlink(target, directory_ / ".link");
    fs::rename(directory_ / ".link", directory_ / "linked");
  }

  static void Await(const std::function<bool()>& condition) {
    const absl::Time limit = absl::Now() + absl::Seconds(30);
    while (!condition()) ASSERT_LT(absl::Now(), limit);
  }

  const ModelRepository repository_;
  RepositoryContent at_start_;
  std::atomic<int> unreadable_{0}, refused_{0};
  std::function<void(const std::string& name)> before_find_;  // set while nothing watches or loads
  std::unique_ptr<RepositoryWatcher> watcher_;
};

TEST_F(RepositoryWatcherTest, ANewFolderIsServedAndADeletedOneIsNot) {
  Add("next");
  AwaitChange("next", ModelState::kReady);
  EXPECT_TRUE(registry_.Find("next").ok());
  fs::remove_all(directory_ / "next");
  Await([this] { return absl::IsNotFound(registry_.Find("next").status()); });
  EXPECT_TRUE(registry_.Find("tiny").ok());
}

// Each version is a further instance, and keeps its life_id for as long as it serves.
TEST_F(RepositoryWatcherTest, AVersionThatDidNotChangeServesOn) {
  const auto life_of = [this](const char* version) {
    const auto model = registry_.Find("m", version);
    return model.ok() ? (*model)->life_id : 0;
  };
  Add("m/1");
  Await([&] { return life_of("1") > 0; });
  const int64_t first = life_of("1");
  Add("m/2");
  Await([&] { return life_of("2") > 0; });
  const int64_t second = life_of("2");
  EXPECT_EQ(life_of("1"), first);
  WriteFile(directory_ / "m/2/note", "x");
  Await([&] { return life_of("2") != second; });
  EXPECT_EQ(life_of("1"), first);
  const int64_t changed = life_of("2");
  fs::remove_all(directory_ / "m/1");
  Await([&] { return life_of("1") == 0; });
  EXPECT_EQ(life_of("2"), changed);
}

// Copies a model in small steps for longer than the settle time, then asks `is_loaded`. Nothing
// when a step took so long that the model may have been loaded.
std::optional<bool> IsLoadedWhileItIsCopied(const std::string& from, const std::string& to,
                                            const std::function<bool()>& is_loaded) {
  fs::create_directory(to);
  absl::Time last = absl::Now();  // when the last step began
  const absl::Time end = last + 2 * kSettle;
  fs::copy(from + "/config.json", to + "/config.json");
  while (last < end) {
    while (absl::Now() - last < absl::Milliseconds(4)) std::this_thread::yield();
    const absl::Time begin = absl::Now();
    std::ofstream(to + "/model.safetensors", std::ios::app) << "x" << std::flush;
    if (absl::Now() - last >= kSettle) return std::nullopt;
    last = begin;
  }
  const bool loaded = is_loaded();
  if (absl::Now() - last >= kSettle) return std::nullopt;
  return loaded;
}

TEST_F(RepositoryWatcherTest, AFolderIsNotLoadedWhileItIsCopied) {
  constexpr int kTries = 20;  // of this thread, to get the processor often enough
  std::optional<bool> loaded;
  for (int i = 0; i < kTries && !loaded.has_value(); ++i) {
    const std::string name = absl::StrCat("copied", i);
    loaded = IsLoadedWhileItIsCopied(directory_ / "tiny", directory_ / name, [&] {
      const Changes all = changes();
      return std::any_of(all.begin(), all.end(),
                         [&name](const auto& change) { return change.first == name; });
    });
    fs::remove_all(directory_ / name);
  }
  EXPECT_EQ(loaded, false);
  Add("copied");
  AwaitChange("copied", ModelState::kReady);
}

TEST_F(RepositoryWatcherTest, ABrokenModelIsTriedAgainWhenItChanges) {
  const std::shared_ptr<EncoderModel> before = *registry_.Find("tiny");
  WriteFile(directory_ / "tiny/config.json", "{");
  Await([this] { return !registry_.List()[0].error.ok(); });
  EXPECT_EQ(*registry_.Find("tiny"), before) << "it serves on";
  EXPECT_EQ(loads_, 2);
  WriteTinyModel(directory_ / "tiny");
  Await([this] { return registry_.List()[0].error.ok(); });
  EXPECT_NE(*registry_.Find("tiny"), before);
}

TEST_F(RepositoryWatcherTest, AChangeBeforeTheFirstLookIsSeen) {
  watcher_.reset();
  WriteFile(directory_ / "tiny/note", "x");
  Watch();
  AwaitChange("tiny", ModelState::kReady, 2);
}

TEST_F(RepositoryWatcherTest, ARepositoryThatCannotBeReadChangesNothing) {
  const std::string aside = directory_.path() + ".aside";
  fs::rename(directory_.path(), aside);
  Await([this] { return unreadable_ == 1; });
  fs::rename(aside, directory_.path());
  Add("next");
  AwaitChange("next", ModelState::kReady);
  EXPECT_EQ(unreadable_, 1);
  for (const auto& [name, state] : changes()) EXPECT_NE(state, ModelState::kUnloading);
}

TEST_F(RepositoryWatcherTest, AModelThatCannotBeReadForAMomentServesOn) {
  WriteTinyModel(directory_ / ".real");
  Lead(".real");
  AwaitChange("linked", ModelState::kReady);
  Lead("linked");  // to itself
  Await([this] { return refused_ == 1; });
  Add("next");  // a change is handled after the settle time
  AwaitChange("next", ModelState::kReady);
  EXPECT_TRUE(registry_.Find("linked").ok());
  EXPECT_EQ(refused_, 1);
  Lead(".real");
  Add("last");
  AwaitChange("last", ModelState::kReady);
  const Changes all = changes();
  EXPECT_EQ(
      std::count(all.begin(), all.end(), std::pair(std::string("linked"), ModelState::kReady)), 1);
  for (const auto& [name, state] : all) EXPECT_NE(state, ModelState::kUnloading) << name;
}

TEST_F(RepositoryWatcherTest, AModelThatCannotBeReadInItsTurnIsLoadedOnceItCanBe) {
  std::atomic<int> finds = 0;
  WriteTinyModel(directory_ / ".real");
  before_find_ = [&](const std::string& name) {
    if (name == "linked" && ++finds == 1) Lead("linked");  // to itself
  };
  Lead(".real");
  Await([this] { return refused_ == 1; });
  Add("next");  // some looks later it is loaded
  AwaitChange("next", ModelState::kReady);
  EXPECT_EQ(finds, 1) << "no turn while it cannot be read";
  Lead(".real");
  AwaitChange("linked", ModelState::kReady);
  EXPECT_EQ(finds, 2);
}

// Its files are as they were: nothing else would have it loaded.
TEST_F(RepositoryWatcherTest, AModelWhoseFilesCannotBeOpenedForAMomentIsLoadedAfterwards) {
  load_gate_.Close();
  Add("next");
  load_gate_.AwaitWaiting(1);
  AwaitChange("tiny", ModelState::kReady);  // UBSan examines its object once, by a descriptor
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  load_gate_.Open();
  AwaitChange("next", ModelState::kFailed);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  Await([this] { return registry_.Find("next").ok(); });
}

TEST_F(RepositoryWatcherTest, WhatCannotBeServedIsReportedOnceWhileItIsThere) {
  for (int times = 1; times <= 2; ++times) {
    Add("no name");
    Await([this, times] { return refused_ == times; });
    Add("next");  // some looks later it is loaded
    AwaitChange("next", ModelState::kReady, times);
    EXPECT_EQ(refused_, times);
    fs::remove_all(directory_ / "no name");
    fs::remove_all(directory_ / "next");
    Await([this] { return absl::IsNotFound(registry_.Find("next").status()); });
  }
}

TEST_F(RepositoryWatcherTest, AModelForWhoseLoadThereWasNoRoomIsLoadedLater) {
  load_gate_.Close();
  registry_.Unload("tiny", [](const absl::Status&) {});
  registry_.Load("tiny", [](const absl::Status&) {});
  load_gate_.AwaitWaiting(1);
  constexpr int kMaxJobs = 4096;
  for (int i = 0; i < kMaxJobs; ++i) {
    registry_.Load(absl::StrCat("none", i), [](const absl::Status&) {});
  }
  Add("next");
  Await([this] { return refused_ == 1; });
  load_gate_.Open();
  AwaitChange("next", ModelState::kReady);
  EXPECT_EQ(refused_, 1) << "it is said once";
}

TEST_F(RepositoryWatcherTest, NamesOfOthersAreLeftAlone) {
  Add("ours");
  Add("zebra");
  AwaitChange("zebra", ModelState::kReady);
  EXPECT_TRUE(absl::IsNotFound(registry_.Find("ours").status()));
}

}  // namespace
}  // namespace attendant
