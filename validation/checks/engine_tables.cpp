// SPDX-License-Identifier: Apache-2.0
#include "validation/checks/engine_tables.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "sim/config/byte_source.h"
#include "sim/config/csv.h"
#include "validation/importers/numbers.h"

namespace orrery {
namespace {

double cell_number(config::CsvReader& csv, const std::string& column) {
  const std::size_t place = csv.column(column);
  const auto value = parse_real(csv.cell(place));
  if (!value) csv.error(place, fmt::format("expected a number, got '{}'", csv.cell(place)));
  return value.value_or(0);
}

/// The table in a folder, plain or packed.
std::string required_table(const std::string& folder, const char* name) {
  for (const char* end : {".csv", ".csv.gz"}) {
    std::string path = fmt::format("{}/{}{}", folder, name, end);
    if (std::filesystem::exists(path)) return path;
  }
  throw config::ConfigError(fmt::format("{}: has no table {}.csv", folder, name));
}

/// Times by figures.
GridTable read_grid(const std::string& path, const std::vector<std::string>& columns) {
  config::CsvReader csv(path, read_input(path));
  GridTable table;
  while (csv.next()) {
    GridTable::Point at{};
    for (std::size_t i = 0; i < columns.size(); ++i) at[i] = cell_number(csv, columns[i]);
    table.add(at, cell_number(csv, "time_us"));
  }
  csv.throw_if_errors();
  return table;
}

bool is_power_of_two(double value) {
  return value == 0 || std::exp2(std::round(std::log2(value))) == value;
}

std::string rank_folder(const std::string& profile, int tp) {
  return fmt::format("{}/tp{}", profile, tp);
}

/// Times of each layer by one figure.
std::map<std::string, GridTable> read_layers(const std::string& path, const std::string& column) {
  config::CsvReader csv(path, read_input(path));
  const std::size_t layer = csv.column("layer");
  std::map<std::string, GridTable> tables;
  while (csv.next())
    tables[std::string(csv.cell(layer))].add({cell_number(csv, column), 0, 0, 0},
                                             cell_number(csv, "time_us"));
  csv.throw_if_errors();
  return tables;
}

/// Layers that a step has once; norms come twice in each layer of the model, all others once.
double times_a_step(const std::string& layer, double layers) {
  if (layer == "embedding" || layer == "final_layernorm") return 1;
  return layer == "layernorm" ? 2 * layers : layers;
}

}  // namespace

void GridTable::add(const Point& at, double value) {
  cells_[at] = value;
  for (std::size_t i = 0; i < kAxes; ++i) {
    const auto place = std::lower_bound(axes_[i].begin(), axes_[i].end(), at[i]);
    if (place == axes_[i].end() || *place != at[i]) axes_[i].insert(place, at[i]);
  }
}

GridTable::Ends GridTable::ends(std::size_t axis, double value) const {
  const std::vector<double>& nodes = axes_[axis];
  const double inside = std::clamp(value, nodes.front(), nodes.back());
  const auto high = std::lower_bound(nodes.begin(), nodes.end(), inside);
  if (*high == inside) return {inside, inside, 0};
  const double low = *(high - 1);
  return {low, *high, (inside - low) / (*high - low)};
}

double GridTable::at(const Point& point) const {
  std::array<Ends, kAxes> around;
  for (std::size_t i = 0; i < kAxes; ++i) around[i] = ends(i, point[i]);
  double sum = 0, weights = 0;
  for (unsigned corner = 0; corner < 1U << kAxes; ++corner) {
    Point at{};
    double weight = 1;
    for (std::size_t i = 0; i < kAxes; ++i) {
      const bool high = (corner >> i & 1U) != 0;
      at[i] = high ? around[i].high : around[i].low;
      weight *= high ? around[i].weight : 1 - around[i].weight;
    }
    if (weight <= 0) continue;
    const auto cell = cells_.find(at);
    if (cell == cells_.end()) continue;
    sum += weight * cell->second;
    weights += weight;
  }
  return weights > 0 ? sum / weights : 0;
}

/// Beyond its ends the finer grid gives way to the wide one.
double EngineTables::Grids::at(const GridTable::Point& point) const {
  const bool covered =
      !fine.empty() && point[0] >= fine.first(0) && (point[2] == 0 || point[3] >= fine.first(3));
  if (!covered) return wide.at(point);
  const double most = fine.last(0), above = wide.empty() ? most : wide.last(0);
  if (point[0] <= most || above <= most) return fine.at(point);
  const double share = std::min(1.0, (point[0] - most) / (above - most));
  GridTable::Point low = point, high = point;
  low[0] = most;
  high[0] = above;
  return (1 - share) * fine.at(low) + share * wide.at(high);
}

EngineTables::EngineTables(const std::string& profile, const LlmConfig& model, Plan plan)
    : plan_(std::move(plan)),
      layers_(static_cast<double>(model.layer_count())),
      experts_(static_cast<double>(model.moe.experts)),
      routed_(static_cast<double>(model.moe.experts_per_token)),
      kv_heads_(static_cast<double>(model.attention.kv_heads) / plan_.tp),
      dense_(read_layers(required_table(rank_folder(profile, plan_.tp), "dense"), "tokens")),
      sequences_(read_layers(required_table(rank_folder(profile, plan_.tp), "per_sequence"),
                             "sequences")) {
  const std::string folder = rank_folder(profile, plan_.tp);
  read_attention(required_table(folder, "attention"));
  for (const LayerConfig& layer : model.layers) expert_layers_ += layer.moe ? 1 : 0;
  if (expert_layers_ > 0)
    moe_ = read_grid(required_table(folder, "moe"), {"tokens", "activated_experts"});
}

double EngineTables::dense(std::int64_t tokens) const {
  double sum = 0;
  for (const auto& [layer, table] : dense_)
    sum += times_a_step(layer, layers_) * table.at({static_cast<double>(tokens), 0, 0, 0});
  return sum;
}

/// What has a chunk was measured on two grids: that of powers of two, and a finer one.
void EngineTables::read_attention(const std::string& path) {
  config::CsvReader csv(path, read_input(path));
  while (csv.next()) {
    const GridTable::Point at = {cell_number(csv, "prefill_chunk"), cell_number(csv, "kv_prefill"),
                                 cell_number(csv, "n_decode"), cell_number(csv, "kv_decode")};
    const double time = cell_number(csv, "time_us");
    Grids& grids = at[2] == 0 ? chunks_ : mixed_;
    if (at[0] == 0) {
      decodes_.add(at, time);
    } else if (!is_power_of_two(at[0])) {
      grids.fine.add(at, time);
    } else if (is_power_of_two(at[1]) && is_power_of_two(at[3])) {
      grids.wide.add(at, time);
    }
  }
  csv.throw_if_errors();
}

/// The table has decodes of one context. With enough blocks, a sequence and a head each, for nearly
/// all places FlashAttention splits no context (num_splits_heuristic: two places a multiprocessor),
/// and the longest goes on when the others are done, as fast as a sequence alone beside the
/// shortest chunk, where it is not split either.
double EngineTables::decodes(double sequences, double mean, double longest) const {
  constexpr double kPlaces = 2, kNearlyAll = 0.8;
  const double even = decodes_.at({0, 0, sequences, mean});
  const bool split = sequences * kv_heads_ < kNearlyAll * kPlaces * plan_.units;
  if (split || mixed_.wide.empty()) return even;
  const auto alone = [this](double context) {
    return mixed_.wide.at({mixed_.wide.first(0), 0, 1, context});
  };
  return std::min(even + alone(longest) - alone(mean), decodes_.at({0, 0, sequences, longest}));
}

/// The tables have one chunk beside decodes of one context: chunks count as one of all their
/// tokens, behind their mean context. Beside a chunk each of all heads is a block, so many that the
/// longest decode ends among the others.
double EngineTables::attention(const BatchShape& shape) const {
  double tokens = 0, before = 0;
  for (const Chunk& chunk : shape.chunks) {
    const auto weight = static_cast<double>(chunk.tokens);
    tokens += weight;
    before += weight * static_cast<double>(chunk.context);
  }
  const double context = tokens > 0 ? before / tokens : 0;
  if (shape.sequences == 0) return chunks_.at({tokens, context, 0, 0});
  const auto count = static_cast<double>(shape.sequences);
  const double mean = static_cast<double>(shape.context) / count;
  if (tokens == 0) return decodes(count, mean, static_cast<double>(shape.longest));
  return mixed_.at({tokens, context, count, mean});
}

/// The table has all experts on one rank: of several, each has its part of the experts and of what
/// is routed. Experts that no token goes to are not read.
/// @param tokens of a rank in the mean
double EngineTables::experts(std::int64_t tokens) const {
  const auto all = static_cast<double>(tokens * plan_.ranks);
  const double read = (1 - std::pow(1 - routed_ / experts_, all)) * experts_ / plan_.ranks;
  const double time = moe_.at({all / plan_.ranks, read, 0, 0});
  return time + (plan_.exchange ? plan_.exchange(tokens * plan_.ranks).base() * 1e6 : 0);
}

IterationPrice EngineTables::price(const BatchShape& shape) {
  const std::int64_t tokens = shape.tokens();
  if (tokens == 0) return {};
  std::int64_t sampled = shape.sequences;
  for (const Chunk& chunk : shape.chunks) sampled += chunk.samples ? 1 : 0;
  double sum = dense(tokens + shape.padding) + layers_ * attention(shape);
  if (expert_layers_ > 0)
    sum += expert_layers_ *
           experts(shape.mean_tokens > 0 ? shape.mean_tokens : tokens + shape.padding);
  for (const auto& [layer, table] : sequences_)
    sum += table.at({static_cast<double>(std::max<std::int64_t>(sampled, 1)), 0, 0, 0});
  return {to_picoseconds(Seconds(sum * 1e-6)), 0};
}

}  // namespace orrery
