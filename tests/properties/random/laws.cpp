// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/random/laws.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/app/experiments/collective.h"
#include "sim/app/experiments/steps/inference.h"
#include "sim/app/experiments/training/training.h"
#include "sim/app/sweeps/workers/run_point.h"
#include "sim/machine/clock.h"
#include "tests/properties/random/compare.h"
#include "tests/properties/random/memory_laws.h"

namespace orrery {
namespace {

/// Fair sharing and the waves of blocks let a better machine be slower by a little: two messages
/// meet that did not, a wave has one block left over. More would be a mistake.
constexpr double kAnomaly = 0.01;

/// One experiment's result, and where what it breaks is noted.
class Inspection {
 public:
  Inspection(const LoadedExperiment& loaded, const RunRecord& record,
             std::vector<Violation>& violations)
      : loaded_(loaded), record_(record), violations_(violations) {}

  void inspect() {
    require(duration(record_) > 0, "time is positive", "");
    parts_add_up();
    energy_is_power_times_time();
    shares_are_at_most_one();
    power_stays_below_the_cap();
    quantiles_stand_in_order();
    tokens_are_conserved();
  }

 private:
  void require(bool holds, const std::string& law, const std::string& what) {
    if (!holds) violations_.push_back({law, what, {}});
  }
  double value(const std::string& name) const { return metric(record_, name); }

  void parts_add_up() {
    const double step = value("step_time_s");
    if (std::isnan(step)) return;
    double sum = 0;
    for (const Metric& part : record_.metrics) {
      if (part.name.rfind("breakdown.", 0) != 0) continue;
      require(part.value >= 0, "parts of a step are not negative", part.name);
      sum += part.value;
    }
    require(std::abs(sum - step) <= 1e-9 * step, "parts add up to the step",
            figures("parts", sum, "step", step));
  }

  void energy_is_power_times_time() {
    const double power = value("average_power_w"), energy = value("energy_j");
    if (std::isnan(power)) return;
    require(std::abs(power * duration(record_) - energy) <= 1e-6 * energy,
            "energy is power times time", figures("power", power, "energy", energy));
  }

  void shares_are_at_most_one() {
    for (const char* name :
         {"model_flops_utilization", "hardware_flops_utilization", "share_of_limit"}) {
      const double share = value(name);
      require(std::isnan(share) || (share >= 0 && share <= 1 + 1e-9),
              std::string(name) + " is at most 1",
              figures("it is", share, "time", duration(record_)));
    }
    // Model FLOPs of recurrences follow Megatron-LM's count of training (mamba_layer_flops): 7 for
    // an element of the state. An update by one token executes fewer. Chunks execute 5.2 on matrix
    // units; decays, the others, are vector work: up to 5 % of a layer of Mamba-2 (hidden 768).
    const auto* training =
        dynamic_cast<const TrainingExperiment*>(&loaded_.as<MachineExperiment>());
    const double model = training ? value("model_flops_utilization") : std::nan("");
    const double executed = value("hardware_flops_utilization");
    const bool decays = training && training->model.build().has(MixerKind::kMamba2);
    const double most = executed * (decays ? 1.05 : 1 + 1e-9);
    require(std::isnan(model) || std::isnan(executed) || model <= most,
            "hardware executes the FLOPs of the model", figures("MFU", model, "HFU", executed));
    for (const LinkUse& link : record_.link_classes)
      require(link.peak_share <= 1 + 1e-9, "links carry at most their rate", link.name);
  }

  void power_stays_below_the_cap() {
    const auto& e = loaded_.as<MachineExperiment>();
    const auto* step = dynamic_cast<const ModelExperiment*>(&e);
    const double power = value("average_power_w");
    if (std::isnan(power) || (!step && e.system.accelerator.power.state != PowerState::kSteady))
      return;  // one kernel after a pause may draw more
    const double cap =
        e.system.accelerator.power.cap().base() * (step ? std::ceil(step->accelerators()) : 1);
    require(power <= cap * (1 + 1e-6), "power stays below the cap",
            figures("power", power, "cap", cap));
  }

  void quantiles_stand_in_order() {
    for (const Metric& m : record_.metrics)
      require(!m.interval || m.interval->first <= m.interval->second, "p10 is at most p90", m.name);
  }

  void tokens_are_conserved() {
    const double rate = value("tokens_per_s"), each = value("tokens_per_s_per_accelerator");
    if (std::isnan(rate)) return;
    require(std::abs(each * loaded_.as<ModelExperiment>().accelerators() - rate) <= 1e-6 * rate,
            "accelerators share the tokens", figures("all", rate, "each", each));
  }

