// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "sim/app/questions/base/options.h"
#include "sim/config/registry.h"
#include "sim/results/answer.h"

namespace orrery {

/// What can be asked, and gets an answer that is data. Each question is a verb of its name, whose
/// answer is printed as text or, with `--json`, as JSON.
struct Question {
  /// Gives what answers once `options` have been filled in.
  std::function<std::function<Answer()>(Options& options)> take;
  bool has_csv = false;  ///< the answer is a table, and `--csv` prints it
};
/// All questions by name: "describe", "explain".
using QuestionRegistry = Registry<Question>;

/// A file adds a question with one such object. `Asked` has `void take(Options&)` and
/// `Answer answer() const`.
template <class Asked>
struct RegisterQuestion : QuestionRegistry::Register {
  RegisterQuestion(const std::string& name, const std::string& help, bool has_csv = false)
      : Register(name, help,
                 {[](Options& options) -> std::function<Answer()> {
                    const auto asked = std::make_shared<Asked>();
                    asked->take(options);
                    return [asked] { return asked->answer(); };
                  },
                  has_csv}) {}
};

}  // namespace orrery
