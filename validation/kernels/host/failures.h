// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "host/measurement.h"

namespace orrery::measure {

/// The wrong results of one sweep, which goes on with its other points; the first few are named.
class Failures {
 public:
  void add(const WrongResult& error) {
    constexpr int kNamed = 5;
    if (++count_ <= kNamed) text_ += std::string(count_ == 1 ? "" : "; ") + error.what();
  }

  /// Ends the sweep. @throws WrongResult when there was one.
  void raise() const {
    if (count_ > 0) throw WrongResult(std::to_string(count_) + " wrong: " + text_);
  }

 private:
  std::string text_;
  int count_ = 0;
};

}  // namespace orrery::measure
