// SPDX-License-Identifier: Apache-2.0
// A corpus of mistakes: each file of bad_inputs/ has a good text and cases that spoil it in one
// place, with the exit code, the place and the words that a user has to be shown.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>

#include "sim/app/cli/command_line.h"
#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/steps/plan_check.h"
#include "sim/config/load.h"

namespace orrery::bad_inputs_test {
namespace {

namespace fs = std::filesystem;

struct BadInput {
  std::vector<std::string> swap;   ///< what of the good text is replaced, and by what
  std::optional<std::string> set;  ///< or an argument of --set
  int code = 2;
  std::string at;     ///< "line:column"; "set": the argument; empty: the file alone
  std::string says;   ///< part of the message
  std::string means;  ///< the suggestion
  std::string helps;  ///< part of a note below the message
  static const config::Schema<BadInput>& schema();
};

const config::Schema<BadInput>& BadInput::schema() {
  static const auto schema = config::Schema<BadInput>("case", "one mistake")
                                 .optional("swap", &BadInput::swap, "text and what replaces it")
                                 .optional("set", &BadInput::set, "an argument of --set")
                                 .optional("code", &BadInput::code, "exit code")
                                 .optional("at", &BadInput::at, "line:column, or set")
                                 .required("says", &BadInput::says, "part of the message")
                                 .optional("means", &BadInput::means, "suggestion")
                                 .optional("helps", &BadInput::helps, "part of a note");
  return schema;
}

struct BadInputs {
  std::string input = "input.yaml";  ///< file that has the text
  std::string main;                  ///< text of a file that names it and is checked instead
  std::string base;
  std::vector<BadInput> cases;
  static const config::Schema<BadInputs>& schema();
};

const config::Schema<BadInputs>& BadInputs::schema() {
  static const auto schema = config::Schema<BadInputs>("bad_inputs", "a good text and mistakes")
                                 .optional("input", &BadInputs::input, "its file")
                                 .optional("main", &BadInputs::main, "a file that names it")
                                 .required("base", &BadInputs::base, "the good text")
                                 .required("cases", &BadInputs::cases, "one mistake each");
  return schema;
}

struct Answer {
  ExitCode code = ExitCode::kOk;
  std::string text;
};

/// What `orrery check` prints for the file, or `orrery run --set` before it simulates.
Answer ask(const std::string& file, const std::optional<std::string>& set) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  Answer answer;
  if (set) {
    try {
      const LoadedExperiment loaded = load_experiment(file, {*set});
      std::cerr << check_plan(loaded);
      check_network(loaded);
    } catch (...) {
      const Failure failure = classify(std::current_exception());
      answer.code = failure.code;
      std::cerr << failure.message;
    }
  } else {
    answer.code = run_command_line({"check", file});
  }
  testing::internal::GetCapturedStdout();
  answer.text = testing::internal::GetCapturedStderr();
  return answer;
}

class BadInputCorpus : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("orrery_bad_" + std::to_string(::getpid()));
    corpus_ = config::load<BadInputs>(ORRERY_SOURCE_DIR "/tests/unit/app/bad_inputs/" + GetParam() +
                                      ".yaml");
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string write(const std::string& name, const std::string& text) const {
    const fs::path path = folder_ / name;
    std::ofstream(path) << text;
    return path.string();
  }

  /// The text with the mistake of a case in it.
  std::string spoilt(const BadInput& bad) const {
    std::string text = corpus_.base;
    if (bad.swap.empty()) return text;
    const std::size_t at = text.find(bad.swap[0]);
    EXPECT_NE(at, std::string::npos) << bad.swap[0];
    EXPECT_EQ(text.find(bad.swap[0], at + 1), std::string::npos) << bad.swap[0];
    return text.replace(at, bad.swap[0].size(), bad.swap[1]);
  }

  /// Each text is in a folder of its own, for some files are read once a process.
  Answer answer(const std::string& text, const std::optional<std::string>& set) {
    folder_ = root_ / std::to_string(++asked_);
    fs::create_directories(folder_);
    const std::string input = write(corpus_.input, text);
    return ask(corpus_.main.empty() ? input : write("main.yaml", corpus_.main), set);
  }

  /// How a message has to begin.
  std::string place(const BadInput& bad) const {
    if (bad.at == "set") return "--set " + *bad.set + ": error: ";
    const std::string file = (folder_ / corpus_.input).string();
    return bad.at.empty() ? file + ": " : file + ":" + bad.at + ": error: ";
  }

  fs::path root_, folder_;
  static inline int asked_ = 0;
  BadInputs corpus_;
};

TEST_P(BadInputCorpus, TheGoodTextIsGood) {
  const Answer good = answer(corpus_.base, {});
  EXPECT_EQ(good.code, ExitCode::kOk);
  EXPECT_EQ(good.text, "");
}

TEST_P(BadInputCorpus, EveryMistakeIsToldWhereItStandsAndWhatWasMeant) {
  for (const BadInput& bad : corpus_.cases) {
    const Answer told = answer(spoilt(bad), bad.set);
    const auto wanted = [&](const std::string& part) {
      return part.empty() || told.text.find(part) != std::string::npos ? ""
                                                                       : "\nnot there: " + part;
    };
    std::string missing = wanted(place(bad)) + wanted(bad.says);
    if (!bad.means.empty()) missing += wanted("did you mean '" + bad.means + "'?");
    if (!bad.helps.empty()) missing += wanted("   = " + bad.helps);
    EXPECT_EQ(static_cast<int>(told.code), bad.code) << (bad.set ? *bad.set : bad.swap[1]) << "\n"
                                                     << told.text;
    EXPECT_EQ(missing, "") << (bad.set ? *bad.set : bad.swap[1]) << "\n" << told.text;
  }
}

std::vector<std::string> corpora() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(ORRERY_SOURCE_DIR "/tests/unit/app/bad_inputs"))
    names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Of, BadInputCorpus, testing::ValuesIn(corpora()),
                         [](const auto& corpus) { return corpus.param; });

TEST(BadInputs, AreThreeHundredAtLeast) {
  std::size_t cases = 0;
  for (const std::string& name : corpora())
    cases +=
        config::load<BadInputs>(ORRERY_SOURCE_DIR "/tests/unit/app/bad_inputs/" + name + ".yaml")
            .cases.size();
  EXPECT_GE(cases, 300U);
}

}  // namespace
}  // namespace orrery::bad_inputs_test