  const LoadedExperiment& loaded_;
  const RunRecord& record_;
  std::vector<Violation>& violations_;
};

/// A second experiment that must not be slower, or not faster, than the first.
struct Comparison {
  const char* law;
  std::vector<std::string> assignments;
  bool slower;       ///< the second has more to do
  double ranks = 1;  ///< ranks of a collective
};

const char* const kHigherCap = "a higher cap is not slower";
/// Units draw power while they wait, so that under a cap more of them take from the clock of all:
/// `explain` says the clock. Compared where no cap holds.
const char* const kMoreUnits = "more units are not slower";

/// Rates of all units together that the experiment sets: all `--set` are one what-if, so that they
/// do not follow the units, and each of twice as many would have half.
std::vector<std::string> rates_of_twice_the_units(const LoadedExperiment& loaded) {
  const ComputeConfig& compute = loaded.as<MachineExperiment>().system.accelerator.compute;
  std::vector<std::string> all;
  const auto add = [&](bool written, const char* path) {
    const auto twice = scaled(loaded, std::string("system.accelerator.") + path, 2);
    if (written && twice) all.push_back(*twice);
  };
  add(compute.vector.source.empty(), "compute.vector");
  add(compute.special && compute.special->source.empty(), "compute.special");
  return all;
}

/// Better hardware, one figure at a time.
std::vector<Comparison> better_hardware(const LoadedExperiment& loaded) {
  std::vector<Comparison> all;
  const auto add = [&](const char* law, const std::string& path, double factor) {
    if (const auto assignment = scaled(loaded, "system." + path, factor))
      all.push_back({law, {*assignment}, false});
  };
  add("more memory bandwidth is not slower", "accelerator.memory.bandwidth", 2);
  add("a faster L2 is not slower", "accelerator.cache.bandwidth", 2);
  add("a larger L2 is not slower", "accelerator.cache.capacity", 2);
  add("more vector FLOPs are not slower", "accelerator.compute.vector", 2);
  add("more special functions are not slower", "accelerator.compute.special", 2);
  // A part keeps its units, and has the less of the power the more there are beside it.
  if (!loaded.as<MachineExperiment>().system.accelerator.partition) {
    if (const auto units = scaled(loaded, "system.accelerator.compute.units", 2)) {
      std::vector<std::string> assignments = rates_of_twice_the_units(loaded);
      assignments.push_back(*units);
      all.push_back({kMoreUnits, assignments, false});
    }
  }
  const PowerConfig& power = loaded.as<MachineExperiment>().system.accelerator.power;
  const bool lowered = power.cap() < power.tdp.value;
  add(kHigherCap, lowered ? "accelerator.power.limit" : "accelerator.power.tdp", 1.3);
  add("faster links are not slower", "accelerator.scale_up.bandwidth", 2);
  add("faster NICs are not slower", "accelerator.scale_out.bandwidth", 2);
  add("shorter launches are not slower", "accelerator.kernel.launch", 0.5);
  return all;
}

/// A step has one clock, that of its heaviest window (power.response). What makes this window
/// denser holds the rest of a longer step back, as with every part whose units and L2 share a
/// clock: below the floor of the voltage the lower clock wins nothing back. Better hardware is
/// compared with no cap there; a higher cap has its own law.
bool one_clock_for_many_windows(const MachineExperiment& e, const RunRecord& record) {
  const AcceleratorConfig& a = e.system.accelerator;
  const bool held = metric(record, "clock_hz") < boost_clock(a).base() * (1 - 1e-9);
  return e.kind != "operator" && held && duration(record) > a.power.response.value.base();
}

/// Fewer links of the same hardware: one that the collective waits for is down.
void add_dead_link(const MachineExperiment& experiment, const RunRecord& record,
                   std::vector<Comparison>& all) {
  const std::string busiest = label(record, "bottleneck");
  if (experiment.kind != "collective" || busiest.empty() || busiest == "latency") return;
  all.push_back(
      {"a dead link makes nothing faster", {"faults=[{link: \"" + busiest + "\"}]"}, true});
}

/// More work on the same hardware.
std::vector<Comparison> more_work(const MachineExperiment& experiment) {
  std::vector<Comparison> all;
  const auto add = [&](const char* law, const std::string& path, std::int64_t value) {
    all.push_back({law, {path + "=" + std::to_string(value)}, true});
  };
  if (const auto* e = dynamic_cast<const InferenceExperiment*>(&experiment)) {
    add("twice the batch is not faster", "batch.micro", 2 * e->batch.micro);
    if (e->phase == Phase::kDecode) {
      add("a longer cache is not faster", "kv_length", 2 * e->kv_length);
    } else {
      add("longer prompts are not faster", "batch.sequence", 2 * e->batch.sequence);
    }
  }
  if (const auto* e = dynamic_cast<const TrainingExperiment*>(&experiment))
    add("twice the batch is not faster", "batch.global", 2 * e->batch.global);
  if (const auto* e = dynamic_cast<const CollectiveExperiment*>(&experiment))
    all.push_back({"more bytes are not faster",
                   {"collective.bytes=" +
                    std::to_string(std::llround(2 * e->collective->bytes.base())) + " B"},
                   true,
                   1.0 / e->system.accelerator.dies});
  return all;
}

/// Whether NCCL goes from a ring of LL among more ranks than were measured to the switches. Its
/// tuner counts on 0.6 us for a hop of LL, and on Blackwell one takes 1.4: measured all-reduces of
/// 8 B200 by LL take 24.9 us at 1 KiB, 27.9 at 512 KiB, where it expects 15.0 and 18.3 (NVIDIA
/// AIConfigurator, 095f58a5, NCCL 2.27.3). Among 12 to 16 ranks of a rack that is more than the
/// switches take, and more bytes are faster.
bool leaves_the_ring_late(double ranks, const RunRecord& first, const RunRecord& second) {
  constexpr double kMeasured = 8;
  return ranks > kMeasured && label(first, "algorithm") == "ring" &&
         label(first, "protocol") == "ll" && label(second, "algorithm") == "nvls";
}

void compare(const RandomExperiment& experiment, const RunRecord& first,
             const Comparison& comparison, std::vector<Violation>& violations) {
  try {
    RunRecord second = simulate_again(experiment.with(comparison.assignments));
    if (second.status != RunStatus::kOk) return;
    if (comparison.slower && leaves_the_ring_late(comparison.ranks, first, second)) {
      std::vector<std::string> as_first = comparison.assignments;
      as_first.insert(as_first.end(), {"collective.algorithm=ring", "collective.protocol=ll"});
      second = simulate_again(experiment.with(as_first));  // LL is compared with LL
    }
    const double before = duration(first), after = duration(second);
    const bool holds =
        comparison.slower ? after >= before * (1 - kAnomaly) : after <= before * (1 + kAnomaly);
    if (!holds)
      violations.push_back(
          {comparison.law, figures("before", before, "after", after), comparison.assignments});
  } catch (const config::ConfigError&) {
    // Out of bounds when doubled: nothing to compare with.
  }
}

}  // namespace

Trial tried(const std::function<void(Trial&)>& laws) {
  Trial trial;
  try {
    laws(trial);
  } catch (const config::ConfigError&) {
    trial.outcome = Trial::Outcome::kRefused;
  } catch (const PointFailure& failure) {
    if (failure.code == ExitCode::kUsage) {
      trial.outcome = Trial::Outcome::kRefused;
    } else {
      trial.violations.push_back({"input ends as a result or refused", failure.what(), {}});
    }
  } catch (const std::exception& error) {
    trial.violations.push_back({"input ends as a result or refused", error.what(), {}});
  }
  return trial;
}

Trial try_experiment(const RandomExperiment& experiment, Draw& draw) {
  return tried([&](Trial& trial) {
    const LoadedExperiment loaded = load_experiment(experiment.file(), experiment.assignments);
    inspect_memory(experiment, loaded, draw, trial);
    const RunRecord record = simulate_isolated(loaded).record;
    if (record.status != RunStatus::kOk) {
      trial.outcome = Trial::Outcome::kInfeasible;
      if (record.reason.empty()) trial.violations.push_back({"infeasible has a reason", "", {}});
      return;
    }
    Inspection(loaded, record, trial.violations).inspect();
    std::vector<Comparison> comparisons = better_hardware(loaded);
    const Comparison& better = draw.of(comparisons);
    const bool one_clock = one_clock_for_many_windows(loaded.as<MachineExperiment>(), record);
    if ((one_clock || better.law == kMoreUnits) && better.law != kHigherCap) {
      const RandomExperiment free = experiment.with(without_cap(loaded.as<MachineExperiment>()));
      compare(free, simulate_again(free), better, trial.violations);
    } else {
      compare(experiment, record, better, trial.violations);
    }
    comparisons = more_work(loaded.as<MachineExperiment>());
    add_dead_link(loaded.as<MachineExperiment>(), record, comparisons);
    if (!comparisons.empty()) compare(experiment, record, draw.of(comparisons), trial.violations);
  });
}

}  // namespace orrery
