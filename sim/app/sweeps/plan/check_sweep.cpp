// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/plan/check_sweep.h"

#include <algorithm>
#include <set>
#include <utility>

#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/sweeps/plan/plan_cursor.h"

namespace orrery {
namespace {

/// Values of one axis that are tried: all of those that somebody writes, and the first and last of
/// longer ones, whose values lie between them or are found when they run.
constexpr std::uint64_t kMostTried = 256;
constexpr std::uint64_t kMostDrawn = 16;
/// Points among which one that can be is looked for.
constexpr std::uint64_t kMostSought = 256;

class SweepCheck {
 public:
  explicit SweepCheck(const Sweep& sweep) : sweep_(sweep) {}

  void run() {
    std::unique_ptr<PlanCursor> cursor;
    for (const PlanBlock& block : sweep_.blocks) {
      gather([&] {
        if (!cursor) cursor = std::make_unique<PlanCursor>(sweep_);
        try_block(*cursor, block);
      });
    }
    throw_errors();
    if (!any_ && sweep_.places() <= kMostSought) require_any(*cursor);
    check_choices(*cursor);
  }

 private:
  template <class Work>
  void gather(const Work& work) {
    try {
      work();
    } catch (const config::ConfigError& error) {
      const std::string text = error.what();
      if (errors_.find(text) == std::string::npos)
        errors_ += text + (text.ends_with('\n') ? "" : "\n");
    }
  }

  void throw_errors() const {
    if (!errors_.empty()) throw config::ConfigError(errors_, {config::Diagnostic{}});
  }

  void try_block(PlanCursor& cursor, const PlanBlock& block) {
    gather([&] { try_point(cursor, block.first); });
    std::uint64_t stride = block.size;
    for (const auto& axis : block.axes) {
      stride /= axis->size();
      const std::uint64_t most = axis->is_drawn() ? kMostDrawn : kMostTried;
      if (axis->is_drawn() && !is_tried(*axis, 0, block.row)) try_ends(cursor, block.first, *axis);
      for (std::uint64_t step = 1; step < axis->size(); ++step) {
        if (step == most / 2 && axis->size() > most) step = axis->size() - most / 2;
        if (is_tried(*axis, step, block.row)) continue;
        gather([&] { try_point(cursor, block.first + step * stride); });
      }
    }
  }

  /// A value is tried once for each row, whatever other axes a block has.
  bool is_tried(const Axis& axis, std::uint64_t step, std::uint32_t row) {
    return !tried_.insert({row, {&axis, step}}).second;
  }

  /// The smallest and largest value of each key, as those between keep what these keep.
  void try_ends(PlanCursor& cursor, std::uint64_t place, const Axis& axis) {
    gather([&] { cursor.seek(place); });
    for (std::size_t key = 0; key < axis.keys().size(); ++key) {
      for (const config::Node& end : axis.ends(key)) {
        SweepPoint point = cursor.point();
        for (config::Assignment& setting : point.settings)
          if (setting.path == axis.keys()[key].path) setting.value = end;
        gather([&] { sweep_.load_whole(point); });
      }
    }
  }

  void try_point(PlanCursor& cursor, std::uint64_t place) {
    cursor.seek(place);
    const bool short_way =
        cursor.group() != nullptr && cursor.group()->load(cursor.point().settings);
    if (short_way || cursor.whole().contradiction.empty()) any_ = true;
  }

  /// @throws config::ConfigError where no point at all can be: then the file is wrong, not a point
  void require_any(PlanCursor& cursor) {
    std::set<std::string> reasons;
    for (cursor.seek(0); !cursor.at_end(); cursor.next()) {
      if (cursor.kind() != PlaceKind::kPoint) continue;
      const std::string& reason = cursor.whole().contradiction;
      if (reason.empty()) return;
      reasons.insert(reason);
    }
    for (const std::string& reason : reasons) errors_ += reason;
    throw_errors();
  }

  /// What the points of a case can be optimised for: metrics of their kind, paths of the first one.
  PointNames names_of(PlanCursor& cursor, std::uint32_t case_index) const {
    PointNames names;
    bool is_first = true;
    for (const PlanBlock& block : sweep_.blocks) {
      if (sweep_.rows[block.row].case_index != case_index) continue;
      cursor.seek(block.first);
      const LoadedExperiment& loaded =
          cursor.group() != nullptr ? cursor.group()->base() : cursor.whole();
      const std::string& kind = loaded.experiment->kind;
      if (!is_first) {  // keys of variants differ in their values
        if (names.kind != kind) names.kind.clear();
        continue;
      }
      is_first = false;
      names.kind = kind;
      for (config::Leaf& leaf : loaded.leaves()) names.paths.push_back(std::move(leaf.path));
    }
    return names;
  }

  void check_choices(PlanCursor& cursor) const {
    config::Diagnostics diagnostics = sweep_.texts;
    const config::Node& cases = *sweep_.node.find("cases");
    for (std::uint32_t index = 0; index < sweep_.config.cases.size(); ++index) {
      const config::Node& described = cases.items()[index];
      const config::Node* choice = described.find("choose");
      const config::Node* objectives = described.find("objectives");
      if (objectives == nullptr) objectives = sweep_.node.find("objectives");
      const config::Node* table = described.find("table");
      if (choice == nullptr && objectives == nullptr && table == nullptr) continue;
      const PointNames names = names_of(cursor, index);
      if (choice != nullptr)
        check_choice(sweep_.config.cases[index].choose, *choice, names, diagnostics);
      if (objectives != nullptr) check_objectives(*objectives, names, diagnostics);
      if (table != nullptr) check_table(*table, names, diagnostics);
    }
    diagnostics.throw_if_errors();
  }

  const Sweep& sweep_;
  std::string errors_;
  std::set<std::pair<std::uint32_t, std::pair<const Axis*, std::uint64_t>>> tried_;
  bool any_ = false;
};

}  // namespace

void check_sweep(const Sweep& sweep) { SweepCheck(sweep).run(); }

void require_points(const Sweep& sweep) {
  PlanCursor cursor(sweep);
  for (std::uint64_t looks = 0; !cursor.at_end(); cursor.next())
    if (cursor.kind() == PlaceKind::kPoint || ++looks > kMostSought) return;
  refuse_rules(sweep);
}

void refuse_rules(const Sweep& sweep) {
  const std::string message = "the rules of this sweep exclude all of its points";
  config::Diagnostics diagnostics = sweep.texts;
  for (const PlanRules& rules : sweep.rules)
    for (const auto* list : {&rules.where, &rules.when})
      for (const PlanRule& rule : *list)
        diagnostics.error(rule.written.where(), rule.written.length(), message);
  diagnostics.throw_if_errors();
  throw UsageError(sweep.path + ": " + message);
}

}  // namespace orrery
