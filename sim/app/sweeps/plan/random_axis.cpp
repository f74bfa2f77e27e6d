// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/plan/random_axis.h"

#include <algorithm>
#include <boost/random/sobol.hpp>
#include <cmath>
#include <optional>

namespace orrery {
namespace {

/// The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014; Stafford's variant 13): a
/// bijection of 64 bits that leaves no pattern.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

std::uint64_t hash_of(std::int64_t seed, std::size_t dimension, std::uint64_t index) {
  return mixed(mixed(mixed(static_cast<std::uint64_t>(seed)) ^ dimension) ^ index);
}

double unit_of(std::uint64_t bits) {
  constexpr double kOver2To53 = 1.0 / 9007199254740992.0;
  return static_cast<double>(bits >> 11U) * kOver2To53;
}

/// Where `index` of n goes in an order that the key makes: a Feistel network of four rounds over
/// the next power of four, walked until it comes back below n (Black and Rogaway, CT-RSA 2002).
std::uint64_t permuted(std::uint64_t index, std::uint64_t n, std::uint64_t key) {
  unsigned half = 1;
  while (half < 31 && (std::uint64_t{1} << (2 * half)) < n) ++half;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  do {
    std::uint64_t left = index >> half, right = index & mask;
    for (std::uint64_t round = 0; round < 4; ++round) {
      const std::uint64_t next = left ^ (mixed(mixed(key + round) ^ right) & mask);
      left = right;
      right = next;
    }
    index = (left << half) | right;
  } while (index >= n);
  return index;
}

}  // namespace

struct UnitPoints::Sobol {
  explicit Sobol(std::size_t dimensions) : engine(dimensions), values(dimensions) {}
  boost::random::sobol engine;
  std::optional<std::uint64_t> next;  ///< index of the point that the engine gives next
  std::vector<std::uint64_t> values;  ///< point before that
};

UnitPoints::UnitPoints(RandomPoints points, std::size_t dimensions) : points_(points) {
  if (points.sampler != Sampler::kSobol) return;
  try {
    sobol_ = std::make_unique<Sobol>(dimensions);
  } catch (const std::exception&) {  // boost: std::range_error, std::invalid_argument
    throw config::ConfigError("there are no Sobol points of " + std::to_string(dimensions) +
                              " dimensions; sampler: lhs has no such limit");
  }
}

UnitPoints::~UnitPoints() = default;

double UnitPoints::sobol(std::uint64_t point, std::size_t dimension) const {
  Sobol& sobol = *sobol_;
  if (sobol.next != point + 1) {
    if (sobol.next != point) sobol.engine.seed(point);
    for (std::uint64_t& value : sobol.values) value = sobol.engine();
    sobol.next = point + 1;
  }
  const std::uint64_t shift = points_.seed == 0 ? 0 : hash_of(points_.seed, dimension, 0);
  return unit_of(sobol.values[dimension] ^ shift);
}

double UnitPoints::at(std::uint64_t point, std::size_t dimension) const {
  if (points_.sampler == Sampler::kSobol) return sobol(point, dimension);
  const double unit = unit_of(hash_of(points_.seed, dimension, point));
  if (points_.sampler == Sampler::kUniform) return unit;
  const std::uint64_t key = hash_of(points_.seed, dimension, ~std::uint64_t{0});
  const auto stratum = static_cast<double>(permuted(point, points_.n, key));
  return (stratum + unit) / static_cast<double>(points_.n);
}

std::string fault_of(const Draw& draw) {
  if (draw.low.dimension != draw.high.dimension) return "min and max have units of one kind";
  if (!(draw.low.value < draw.high.value)) return "min must be below max";
  if (draw.log && !(draw.low.value > 0)) return "with log, min must be above 0";
  return {};
}

RandomAxis::RandomAxis(std::vector<AxisKey> keys, std::vector<Draw> draws, RandomPoints points)
    : Axis(std::move(keys)),
      n_(points.n),
      draws_(std::move(draws)),
      points_(points, draws_.size()) {}

config::Node RandomAxis::value(std::uint64_t step, std::size_t key) const {
  const Draw& draw = draws_[key];
  const double unit = points_.at(step, key);
  if (!draw.values.empty()) {
    const auto count = static_cast<double>(draw.values.size());
    return draw.values[static_cast<std::size_t>(unit * count)];
  }
  // A whole number has as much of the unit as the others, or in log what lies up to the next one.
  const double low = draw.low.value, high = draw.high.value + (draw.integer ? 1 : 0);
  Amount amount = draw.low;
  amount.value = draw.log ? low * std::exp(unit * std::log(high / low)) : low + unit * (high - low);
  if (draw.integer) amount.value = std::floor(amount.value);
  constexpr int kDrawnDigits = 6;
  amount = rounded(amount, kDrawnDigits, draw.integer);
  amount.value = std::clamp(amount.value, draw.low.value, draw.high.value);
  return config::Node::scalar(print_amount(amount), draw.written.origin());
}

std::vector<config::Node> RandomAxis::ends(std::size_t key) const {
  const Draw& draw = draws_[key];
  if (!draw.values.empty()) return draw.values;
  return {config::Node::scalar(print_amount(draw.low), draw.written.origin()),
          config::Node::scalar(print_amount(draw.high), draw.written.origin())};
}

}  // namespace orrery
