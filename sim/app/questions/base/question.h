// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "sim/app/questions/base/options.h"
#include "sim/results/answer.h"

namespace orrery {

/// What can be asked, and gets an answer that is data. Each question is a verb of its name, whose
/// answer is printed as text or, with `--json`, as JSON.
struct Question {
  std::string help;  ///< one line
  /// Gives what answers once `options` have been filled in.
  std::function<std::function<Answer()>(Options& options)> take;
  bool has_csv = false;  ///< the answer is a table, and `--csv` prints it
};
/// All questions by name: "describe", "explain".
const std::map<std::string, Question>& questions();

void register_question(const std::string& name, Question question);

/// A file adds a question with one such object. `Asked` has `void take(Options&)` and
/// `Answer answer() const`.
template <class Asked>
class RegisterQuestion {
 public:
  RegisterQuestion(const std::string& name, const std::string& help, bool has_csv = false) {
    register_question(name, {help,
                             [](Options& options) -> std::function<Answer()> {
                               const auto asked = std::make_shared<Asked>();
                               asked->take(options);
                               return [asked] { return asked->answer(); };
                             },
                             has_csv});
  }
};

}  // namespace orrery
