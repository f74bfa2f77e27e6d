// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/config/declared.h"
#include "sim/config/fact.h"
#include "sim/units/units.h"

namespace orrery {

/// The kernels that take tokens to their experts (dispatch) and bring the results back (combine),
/// as DeepEP, TensorRT-LLM and CANN have them. Alone such a kernel takes
///
///   start + crossing + max(floor, largest of bytes / (line rate x efficiency) over the links)
///
/// `start`: launch, choosing where tokens go, telling the peers and waiting for them; `crossing`:
/// what comes to it where the ranks are on more than one node; `floor`: what the way of the first
/// tokens through the kernel and the fabric takes, during which that many bytes move for nothing.
struct ExpertExchangeConfig {
  Fact<Seconds> dispatch_start;
  Fact<Seconds> dispatch_floor;
  Fact<Seconds> combine_start;
  Fact<Seconds> combine_floor;
  Fact<Seconds> crossing;
  /// Share of the line rate of the scale-up links where each token goes once to a rank (normal).
  Fact<double> normal_efficiency;
  /// The same where each copy of a token goes on its own (low_latency).
  Fact<double> low_latency_efficiency;
  Fact<double> scale_out_efficiency;  ///< share of the line rate of the NICs
  Fact<int> units = {20, "DeepEP deep_ep/buffer.py: 20 SMs unless set"};  ///< SMs that they hold
  static const config::Schema<ExpertExchangeConfig>& schema();
};

}  // namespace orrery
