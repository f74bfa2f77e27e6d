// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/config/declared.h"
#include "sim/config/file_path.h"

namespace orrery {

/// A lognormal distribution by two of its figures.
struct Lognormal {
  std::optional<double> mean;
  std::optional<double> median;
  double p90 = 0;
  /// Standard deviation of the logarithm; nothing where no such distribution is.
  std::optional<double> sigma() const;
  static const config::Schema<Lognormal>& schema();
};

/// How many tokens prompts or answers have: one of the members.
struct Lengths {
  std::optional<std::int64_t> fixed;
  std::vector<std::int64_t> uniform;  ///< least and most, both included
  std::optional<Lognormal> lognormal;
  FilePath empirical;  ///< a number a line; each is as likely

  /// A length drawn from a sequence of random numbers (next_random); at least 1.
  /// @param values those of `empirical`
  std::int64_t draw(std::uint64_t& state, const std::vector<std::int64_t>& values) const;
  /// The numbers of `empirical`; none without one.
  /// @throws config::ConfigError for a file that cannot be read, or with anything else in it
  std::vector<std::int64_t> values() const;

  static Lengths of(std::int64_t tokens) {
    Lengths lengths;
    lengths.fixed = tokens;
    return lengths;
  }
  static const config::Schema<Lengths>& schema();
};

/// Lengths of prompts and answers.
class LengthDraws {
 public:
  LengthDraws(Lengths input, Lengths output, std::int64_t seed);
  std::int64_t prompt() { return input_.draw(state_, inputs_); }
  std::int64_t output() { return output_.draw(state_, outputs_); }

 private:
  Lengths input_, output_;
  std::vector<std::int64_t> inputs_, outputs_;
  std::uint64_t state_;
};

}  // namespace orrery
