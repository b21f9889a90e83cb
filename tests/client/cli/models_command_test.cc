// SPDX-License-Identifier: Apache-2.0
// `attendant models` that loads and unloads models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "tests/client/cli/command_fixture.h"

namespace attendant::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ModelsCommandTest : public CommandTest {};

TEST_F(ModelsCommandTest, UnloadsThenLoadsThenLists) {
  EXPECT_EQ(Run({"models", "--load=toy", "--unload=old", "--load", "new", "--json"}), kExitOk)
      << err_;
  EXPECT_THAT(server_.changes(), ElementsAre("unload old", "load toy", "load new"));
  EXPECT_EQ(OutputLines().at(0)["models"][0]["name"], "toy");
  EXPECT_EQ(Run({"models"}), kExitOk);
  EXPECT_THAT(server_.changes(), testing::SizeIs(3));
}

TEST_F(ModelsCommandTest, StopsAtTheFirstChangeThatFails) {
  server_.FailNext(1, absl::NotFoundError("there is no model 'a'"));
  EXPECT_EQ(Run({"models", "--load=a", "--load=b"}), kExitServerError);
  EXPECT_THAT(
      err_, HasSubstr(server_.address() + ": NOT_FOUND: cannot load 'a': there is no model 'a'\n"));
  EXPECT_THAT(out_, IsEmpty());
  server_.FailNext(1, absl::InternalError("why"));
  EXPECT_EQ(Run({"models", "--unload=a", "--load=b"}), kExitServerError);
  EXPECT_THAT(err_, HasSubstr("INTERNAL: cannot unload 'a': why\n"));
  EXPECT_THAT(server_.changes(), ElementsAre("load a", "unload a"));
}

TEST_F(ModelsCommandTest, AServerThatMakesNoChangesIsNotUnreachable) {
  server_.FailNext(1, absl::UnavailableError("explicit model load / unload is not allowed: why"));
  EXPECT_EQ(Run({"models", "--load=toy"}), kExitServerError);
  EXPECT_THAT(err_, HasSubstr("PERMISSION_DENIED: cannot load 'toy': explicit model load"));
  server_.FailNext(1, absl::UnavailableError("the server is stopping"));
  EXPECT_EQ(Run({"models", "--load=toy"}), kExitNoAnswer);
}

// Of a load it is about the model: the command line has no mistake.
TEST_F(ModelsCommandTest, AModelThatCannotServeIsNoUsageError) {
  server_.FailNext(1, absl::FailedPreconditionError("the last states are not finite"));
  EXPECT_EQ(Run({"models", "--load=toy"}), kExitServerError);
  EXPECT_THAT(err_, HasSubstr("FAILED_PRECONDITION: cannot load 'toy': the last states"));
}

TEST_F(ModelsCommandTest, ALoadThatTakesTooLongGoesOn) {
  server_.Stall();
  EXPECT_EQ(Run({"models", "--load=toy", "--timeout=50ms"}), kExitNoAnswer);
  EXPECT_THAT(err_, HasSubstr("the server may go on"));
}

// Also of a model that serves on, because what was to replace it did not load.
TEST_F(ModelsCommandTest, ListsErrors) {
  v1::ModelInfo ready, failed, sound;
  ready.set_name("toy");
  ready.set_state(v1::MODEL_STATE_READY);
  ready.set_hidden(4);
  ready.add_poolings(v1::POOLING_MEAN);
  ready.set_error("no space");
  failed.set_name("new");
  failed.set_state(v1::MODEL_STATE_FAILED);
  failed.set_error("no weights");
  sound = ready;
  sound.set_name("last");
  sound.clear_error();
  server_.SetDescriptions({ready, failed, sound});
  EXPECT_EQ(Run({"models"}), kExitOk);
  EXPECT_THAT(out_, testing::ContainsRegex("POOLING +ERROR\n"));
  EXPECT_THAT(out_, testing::ContainsRegex("toy .* mean +no space\n"));
  EXPECT_THAT(out_, testing::ContainsRegex("new +0 +failed +no weights\n"));
  EXPECT_THAT(out_, testing::ContainsRegex("last .* mean\n"));
  const std::vector<std::string> lines = absl::StrSplit(out_, '\n');
  EXPECT_EQ(lines.at(2).find("no weights"), lines.at(0).find("ERROR"));
}

TEST_F(ModelsCommandTest, ANameThatIsNotUtf8IsNotSent) {
  EXPECT_EQ(Run({"models", "--load=a\xff"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--load is not valid UTF-8 at byte 1"));
  EXPECT_THAT(server_.changes(), IsEmpty());
}

}  // namespace
}  // namespace attendant::client
