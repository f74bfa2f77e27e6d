// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/alike_layers.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(AlikeLayers, AFunctionIsAskedOnceForLayersThatAreAlike) {
  std::vector<LayerConfig> layers(6);
  layers[1].moe = layers[4].moe = true;
  layers[5].window = 128;
  int asked = 0;
  OfAlikeLayers of_layer([&asked](const LayerConfig& layer) {
    ++asked;
    return layer.moe ? 100 : static_cast<int>(layer.window);
  });
  int sum = 0;
  for (const LayerConfig& layer : layers) sum += of_layer(layer);
  EXPECT_EQ(sum, 2 * 100 + 128);
  EXPECT_EQ(asked, 3);
}

}  // namespace
}  // namespace orrery
