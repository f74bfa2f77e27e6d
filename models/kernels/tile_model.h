// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/kernels/calibrated_model.h"
#include "models/kernels/contention.h"
#include "models/kernels/device/block_schedule.h"
#include "sim/machine/kernel_model.h"

namespace orrery {

/// The device that is left: a kernel is launched for it, as libraries are told how many SMs they
/// may use. The L2 stays whole, at the bandwidth that its users' SMs take in.
AcceleratorConfig left_of(AcceleratorConfig accelerator, Contention contention);

/// What playing the blocks of one kernel gave.
struct TileResult {
  double duration_us = 0;
  std::uint64_t events = 0;
};

/// A kernel whose blocks are played, as a memo sees it.
struct TileQuestion {
  const Kernel& kernel;
  const AcceleratorConfig& accelerator;
  Contention contention;
  std::string content;  ///< all numbers that the result depends on, as bytes
};

/// Keeps tile results. Playing is a function of `content` alone, so that a result kept for one
/// kernel holds for all of the same content.
class TileMemo {
 public:
  virtual ~TileMemo() = default;
  virtual std::optional<TileResult> find(const TileQuestion& question) = 0;
  virtual void keep(const TileQuestion& question, const TileResult& result) = 0;
};

/// The numbers of a plan, byte by byte.
std::string content_of(const BlockPlan& plan);

/// Kernel times by tiles where `fidelity` asks for them and the family of the kernel has them, in
/// closed form elsewhere: KernelCost::fidelity says which. Both have the same parameters. What is
/// known about the errors of the closed form holds for tiles: the price of the calibrated model is
/// scaled by the ratio of both, and intervals stay.
class TileModel final : public KernelModel {
 public:
  /// @param memo may be null; must outlive the model and its prices
  /// @param closed may be shared by models for one thread
  TileModel(std::shared_ptr<const CalibratedModel> closed, Fidelity fidelity,
            Contention contention = {}, TileMemo* memo = nullptr);

  std::unique_ptr<KernelPrices> on(const AcceleratorConfig& accelerator) const override;
  std::string calibration() const override { return closed_->calibration(); }

 private:
  std::shared_ptr<const CalibratedModel> closed_;
  Fidelity fidelity_;
  Contention contention_;
  TileMemo* memo_;
};

}  // namespace orrery
