// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "workloads/base/real.h"
#include "workloads/layers/listed/layer_operators.h"
#include "workloads/layers/listed/listed_layer.h"

namespace orrery {
namespace {

/// A copy with learned positions added, behind a class token.
class Tokens final : public LayerOperator {
 public:
  Tokens(Extent out, bool class_token) : out_(out), class_token_(class_token) {}

  std::int64_t parameters() const override {
    return out_.elements() + (class_token_ ? out_.channels : 0);
  }
  std::vector<Kernel> forward(const PassContext& pass) const override {
    return {stream(pass, "tokens", KernelClass::kElementwise, out_, {1, 1, 1})};
  }
  std::vector<Kernel> backward(const PassContext& pass, bool) const override {
    return {stream(pass, "tokens backward", KernelClass::kElementwise, out_, {1, 1, 1})};
  }

 private:
  Extent out_;
  bool class_token_;
};

struct TokensLayer final : ListedLayer {
  TokensLayer() { kind = "tokens"; }

  std::size_t build(LayerGraphBuilder& graph, const std::vector<std::size_t>& inputs,
                    int) const override {
    const Extent in = graph.extent(inputs.front());
    const Extent out{in.channels, in.positions() + (class_token ? 1 : 0), 1};
    return graph.add("tokens", {inputs.front()}, out, std::make_shared<Tokens>(out, class_token));
  }

  bool class_token = false;
  static const config::Schema<TokensLayer>& schema() {
    using L = TokensLayer;
    static const config::Schema<L> schema =
        listed_layer_schema<L>("tokens", "positions become tokens, each with a position's values")
            .optional("class_token", &L::class_token, "a learned token before them (ViT)");
    return schema;
  }
};

const config::Registered<ListedLayer>::Add<TokensLayer> added_tokens(
    "tokens", "positions become tokens, with learned positions and a class token");

}  // namespace
}  // namespace orrery
