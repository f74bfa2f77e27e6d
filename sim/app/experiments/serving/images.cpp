// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "sim/app/experiments/serving/fleet.h"
#include "workloads/base/require.h"

namespace orrery {
namespace {

/// Arrivals whose prompts are what the source says; others have hashes of what prompts begin with.
constexpr std::array kPlain = {"poisson", "gamma", "weibull", "closed_loop"};

/// The requests of another source, each with as many more tokens.
class SeeingRequests final : public RequestSource {
 public:
  SeeingRequests(std::unique_ptr<RequestSource> source, std::int64_t tokens)
      : source_(std::move(source)), tokens_(tokens) {}

  std::optional<Request> next() override { return longer(source_->next()); }
  std::optional<Request> after(const Request& answered, Picoseconds now) override {
    return longer(source_->after(answered, now));
  }

 private:
  std::optional<Request> longer(std::optional<Request> request) const {
    if (request) request->prompt += tokens_;
    return request;
  }

  std::unique_ptr<RequestSource> source_;
  std::int64_t tokens_;
};

}  // namespace

void require_images(const LlmConfig& llm, const ServingConfig& serving) {
  if (serving.images == 0) return;
  require(llm.vision.has_value(), "serving.images",
          "model '" + llm.name + "' has no vision tower, so that prompts have no images",
          {"0", {}});
  require(serving.image || llm.vision->rule.same_for_all(), "serving.images",
          "how many tokens '" + llm.name + "' has for an image depends on its size: say 'image'",
          {{}, {"image: {height: 1024, width: 1024}"}});
  const std::string& arrival = serving.workload->arrival;
  require(std::ranges::find(kPlain, arrival) != kPlain.end(), "serving.images",
          "images in prompts of arrival '" + arrival + "' are not modelled",
          {"0", {"arrival: poisson, gamma, weibull or closed_loop"}});
}

std::unique_ptr<RequestSource> seeing_requests(std::unique_ptr<RequestSource> source,
                                               const LlmConfig& llm, const ServingConfig& serving) {
  if (serving.images == 0) return source;
  const std::int64_t of_one = llm.vision->patches(size_of(serving.image)).tokens;
  return std::make_unique<SeeingRequests>(std::move(source), serving.images * of_one);
}

}  // namespace orrery
