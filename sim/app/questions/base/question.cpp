// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/base/question.h"

#include <stdexcept>
#include <utility>

namespace orrery {
namespace {

std::map<std::string, Question>& registry() {
  static std::map<std::string, Question> known;
  return known;
}

}  // namespace

const std::map<std::string, Question>& questions() { return registry(); }

void register_question(const std::string& name, Question question) {
  if (!registry().emplace(name, std::move(question)).second)
    throw std::logic_error("question registered twice: " + name);
}

}  // namespace orrery
