// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/config/diagnostics.h"

namespace orrery {

/// A well-formed configuration of a model that is not modelled; the text names the reason. It is
/// better to build no model than a wrong one.
class UnsupportedModel : public config::ConfigError {
 public:
  using config::ConfigError::ConfigError;
};

}  // namespace orrery
