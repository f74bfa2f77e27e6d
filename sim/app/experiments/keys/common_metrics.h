// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/results/metric_table.h"

/// Metrics that several kinds of experiment have. Those of one kind are declared in its file.
namespace orrery {

inline const DeclaredMetric kTime{
    {"time_s", "s", "duration", "operator, collective, replay", Follows::kTime}};
inline const DeclaredMetric kShareOfLimit{
    {"share_of_limit", "1",
     "time at the nearest limit over the time taken; of a collective: the least time that the "
     "ports of ranks and systems allow",
     "operator, collective", Follows::kRate}};
inline const DeclaredMetric kClock{{"clock_hz", "Hz",
                                    "clock of the units, mean over the time of the kernels (of a "
                                    "step: on the rank that ends last)",
                                    "operator, training, inference, layers, replay"}};
inline const DeclaredMetric kPowerState{
    {"power_state", "",
     "burst (after a few replays, as tables are measured) or steady (repeated without end)",
     "operator, training, inference, layers, replay"}};
inline const DeclaredMetric kWindowPower{
    {"window_power_w", "W",
     "the most that one accelerator averages over a window of power.response",
     "training, inference, layers, replay"}};
inline const DeclaredMetric kEnergy{
    {"energy_j", "J", "energy of all accelerators used (of a replay: of those with a graph)",
     "operator, training, inference, serving, layers, replay"}};
inline const DeclaredMetric kAveragePower{
    {"average_power_w", "W", "energy of all accelerators used over the time",
     "operator, training, inference, serving, layers, replay"}};
inline const DeclaredMetric kTokensPerJoule{
    {"tokens_per_joule", "1/J",
     "tokens (serving: output tokens) over the energy of all accelerators used",
     "training, inference, serving"}};
inline const DeclaredMetric kSystemPower{
    {"system_power_w", "W",
     "average power of the systems that are charged: used accelerators, unused ones at idle power "
     "(`unused: idle`), and hosts, switches, NICs, fans and losses (host_power, else all_in_power "
     "less the design power of the accelerators; with `unused: absent` the used share)",
     "training, inference, serving, layers, replay"}};
inline const DeclaredMetric kSystemTokensPerJoule{
    {"system_tokens_per_joule", "1/J",
     "tokens (of serving: output tokens) over the energy of the systems that are charged",
     "training, inference, serving"}};
inline const DeclaredMetric kUsdPerHour{
    {"usd_per_hour", "USD/h",
     "price of an hour of the accelerators that are charged: all of the systems, or the used ones "
     "(`unused: absent`); of serving: while they are held, on average over the duration",
     "training, inference, serving, layers"}};
inline const DeclaredMetric kEngineDefaults{
    {"engine_defaults", "",
     "versions that the defaults of each engine and the times of its host come from: the newest in "
     "configs/software that is not newer than the engine (`orrery describe software vllm`)",
     "inference, serving, collective"}};
inline const DeclaredMetric kPrices{
    {"prices", "", "list of prices that costs rest on", "training, inference, serving, layers"}};
inline const DeclaredMetric kModelFlopsUtilization{
    {"model_flops_utilization", "1",
     "model FLOPs (no recomputation, causal attention) over the dense peak of the precision, or of "
     "a faster one that products run in; of serving: those of what was answered over the peak of "
     "the replicas that were held",
     "training, inference, serving, layers", Follows::kRate}};
inline const DeclaredMetric kPeakMemoryBytes{
    {"peak_memory_bytes", "B",
     "device memory of the fullest rank; of serving: all blocks of its cache included",
     "training, inference, serving, layers"}};
inline const DeclaredMetric kSimulatedTime{
    {"simulated_time_s", "s", "simulated time", "all", Follows::kTime}};
inline const DeclaredMetric kEvents{{"events", "1", "events of the simulation", "all"}};

}  // namespace orrery
