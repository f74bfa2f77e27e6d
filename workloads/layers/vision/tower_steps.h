// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "workloads/models/vision_tower.h"
#include "workloads/ops/step_list.h"

namespace orrery {

/// What a tensor parallel group does with the images of a step.
struct TowerWork {
  std::int64_t images = 0;  ///< number of them, all of one size
  ImagePatches image;
  int tp = 1;
  std::int64_t hidden = 0;  ///< width of the language model
  Precision precision =
      Precision::kBf16;  ///< precision of its products; the tower's has 16 bits at least
};

/// From pixels to the rows that stand for image tokens in the prompt, on one rank; nothing where
/// there are no images. All images go through at once. Where the group splits the tower, sums are
/// added up behind attention and MLP of each layer; else each rank works on images of its own, the
/// most of a rank here, and what all give is gathered.
StepList tower_forward(const VisionTower& tower, const TowerWork& work);

/// What a projector besides the first gives is added to the residual stream of image tokens behind
/// a layer of the language model.
StepList deepstack_addition(const TowerWork& work);

/// The most bytes that are alive beside weights while images go through, with the rows that go to
/// the language model.
double tower_working(const VisionTower& tower, const TowerWork& work);

}  // namespace orrery
