// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/keys/image_config.h"

#include "sim/config/schema.h"

namespace orrery {

const config::Schema<ImageConfig>& ImageConfig::schema() {
  static const auto schema =
      config::Schema<ImageConfig>("image", "pixels of an image before it is resized")
          .optional("height", &ImageConfig::height, "rows of pixels", config::between(1, 65536))
          .optional("width", &ImageConfig::width, "columns of pixels", config::between(1, 65536));
  return schema;
}

}  // namespace orrery
