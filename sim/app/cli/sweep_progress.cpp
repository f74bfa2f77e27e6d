// SPDX-License-Identifier: Apache-2.0
#include "sim/app/cli/sweep_progress.h"

#include <fmt/core.h>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "sim/app/cli/progress.h"
#include "sim/app/questions/points/shown_points.h"

namespace orrery {
namespace {

constexpr std::chrono::milliseconds kBarEvery{100};
constexpr std::chrono::seconds kLineEvery{10}, kJsonEvery{1}, kSampleEvery{1}, kSampled{30};

std::string rounded(double value) {
  return value < 10 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value);
}

/// "45 s", "12 min", "3.5 h".
std::string time_text(double seconds) {
  if (seconds < 100) return rounded(seconds) + " s";
  if (seconds < 6000) return rounded(seconds / 60) + " min";
  return rounded(seconds / 3600) + " h";
}

std::string bar_of(double share) {
  constexpr int kWidth = 20;
  const auto full = static_cast<std::size_t>(share * kWidth);
  std::string bar(kWidth, ' ');
  std::fill_n(bar.begin(), std::min<std::size_t>(full, kWidth), '=');
  if (full < kWidth) bar[full] = '>';
  return fmt::format("[{}] ", bar);
}

}  // namespace

void take_progress(Options& options, std::string& word) {
  options.choice("--progress", word,
                 "how progress is told on standard error: auto (a bar on a terminal, else lines), "
                 "lines, json (an object a line), none",
                 {"auto", "lines", "json", "none"});
}

ProgressForm progress_form(const std::string& word) {
  if (word == "json") return ProgressForm::kJson;
  if (word == "none") return ProgressForm::kNone;
  const bool bar = word != "lines" && stderr_is_terminal();
  return bar ? ProgressForm::kBar : ProgressForm::kLines;
}

std::string progress_text(const SweepTally& tally, const ProgressRates& rates, bool bar) {
  const double share =
      tally.places == 0 ? 1 : static_cast<double>(tally.done) / static_cast<double>(tally.places);
  std::string text =
      fmt::format("{}{} of {}", bar ? bar_of(share) : "points: ", tally.done, tally.places);
  if (rates.points_per_s > 0) text += fmt::format(", {}/s", rounded(rates.points_per_s));
  if (rates.left_s >= 0) text += fmt::format(", {} left", time_text(rates.left_s));
  for (const auto& [count, what] :
       {std::pair{tally.from_store, " from the store"}, std::pair{tally.excluded, " excluded"},
        std::pair{tally.impossible, " cannot be"}, std::pair{tally.failed, " FAILED"},
        std::pair{tally.tasks_run, " tasks run"}, std::pair{tally.tasks_wait, " tasks wait"}})
    if (count > 0) text += fmt::format(", {}{}", count, what);
  if (tally.best)
    text += fmt::format(", best {} {} ({})", tally.best->objective,
                        value_text(tally.best->value, tally.best->unit), tally.best->name);
  return text;
}

std::string progress_json(const SweepTally& tally, const ProgressRates& rates, bool last) {
  using nlohmann::ordered_json;
  ordered_json best;
  if (tally.best)
    best = {{"objective", tally.best->objective}, {"better", tally.best->most ? "most" : "least"},
            {"value", tally.best->value},         {"unit", tally.best->unit},
            {"name", tally.best->name},           {"identity", tally.best->identity}};
  return ordered_json{{"schema", "orrery.progress/1"},
                      {"event", last ? "end" : "progress"},
                      {"places", tally.places},
                      {"done", tally.done},
                      {"simulated", tally.simulated},
                      {"from_store", tally.from_store},
                      {"excluded", tally.excluded},
                      {"impossible", tally.impossible},
                      {"failed", tally.failed},
                      {"tasks_run", tally.tasks_run},
                      {"tasks_wait", tally.tasks_wait},
                      {"elapsed_s", rates.elapsed_s},
                      {"points_per_s", rates.points_per_s},
                      {"left_s", rates.left_s < 0 ? ordered_json() : ordered_json(rates.left_s)},
                      {"best", std::move(best)}}
      .dump();
}

SweepProgress::SweepProgress(ProgressForm form)
    : form_(form), started_(Clock::now()), said_(started_), samples_{{started_, 0, 0}} {}

SweepProgress::~SweepProgress() {
  if (form_ == ProgressForm::kJson) say(last_, true);
  if (form_ == ProgressForm::kBar && last_.done > 0) std::fputs("\r\033[K", stderr);
}

void SweepProgress::tell(const SweepTally& tally) {
  if (form_ == ProgressForm::kNone) return;
  const auto now = Clock::now();
  const auto every = form_ == ProgressForm::kBar    ? Clock::duration(kBarEvery)
                     : form_ == ProgressForm::kJson ? Clock::duration(kJsonEvery)
                                                    : Clock::duration(kLineEvery);
  last_ = tally;
  if (now - said_ >= every) say(tally, false);
}

void SweepProgress::keep_sample(const SweepTally& tally) {
  const auto now = Clock::now();
  if (now - samples_.back().time >= kSampleEvery)
    samples_.push_back({now, tally.done, tally.simulated});
  while (samples_.size() > 2 && now - samples_.front().time > kSampled) samples_.pop_front();
}

void SweepProgress::say(const SweepTally& tally, bool last) {
  said_ = Clock::now();
  const Sample& since = samples_.front();
  const auto seconds = [](Clock::duration time) {
    return std::chrono::duration<double>(time).count();
  };
  const double span = std::max(1e-3, seconds(said_ - since.time));
  ProgressRates rates;
  rates.elapsed_s = seconds(said_ - started_);
  rates.points_per_s = static_cast<double>(tally.simulated - since.simulated) / span;
  const double places_per_s = static_cast<double>(tally.done - since.done) / span;
  if (places_per_s > 0)
    rates.left_s = static_cast<double>(tally.places - tally.done) / places_per_s;
  keep_sample(tally);
  const std::string text = form_ == ProgressForm::kJson
                               ? progress_json(tally, rates, last)
                               : progress_text(tally, rates, form_ == ProgressForm::kBar);
  const bool bar = form_ == ProgressForm::kBar;
  std::fprintf(stderr, "%s%s%s", bar ? "\r\033[K" : "", text.c_str(), bar ? "" : "\n");
  std::fflush(stderr);
}

}  // namespace orrery
