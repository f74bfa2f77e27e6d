// SPDX-License-Identifier: Apache-2.0
#include "host/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <string_view>

namespace orrery::measure {
namespace {

constexpr std::array<std::string_view, 10> kFlags = {
    "--quick", "--full",   "--priority", "--kernels", "--list",
    "--out",   "--device", "--seed",     "--system",  "--version"};

/// Edits (insert, delete, replace) that turn one word into the other: Levenshtein's distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

/// "; did you mean 'x'?", or nothing where no word is near.
template <class Words>
std::string suggestion(std::string_view wrong, const Words& words) {
  std::string_view best;
  std::size_t least = std::max<std::size_t>(wrong.size() / 2, 2);
  for (const std::string_view word : words) {
    const std::size_t edits = distance(wrong, word);
    if (edits < least || (edits == least && best.empty())) {
      least = edits;
      best = word;
    }
  }
  return best.empty() ? "" : "; did you mean '" + std::string(best) + "'?";
}

template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <class Number>
Number number_of(const std::string& flag, const std::string& value) {
  const auto number = whole_number<Number>(value);
  if (!number || *number < Number{0}) {
    throw UsageError(flag + " needs a whole number, not '" + value + "'");
  }
  return *number;
}

/// Flags without a value. @returns false for every other word.
bool set_switch(Options& options, const std::string& flag) {
  if (flag == "--quick") {
    options.depth = Depth::kQuick;
  } else if (flag == "--full") {
    options.depth = Depth::kFull;
  } else if (flag == "--priority") {
    options.depth = Depth::kPriority;
  } else if (flag == "--list") {
    options.action = Action::kList;
  } else if (flag == "--version") {
    options.action = Action::kVersion;
  } else if (flag == "--help" || flag == "-h") {
    options.action = Action::kHelp;
  } else {
    return false;
  }
  return true;
}

bool takes_value(const std::string& flag) {
  return flag == "--kernels" || flag == "--out" || flag == "--device" || flag == "--seed" ||
         flag == "--system";
}

void set_value(Options& options, const std::string& flag, const std::string& value) {
  if (value.empty()) throw UsageError(flag + " needs a value");
  if (flag == "--kernels") {
    options.kernels = value;
  } else if (flag == "--out") {
    options.out = value;
  } else if (flag == "--device") {
    options.device = number_of<int>(flag, value);
  } else if (flag == "--seed") {
    options.seed = number_of<std::uint64_t>(flag, value);
  } else {
    options.system = value;
  }
}

struct Range {
  int first = 0, last = 0;
};

/// "3" or "1-6"; nothing for a name.
std::optional<Range> range_of(std::string_view item) {
  const std::size_t dash = item.find('-');
  const auto first = whole_number<int>(item.substr(0, dash));
  const auto last =
      dash == std::string_view::npos ? first : whole_number<int>(item.substr(dash + 1));
  if (!first || !last) return std::nullopt;
  return Range{*first, *last};
}

/// `--priority` has its order and budgets from one list, which no other choice changes.
void check_priority(const Options& options, const std::vector<std::string>& switches) {
  const auto given = [&switches](const char* flag) {
    return std::find(switches.begin(), switches.end(), flag) != switches.end();
  };
  if (!given("--priority")) return;
  for (const char* other : {"--quick", "--full"}) {
    if (given(other)) {
      throw UsageError("--priority and " + std::string(other) + " exclude each other; give one");
    }
  }
  if (options.kernels.empty()) return;
  throw UsageError("--priority has a list of kernels of its own; did you mean '--full --kernels " +
                   options.kernels + "'?");
}

/// Marks what one item of the list picks.
void pick(std::string_view item, const std::vector<Measurement>& all, std::vector<bool>& picked) {
  const auto range = range_of(item);
  bool found = false;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool matches =
        range ? range->first <= all[i].number && all[i].number <= range->last : item == all[i].name;
    if (!matches || (range && all[i].only_priority())) continue;
    if (all[i].only_priority()) {
      throw UsageError("only --priority measures '" + all[i].name + "'");
    }
    picked[i] = true;
    found = true;
  }
  if (found) return;
  std::vector<std::string_view> names;
  names.reserve(all.size());
  for (const Measurement& measurement : all) names.push_back(measurement.name);
  throw UsageError("there is no measurement '" + std::string(item) + "'" + suggestion(item, names) +
                   " (--list shows all)");
}

}  // namespace

Options parse_options(const std::vector<std::string>& arguments) {
  Options options;
  std::vector<std::string> switches;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::size_t equals = arguments[i].find('=');
    const std::string flag = arguments[i].substr(0, equals);
    if (equals == std::string::npos && set_switch(options, flag)) {
      switches.push_back(flag);
      continue;
    }
    if (!takes_value(flag)) {
      throw UsageError("there is no option '" + arguments[i] + "'" + suggestion(flag, kFlags));
    }
    if (equals != std::string::npos) {
      set_value(options, flag, arguments[i].substr(equals + 1));
    } else if (i + 1 < arguments.size()) {
      set_value(options, flag, arguments[++i]);
    } else {
      throw UsageError(flag + " needs a value");
    }
  }
  check_priority(options, switches);
  return options;
}

std::vector<const Measurement*> select(const std::string& list,
                                       const std::vector<Measurement>& all) {
  std::vector<bool> picked;
  picked.reserve(all.size());
  for (const Measurement& measurement : all) {
    picked.push_back(list.empty() && !measurement.only_priority());
  }
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t comma = std::min(list.find(',', begin), list.size());
    pick(std::string_view(list).substr(begin, comma - begin), all, picked);
    begin = comma + 1;
  }
  std::vector<const Measurement*> selected;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (picked[i]) selected.push_back(&all[i]);
  }
  return selected;
}

std::string help_text() {
  return R"(orrery-measure: measures one GPU, changes nothing on it.

  --quick          every kernel, coarse sweeps, under 3 minutes on an H200 (default)
  --full           fine sweeps, under 9 minutes on an H200
  --priority       shapes of five models, launches, clocks, power and copies, the most important
                   first, under 10 minutes on an H100 or H200
  --kernels LIST   numbers, ranges and names: 1-6,gemm
  --list           what each kernel measures, and its time budget
  --out DIR        where the CSV files go (default: ./measurements)
  --device N       which GPU, as the CUDA runtime counts (default: 0)
  --seed N         of the random inputs (default: drawn afresh, noted in environment.yaml)
  --system NAME    value of the CSV files' system column (default: from the GPU's name)
  --version        the program's version

Exit codes: 0 all measured, 2 wrong command line, 3 a measurement failed, 6 no GPU.
)";
}

std::string program_version() { return ORRERY_VERSION; }

}  // namespace orrery::measure
