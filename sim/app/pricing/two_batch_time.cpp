// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/two_batch_time.h"

#include <cmath>

#include "sim/app/pricing/list_schedule.h"

namespace orrery {
namespace {

/// Kernels of two batches on one stream, their exchanges on another.
class TwoStreams {
 public:
  explicit TwoStreams(const std::array<TurnLayer, 2>& batches) : batches_(batches) {}

  void dispatch(std::size_t batch) {
    const TurnLayer& layer = batches_.at(batch);
    for (const TurnWork* work : {&layer.project, &layer.attend, &layer.route}) run(*work, 0);
    send(batch);
  }

  void send(std::size_t batch) {
    const TurnLayer& layer = batches_.at(batch);
    run(layer.send, 0);
    dispatched_.at(batch) = exchange(
        batch == 0 ? TurnExchange::kFirstDispatch : TurnExchange::kSecondDispatch, layer.dispatch);
  }

  void combine(std::size_t batch) {
    run(batches_.at(batch).shared, 0);
    expert(batch);
  }

  void expert(std::size_t batch) {
    const TurnLayer& layer = batches_.at(batch);
    run(layer.experts, dispatched_.at(batch));
    combined_.at(batch) = exchange(
        batch == 0 ? TurnExchange::kFirstCombine : TurnExchange::kSecondCombine, layer.combine);
  }

  void stage(std::size_t batch, int stage) {
    const TurnLayer& layer = batches_.at(batch);
    switch (stage) {
      case 0:
        run(layer.project, 0);
        break;
      case 1:
        run(layer.attend, 0);
        run(layer.route, 0);
        break;
      case 2:
        send(batch);
        run(layer.shared, 0);
        break;
      case 3:
        expert(batch);
        break;
      default:
        add_up(batch);
    }
  }

  void add_up(std::size_t batch) { run(batches_.at(batch).add_up, combined_.at(batch)); }

  double now() const { return schedule_.compute(); }
  /// Ends of what is in flight, from now on: with these every layer goes on alike.
  std::array<double, 2> ahead() const { return {combined_[0] - now(), combined_[1] - now()}; }

 private:
  void run(const TurnWork& work, double ready) {
    schedule_.kernel(ready, work.alone,
                     [&work](std::size_t which) { return work.beside.at(which) / work.alone; });
  }

  double exchange(TurnExchange which, double time) {
    return schedule_.transfer(0, now(), time, static_cast<std::size_t>(which));
  }

  const std::array<TurnLayer, 2>& batches_;
  ListSchedule schedule_{1};  // one stream carries all exchanges
  std::array<double, 2> dispatched_{}, combined_{};
};

bool near(const std::array<double, 2>& a, const std::array<double, 2>& b, double scale) {
  constexpr double kSame = 1e-9;
  return std::abs(a[0] - b[0]) <= kSame * scale && std::abs(a[1] - b[1]) <= kSame * scale;
}

/// Plays layers until one goes on as the one before it did. The first is another one: there is
/// nothing to add up, or the second batch lies behind.
/// @param play of a layer; told whether it is the first
/// @return time of the layers that were not played
template <class Play>
double play_layers(const TwoStreams& streams, std::int64_t layers, const Play& play) {
  double before = 0;
  std::array<double, 2> ahead{};
  for (std::int64_t done = 0; done < layers; ++done) {
    play(done == 0);
    const double layer = streams.now() - before;
    if (done > 1 && near(ahead, streams.ahead(), layer))
      return layer * static_cast<double>(layers - 1 - done);
    before = streams.now();
    ahead = streams.ahead();
  }
  return 0;
}

}  // namespace

double alternating_time(const std::array<TurnLayer, 2>& batches, std::int64_t layers) {
  TwoStreams streams(batches);
  const double repeated = play_layers(streams, layers, [&](bool first) {
    for (const std::size_t batch : {0U, 1U}) {
      if (!first) streams.add_up(batch);  // of the layer before
      streams.dispatch(batch);
    }
    for (const std::size_t batch : {0U, 1U}) streams.combine(batch);
  });
  for (const std::size_t batch : {0U, 1U}) streams.add_up(batch);
  return streams.now() + repeated;
}

double staged_time(const std::array<TurnLayer, 2>& batches, std::int64_t layers) {
  constexpr int kStages = 5, kBehind = 2;
  TwoStreams streams(batches);
  const double repeated = play_layers(streams, layers, [&](bool first) {
    for (int stage = 0; stage < kStages; ++stage) {
      streams.stage(0, stage);
      if (!first || stage >= kBehind) streams.stage(1, (stage + kStages - kBehind) % kStages);
    }
  });
  for (int stage = kStages - kBehind; stage < kStages; ++stage) streams.stage(1, stage);
  return streams.now() + repeated;
}

}  // namespace orrery
